#!/usr/bin/env bash
# The benchmark measures every collective and finds every result right; what it cannot measure it refuses, with reasons.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../scripts/expect.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/expect.sh"
bin=$1
json=$sandbox/results.jsonl
quickly=(-w 1 -n 2)

# bench <ranks> <arguments>: runs it; every row must be right.
bench() {
  run "$bin/fedrun" -np "$1" "$bin/allreduce_bench" "${quickly[@]}" --json "$json" "${@:2}"
  expect_status 0
  output+=$(python3 "$sandbox/check.py" "$json" "$1" 2>&1) || complain "the JSON lines are not as they must be"
}
cat >"$sandbox/check.py" <<'CHECK'
# Prints which rows there are, as "collective op dtype bytes memory system place".
import json, sys
keys = ["system", "collective", "op", "dtype", "bytes", "ranks", "memory", "time_us", "algbw_gbs", "busbw_gbs", "wrong"]
rows = [json.loads(line) for line in open(sys.argv[1])]
assert rows
for row in rows:
    assert list(row)[: len(keys)] == keys, row
    assert row["wrong"] == 0 and row["time_us"] > 0 and row["ranks"] == int(sys.argv[2]), row
    moved_bytes = row["bytes"] * row["operations"]
    assert abs(row["algbw_gbs"] - moved_bytes / row["time_us"] / 1e3) < 1e-6, row
    others = (row["ranks"] - 1) / row["ranks"]
    factor = {"allreduce": 2 * others, "async_allreduce": 2 * others, "broadcast": 1}.get(row["collective"], others)
    assert abs(row["busbw_gbs"] - row["algbw_gbs"] * factor) < 1e-6, row
    print("row:", *(row[key] for key in ["collective", "op", "dtype", "bytes", "memory", "system", "place"]), end=";")
CHECK
expect_rows() { expect_equal "$(grep -o 'row: ' <<<"$output" | wc -l)" "$1"; }

# Every collective, in both memories, below and above the size up to which calls are timed in batches.
bench 2 --collective all --memory both --place both -b 1K -e 256K -f 256
expect_output "# 2 ranks, shm backend, median of 2"
expect_rows 29 # 2 sizes × 2 memories × (6 collectives, allreduce twice), and one barrier
expect_output "row: allreduce sum f32 1024 allocated fedrun in;"
expect_output "row: allreduce sum f32 262144 ordinary fedrun out;"
expect_output "row: reduce_scatter sum f32 1024 ordinary fedrun out;"
expect_output "row: broadcast none f32 262144 allocated fedrun in;"
expect_output "row: alltoall none f32 1024 allocated fedrun out;"
expect_output "row: barrier none none 0 allocated fedrun in;"

# Sizes that three ranks cannot divide, other types and operations.
bench 3 --collective all -b 1000 -e 100000 -f 100 --compare mpi
expect_output "row: allgather none f32 996 ordinary mpi out;"
for type in u8 i8 i32 i64 f16 bf16 f64; do bench 3 --type "$type" --op average -b 1000 -e 1000; done
for op in min max product; do bench 2 --collective allreduce,reduce_scatter --op "$op" --type f16 -b 7 -e 7; done
bench 3 --type bool --op sum -b 7 -e 7
bench 2 --op adasum -b 4K -e 128K -f 32
bench 2 --wire bf16 -b 128K -e 128K

# Against plain MPI and against the bare loop.
for ranks in 2 3; do
  bench "$ranks" --memory both --compare mpi,limit -b 4 -e 1M -f 512
  expect_rows 12 # 3 sizes × (2 memories, mpi, limit)
  expect_output "allocated limit in;"
  expect_output "ordinary mpi in;"
done

# Many at once.
bench 2 --async 100 -b 1K --memory both --compare mpi
expect_rows 3
expect_output "row: async_allreduce sum f32 1024 allocated fedrun in;"

# One rank, with and without a launcher.
bench 1 --collective all -b 1K -e 1K
run "$bin/allreduce_bench" "${quickly[@]}" -b 1K -e 1K
expect_status 0
expect_output "# 1 ranks, self backend"

# Among the output, which comes from whatever host rank 0 is on.
run "$bin/fedrun" -np 2 --no-prefix "$bin/allreduce_bench" "${quickly[@]}" -b 1K -e 1K --device cpu --json -
expect_status 0
grep '^{' <<<"$output" >"$json"
output+=$(python3 "$sandbox/check.py" "$json" 2 2>&1) || complain "the JSON lines are not as they must be"
grep -q '"device":"cpu"' "$json" || complain "the rows do not say where they were measured"

# A mistake ends with one message and a code that is not 0.
expect_refusal() { # expect_refusal <text> <arguments>
  run "$bin/fedrun" -np 2 "$bin/allreduce_bench" "${@:2}"
  [[ $status != 0 ]] || complain "no error for ${*:2}"
  expect_output "UsageError: $1"
}
expect_refusal "--min-bytes: '4X' is not a whole number from 1 to" -b 4X
expect_refusal "-e 1024 is smaller than -b 4096" -e 1K
expect_refusal "--factor: '1' is not a whole number from 2 to" -f 1
expect_refusal "--iterations: '0' is not a whole number from 1 to" -n 0
expect_refusal "--collective: 'scan' is not one of allreduce, reduce_scatter, broadcast" --collective allreduce,scan
expect_refusal "--type: 'f8' is not one of u8, i8" --type f8
expect_refusal "--op: 'mean' is not one of average, sum" --op mean
expect_refusal "--wire: 'f32' is not one of f16, bf16" --wire f32
expect_refusal "--memory: 'shared' is not one of allocated, ordinary, both" --memory shared
expect_refusal "--device: 'gpu' is not one of auto, cpu, cuda" --device gpu
expect_refusal "--compare: the others work in the memory of the host; use --device cpu" --device cuda --compare limit
expect_refusal "--place: 'there' is not one of in, out, both" --place there
expect_refusal "--async: 'many' is not a whole number from 1 to" --async many
expect_refusal "--compare: 'nccl' is not one of mpi, limit" --compare nccl
expect_refusal "--async submits allreduces" --async 10 --collective broadcast
expect_refusal "--compare mpi: MPI has no adasum" --compare mpi --op adasum
expect_refusal "--compare mpi: MPI cannot reduce bf16 elements" --compare mpi --type bf16
expect_refusal "--compare limit: the bare loop does one f32 sum in place" --compare limit --type f64
expect_refusal "cannot write --json file '$sandbox/none/x.jsonl'" --json "$sandbox/none/x.jsonl"
expect_refusal "unexpected argument 'stray'" stray
run "$bin/fedrun" -np 2 --device cpu "$bin/allreduce_bench" --device cuda
[[ $status != 0 ]] || complain "no error for --device cuda"
expect_output "UsageError: --device cuda: this run uses no GPU: it was started with --device cpu"
run "$bin/allreduce_bench" --compare mpi
expect_output "--compare mpi: this process has no MPI; start it with fedrun"
