#!/usr/bin/env bash
# Trains on synthetic digits: the lines that users see, the accuracy, and the same result twice.
set -euo pipefail
bin=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

train() { "$bin/fedrun" --no-prefix -np "$1" "$bin/mnist" --epochs 1 "${@:3}" --json "$work/$2.jsonl" >"$work/$2.txt"; }

train 2 first
cat "$work/first.txt"
grep -E '^Epoch \[1/1\], Step \[50/100\], Loss: [0-9]+\.[0-9]{4}, Accuracy: [01]\.[0-9]{2}$' "$work/first.txt" >/dev/null
grep -F 'of synthetic digits: ' "$work/first.txt" >/dev/null
python3 - "$work/first.jsonl" <<'CHECK'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert [line["event"] for line in lines] == ["step", "step", "epoch", "test"], lines
assert lines[-1]["synthetic"] is True and lines[-1]["images"] == 4000, lines[-1]
assert lines[-1]["accuracy"] > 0.85, lines[-1]
CHECK

# Same seed, same numbers, to the last digit; another seed, others.
train 2 second
diff <(grep -v '"epoch","samples' "$work/first.jsonl" | grep -v seconds) <(grep -v seconds "$work/second.jsonl")
train 2 other --seed 2
! diff -q <(grep -v seconds "$work/first.jsonl") <(grep -v seconds "$work/other.jsonl") >/dev/null

# Odd numbers of ranks, and one without a launcher.
train 3 three
"$bin/mnist" --epochs 1 | tail -1

# --help is shown once and is no error.
[[ $("$bin/fedrun" -np 2 "$bin/mnist" --help | grep -c -- --epochs) == 1 ]]

# Mistakes end with one message and a code that is not 0.
expect_error() { # expect_error <text> <arguments of mnist>
  local text=$1 output
  shift
  if output=$("$bin/fedrun" -np 2 "$bin/mnist" "$@" 2>&1); then
    echo "no error for $*"
    return 1
  fi
  [[ $(grep -cF -- "$text" <<<"$output") == 1 ]] || { echo "'$text' not exactly once in: $output" && return 1; }
}
expect_error "no-such-flag" --no-such-flag
expect_error "--epochs and --batch-size must be at least 1" --epochs 0
expect_error "train-images-idx3-ubyte" --data-dir "$work/nothing-here"
expect_error "cannot write --json file" --json "$work/no/such/directory/x.jsonl"
expect_error "unexpected argument 'stray'" stray
