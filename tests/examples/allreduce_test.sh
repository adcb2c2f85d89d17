#!/usr/bin/env bash
# Runs the first example and its benchmark as the README shows them.
set -euo pipefail
bin=$1

output=$("$bin/fedrun" -np 3 "$bin/allreduce" | sort)
echo "$output"
[[ $(grep -c "sum 6, weighted mean 13.3333" <<<"$output") == 3 ]]
[[ $output == "[0] rank 0 of 3"*"[1] rank 1 of 3"*"[2] rank 2 of 3"* ]]

"$bin/allreduce" | grep -F "rank 0 of 1" | grep -F "(self backend): sum 1, weighted mean 0.0000"

output=$("$bin/fedrun" --no-prefix -np 2 "$bin/allreduce_bench" -b 1024 -e 65536 -n 3)
echo "$output"
[[ $(awk '$1 ~ /^[0-9]+$/ && $NF == 0' <<<"$output" | wc -l) == 4 ]] # four sizes, nothing wrong
! "$bin/fedrun" -np 2 "$bin/allreduce_bench" --no-such-flag
