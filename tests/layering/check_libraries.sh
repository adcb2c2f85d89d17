#!/usr/bin/env bash
# Fails when a build without CUDA loads CUDA or NCCL, or one with them does not find them.
set -euo pipefail
bin=${1:?usage: check_libraries.sh BIN_DIRECTORY on|off PROGRAM…}
cuda=${2:?is CUDA on or off?}
shift 2

for program in "$bin/fedrun" "$@"; do
  libraries=$(ldd "$program")
  if grep -q 'not found' <<<"$libraries"; then
    echo "$program misses libraries:"
    grep 'not found' <<<"$libraries"
    exit 1
  fi
  if [[ $cuda == off ]] && grep -E 'libcuda|libnccl' <<<"$libraries"; then
    echo "$program needs them, and this build is one without CUDA"
    exit 1
  fi
done
if [[ $cuda == on ]] && ! { ldd "$1" | grep -q libnccl && ldd "$1" | grep -q libcudart; }; then
  echo "$1 is linked without CUDA or NCCL, and this build is one with them"
  exit 1
fi
echo "the libraries are as they should be"
