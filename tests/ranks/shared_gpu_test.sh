#!/usr/bin/env bash
# What a run says whose ranks share GPUs, and what it says where they do not agree about the way between hosts.
set -euo pipefail
bin=$(realpath "$1")
program=$(realpath "$2")
# shellcheck source-path=SCRIPTDIR source=../scripts/expect.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/expect.sh"

# Starts ranks that do nothing.
start() { run timeout 60 "$bin/fedrun" "$@" "$program" --gtest_filter=None; }

start -np 3 -x STAND_IN_GPUS=2
expect_status 0
expect_output "ranks 0, 2 share GPU 0 of host $(hostname), which NCCL refuses: groups with such ranks stage elements on"
expect_equal "$(grep -c warning <<<"$output")" 1

start -np 2 -x STAND_IN_GPUS=2
expect_status 0
expect_equal "$(grep -c warning <<<"$output" || true)" 0

start -np 3 -x STAND_IN_GPUS=2 --device cpu
expect_status 0
expect_equal "$(grep -c warning <<<"$output" || true)" 0

# shellcheck disable=SC2016
run timeout 60 "$bin/fedrun" -np 2 bash -c \
  'FEDRUN_GPU_ACROSS_HOSTS=$([[ $OMPI_COMM_WORLD_RANK == 1 ]] && echo mpi || echo nccl) exec "$@"' - "$program"
expect_status 1
expect_output 'rank 0 has FEDRUN_GPU_ACROSS_HOSTS=nccl and FEDRUN_GPU_STAGED_BELOW=65536, rank 1 has FEDRUN_GPU_ACROSS_HOSTS=mpi'

run "$bin/fedrun" -np 1 --gpu-across-hosts tcp "$program"
expect_status 2
expect_output "nccl, mpi"
