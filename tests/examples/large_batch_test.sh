#!/usr/bin/env bash
# Both ways of training with large batches get there.
set -euo pipefail
bin=$1

for method in lars adasum; do
  output=$("$bin/fedrun" --no-prefix -np 2 "$bin/large_batch" --method $method --epochs 3 --batch-size 500)
  tail -1 <<<"$output"
  accuracy=$(sed -nE 's/^Test accuracy on 4000 images of .*: ([0-9.]+) %$/\1/p' <<<"$output")
  awk -v accuracy="$accuracy" 'BEGIN { exit !(accuracy > 95) }' || { echo "FAILED: $method reached $accuracy %"; exit 1; }
done
code=0
message=$("$bin/fedrun" -np 1 "$bin/large_batch" --method lamb 2>&1) || code=$?
[[ $code == 1 && $message == *"'lamb'"*"lars, adasum, sgd"* ]] || { echo "FAILED: $message"; exit 1; }
