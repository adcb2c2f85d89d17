#!/usr/bin/env bash
# allreduce_bench on elements in device memory, over what stands in for CUDA and NCCL: it measures every collective there,
# finds every result right, and breaks none of the rules of streams.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../scripts/expect.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/expect.sh"
fedrun=$1/fedrun
program=$2
json=$sandbox/results.jsonl

bench() { # bench <ranks> <rows> <arguments>
  run "$fedrun" -np "$1" "$program" -w 1 -n 2 --json "$json" "${@:3}"
  expect_status 0
  expect_no_output "stand-in:" # which would report an access that no event orders
  output+=$(python3 "$sandbox/check.py" "$json" "$1" "$2" 2>&1) || complain "the JSON lines are not as they must be"
}
cat >"$sandbox/check.py" <<'CHECK'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert len(rows) == int(sys.argv[3]), (len(rows), rows)
for row in rows:
    assert row["device"] == "cuda" and row["wrong"] == 0 and row["time_us"] > 0 and row["ranks"] == int(sys.argv[2]), row
CHECK

bench 2 29 --collective all --memory both --place both -b 1K -e 256K -f 256 --device cuda
expect_output "elements on GPUs, through NCCL"
bench 3 2 --collective allreduce,reduce_scatter --op average --type bf16 -b 7K -e 7K
bench 2 1 --wire f16 -b 64K -e 64K --op sum
bench 2 1 --async 20 -b 1K
bench 1 6 --collective allreduce,reduce_scatter,broadcast,allgather,gather,alltoall -b 1K -e 1K

# A run that has GPUs can work in host memory; one that has none says why.
run "$fedrun" -np 2 "$program" -w 1 -n 1 -b 1K -e 1K --device cpu --json "$json"
expect_status 0
grep -q '"device":"cpu"' "$json" || complain "--device cpu measures in host memory"
run "$fedrun" -np 2 --device cpu "$program" -b 1K -e 1K --device cuda
[[ $status != 0 ]] || complain "no error without a GPU"
expect_output "UsageError: --device cuda: this run uses no GPU: it was started with --device cpu"
run "$fedrun" -np 2 "$program" --device cuda --compare mpi
expect_output "UsageError: --compare: the others work in the memory of the host"
