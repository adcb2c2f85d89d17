#!/usr/bin/env bash
# A program with CUDA and NCCL finds both, and on a machine without a GPU says why it uses the CPU; a build without them
# loads neither.
set -euo pipefail
bin=$1
program=$2
build_has_cuda=$3

libraries=$(ldd "$program")
echo "$libraries"
[[ $libraries == *libnccl.so.2* && $libraries == *libcudart.so* && $libraries != *"not found"* ]]
if [[ $build_has_cuda == 0 ]]; then
  for ordinary in fedrun allreduce allreduce_bench; do
    ! ldd "$bin/$ordinary" | grep -E 'nccl|cudart'
  done
fi

if [[ -e /dev/nvidiactl ]]; then
  echo "SKIPPED: this machine has a GPU, and what follows is about its absence"
  exit 77
fi
output=$("$bin/fedrun" -np 2 "$program" 2>&1)
echo "$output"
[[ $(grep -c "this run uses the CPU, and no GPU: CUDA says on host" <<<"$output") == 1 ]] # one line, not one per rank
[[ $(grep -c "sum 3, weighted mean 6.6667" <<<"$output") == 2 ]]

output=$("$bin/fedrun" -np 2 --device cuda "$program" 2>&1) && exit 1
echo "$output"
[[ $output == *"FEDRUN_DEVICE=cuda: CUDA says on host"*"unset it, or use cpu"* ]]
output=$("$bin/fedrun" -np 2 --device cpu "$program" 2>&1)
[[ $output != *GPU* ]]
