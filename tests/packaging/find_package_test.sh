#!/usr/bin/env bash
# Installs fedrun into an empty prefix, builds a small program outside the tree against it, and runs that on two ranks.
set -euo pipefail
build=$1
consumer=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" >"$work/install.log"
cp -r "$consumer" "$work/consumer"
cmake -S "$work/consumer" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$work/prefix"
cmake --build "$work/build"

"$work/prefix/bin/fedrun" --version
output=$("$work/prefix/bin/fedrun" -np 2 "$work/build/consumer")
echo "$output"
[[ $output == *"2 ranks agree on 3"* ]]
