#!/usr/bin/env bash
# One epoch on the real MNIST files, where they are to be found.
set -euo pipefail
bin=$1
data=${FEDRUN_TEST_DATA:-$2/../shared/data}/mnist
if [[ ! -d $data ]]; then
  echo "SKIPPED: no MNIST in $data; set FEDRUN_TEST_DATA to the directory that holds mnist/"
  exit 77
fi

output=$("$bin/fedrun" --no-prefix -np 2 "$bin/mnist" --data-dir "$data" --epochs 1)
tail -3 <<<"$output"
grep -F 'Epoch [1/1], Step [300/300]' <<<"$output" >/dev/null
accuracy=$(sed -nE 's/^Test accuracy on 10000 images of MNIST: ([0-9.]+) %$/\1/p' <<<"$output")
awk -v accuracy="$accuracy" 'BEGIN { exit !(accuracy > 95) }'
