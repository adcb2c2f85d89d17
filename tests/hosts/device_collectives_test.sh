#!/usr/bin/env bash
# The collectives on GPUs across hosts by MPI: NCCL, that is its stand-in, reaches no other host.
set -euo pipefail
bin=$(realpath "$1")
program=$(realpath "$2")
# shellcheck source-path=SCRIPTDIR source=hosts.sh
source "$(dirname "${BASH_SOURCE[0]}")/hosts.sh"
hosts_up 2

# works <hosts> <the host of each rank> <further flags>
works() {
  run on_host node1 timeout 100 "$bin/fedrun" -H "$1" -x TEST_HOSTS="$2" --gpu-across-hosts mpi "${@:3}" \
    "$program" --gtest_filter='Allreduce*:AllreduceOf*:Scale*:Wire*:Groups*:Join*'
  expect_status 0
  expect_output PASSED
  echo "passed on $1"
}

works node1:2,node2:2 0011
works node1:2,node2:1 001 --gpu-staged-below 0
works node1:2,node2:2 0011 -x STAND_IN_GPUS=1
