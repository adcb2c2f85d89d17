#!/usr/bin/env bash
# Processes that wait for nothing, or for a rank that is late, use no processor time.
set -uo pipefail
fedrun=$1/fedrun
program=$2
output=$(mktemp)
trap 'rm -f "$output"' EXIT
timeout 60 "$fedrun" -np 2 "$program" idle 1 >"$output" 2>&1 || { echo FAILED; cat "$output"; exit 1; }
cat "$output"
# Per rank: seconds of processor time in 4 s without work, and in 4 s of waiting for the other rank.
awk '/used/ { if ($3 > 0.02) { print "FAILED: rank used " $3 " s"; bad = 1 } n++ } END { exit bad || n != 4 }' "$output"
