#!/usr/bin/env bash
# training_bench and fedavg_bench with their models on GPUs, over what stands in for CUDA, NCCL and LibTorch's device: the
# rows say so, the parts of a step come from the stream's events, and no rule of streams is broken.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../scripts/expect.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/expect.sh"
fedrun=$1/fedrun
training=$2
fedavg=$3
json=$sandbox/results.jsonl

for flags in "--compression none,bf16" "--precision bf16" "--sharded"; do
  # shellcheck disable=SC2086  # several words
  run "$fedrun" -np 2 "$training" --model lr --batch-size 4 --steps 2 --rounds 2 --device cuda --json "$json" $flags
  expect_status 0
  expect_output "2 ranks on GPUs"
  expect_no_output "stand-in:" # which would report an access that no event orders
  output+=$(python3 - "$json" 2>&1 <<<'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert {row["system"] for row in rows} == {"alone", "independent", "fedrun"}, rows
for row in rows:
    assert row["device"] == "cuda" and row["samples_per_second"] > 0, row
    assert row["forward_ms"] > 0 and row["backward_ms"] > 0 and row["optimizer_ms"] > 0, row
    assert row["system"] != "fedrun" or row["exposed_communication_ms"] > 0, row
    assert row["system"] != "fedrun" or row["sharded"] or row["bare_communication_ms"] > 0, row
') || complain "the rows are not as they must be"
done

run "$fedrun" -np 2 "$training" --model lr --batch-size 4 --steps 1 --rounds 1 --device cpu --json "$json"
expect_status 0
expect_output "2 ranks on the CPU"

run "$fedrun" -np 2 "$fedavg" --workload lr-10 --groups 1,2 --turns 1 --rounds 1 --device cuda --json "$json"
expect_status 0
expect_no_output "stand-in:"
output+=$(python3 - "$json" 2>&1 <<<'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
found = [(row["system"], row["groups"], row["device"]) for row in rows]
assert found == [("fedrun", 1, "cuda"), ("fedrun", 2, "cuda"), ("tight", 1, "cpu"), ("independent", 2, "cuda")], found
') || complain "the rows are not as they must be"

run "$fedrun" -np 2 --device cpu "$fedavg" --workload lr-10 --device cuda
[[ $status != 0 ]] || complain "no error without a GPU"
expect_output "UsageError: --device cuda: this run uses no GPU: it was started with --device cpu"
