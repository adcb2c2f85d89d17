#!/usr/bin/env bash
# fedavg_bench on drawn digits: the table, the JSON lines, and what it says about bad flags.
set -euo pipefail
bin=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

output=$("$bin/fedrun" -np 2 "$bin/fedavg_bench" --workload lr-10,memory --turns 1 --rounds 2 \
  --json "$work/lines.json")
for system in fedrun tight independent; do
  grep -E "lr-10 +$system " <<<"$output" >/dev/null || fail "no line for $system in: $output"
done
python3 - "$work/lines.json" <<'PYTHON'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert len(lines) == 7 and all(line["round_ms"] >= line["fastest_ms"] > 0 for line in lines), lines
assert all(line["ranks"] == (1 if line["system"] == "tight" else 2) for line in lines), lines
peaks = {line["workload"]: line["peak_memory_mb"] for line in lines}
assert peaks["memory-100000"] < peaks["memory-100"] + 30, f"memory grows with the clients: {peaks}"
PYTHON

"$bin/fedrun" -np 2 "$bin/fedavg_bench" --workload lr-10 --groups 1,2 --systems fedrun,tight --turns 1 --rounds 2 \
  --json "$work/lines.json" >"$work/output"
python3 - "$work/lines.json" <<'PYTHON'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert [(line["system"], line["groups"]) for line in lines] == [("fedrun", 1), ("fedrun", 2), ("tight", 1)], lines
PYTHON

"$bin/fedrun" -np 2 "$bin/fedavg_bench" --workload lr-10 --systems fedrun --turns 1 --rounds 1 \
  --write-partition "$work/partition.json" >"$work/output"
python3 -c 'import json, sys; assert len(json.load(open(sys.argv[1]))) == 1000' "$work/partition.json"

expect_error() {  # part of the message, flags...
  local part=$1 code=0 message
  shift
  message=$("$bin/fedrun" -np 2 "$bin/fedavg_bench" "$@" 2>&1) || code=$?
  [[ $code == 1 && $message == *"$part"* ]] || fail "$*: expected '$part' and code 1, got $code: $message"
}
expect_error "--workload: 'lr-7' is not one of" --workload lr-7
expect_error "one workload" --write-partition "$work/partition.json"
expect_error "--turns: '0'" --turns 0
expect_error "group" --workload lr-10 --groups 3
expect_error "train-images-idx3-ubyte" --data-dir "$work"
expect_error "cannot write" --json /no/such/directory/file

[[ $(python3 "$2/bench/compare/fedavg.py" --help) == *"Flower"* ]] || fail "fedavg.py --help"
