#!/usr/bin/env bash
# training_bench on a small model: the table, the JSON lines, and what it says about bad flags.
set -euo pipefail
bin=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

for flags in "" "--compression fp16 --sharded" "--compression bf16-feedback --optimizer adam --sharded"; do
  # shellcheck disable=SC2086  # several flags, or none
  output=$("$bin/fedrun" -np 2 "$bin/training_bench" --model convnet --batch-size 8 --steps 3 --rounds 2 \
    --json "$work/lines.json" $flags)
  for system in alone independent fedrun; do
    grep -E "convnet +$system " <<<"$output" >/dev/null || fail "no line for $system in: $output"
  done
  [[ $(wc -l <"$work/lines.json") == 3 ]] || fail "expected three JSON lines, got $(cat "$work/lines.json")"
  python3 - "$work/lines.json" "$flags" <<'PYTHON'
import json, sys
lines = {line["system"]: line for line in map(json.loads, open(sys.argv[1]))}
ours = lines["fedrun"]
assert ours["ranks"] == 2 and lines["alone"]["ranks"] == 1 and ours["model"] == "convnet", lines
words = sys.argv[2].split()
assert ours["compression"] == (words[words.index("--compression") + 1] if "--compression" in words else "none"), ours
assert ours["sharded"] == ("sharded" in sys.argv[2]), ours
assert ours["samples_per_second"] > 0 and ours["exposed_communication_ms"] > 0, ours
assert lines["independent"]["exposed_communication_ms"] == 0, lines
parts = sum(ours[part] for part in ("forward_ms", "backward_ms", "exposed_communication_ms", "optimizer_ms"))
assert abs(parts - ours["step_ms"]) < 0.5 * ours["step_ms"], ours
assert 0 < lines["independent"]["samples_per_second_in_step"] <= lines["independent"]["samples_per_second"], lines
efficiency = ours["samples_per_second"] / (2 * lines["alone"]["samples_per_second"])
assert abs(ours["scaling_efficiency"] - efficiency) < 1e-9, ours
PYTHON
done

# Lists: every batch size in every precision, and for fedrun with every compression.
"$bin/fedrun" -np 2 "$bin/training_bench" --model convnet --batch-size 2,4 --precision f32,bf16 --compression none,bf16 \
  --systems fedrun,independent --steps 1 --rounds 1 --device cpu --json "$work/lines.json" >"$work/output"
python3 - "$work/lines.json" <<'PYTHON'
import itertools, json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
ours = [(line["batch_size"], line["precision"], line["compression"]) for line in lines if line["system"] == "fedrun"]
assert sorted(ours) == sorted(itertools.product([2, 4], ["f32", "bf16"], ["none", "bf16"])), ours
assert len(lines) == len(ours) + 4, lines
for line in lines:
    assert line["device"] == "cpu" and line["threads"] > 0, line
    if line["system"] != "fedrun": continue
    assert line["bare_communication_ms"] > 0, line
    hidden = max(0, 1 - line["exposed_communication_ms"] / line["bare_communication_ms"])
    assert abs(line["hidden_communication"] - hidden) < 1e-9, line
PYTHON

expect_error() {  # part of the message, flags...
  local part=$1 code=0 message
  shift
  message=$("$bin/fedrun" -np 2 "$bin/training_bench" "$@" 2>&1) || code=$?
  [[ $code == 1 && $message == *"$part"* ]] || fail "$*: expected '$part' and code 1, got $code: $message"
}
expect_error "resnet18" --model resnet17
expect_error "--steps: '0'" --steps 0
expect_error "none, fp16, bf16, fp16-feedback, bf16-feedback" --compression zip
expect_error "--batch-size: '0'" --batch-size 4,0
expect_error "f32, f16, bf16" --precision f64
expect_error "auto, cpu, cuda" --device tpu
expect_error "cannot write" --model convnet --json /no/such/directory/file

[[ $(python3 "$2/bench/compare/training.py" --help) == *"PyTorch DDP"* ]] || fail "training.py --help"
