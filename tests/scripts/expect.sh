# Checks for the shell tests; sourced by them. The first check that does not hold ends the test with exit code 1.
# shellcheck shell=bash

# Every test works below $sandbox, which goes away with it, as do the processes listed in $background; what else there
# is to undo is done by the functions listed in $at_exit.
sandbox=$(mktemp -d)
background=()
at_exit=()
leave() {
  local status=$? undo
  for undo in "${at_exit[@]}"; do "$undo"; done
  ((${#background[@]} == 0)) || kill "${background[@]}" 2>/dev/null || true
  rm -rf "$sandbox"
  exit "$status"
}
trap leave EXIT

complain() {
  printf 'FAILED: %s\n' "$1" >&2
  printf '  output of the last run:\n%s\n' "${output:-}" >&2
  exit 1
}

# Runs a command; its exit code is in $status and its output, errors included, in $output.
run() {
  status=0
  output=$("$@" 2>&1) || status=$?
}

expect_status() { [[ $status == "$1" ]] || complain "exit code $status instead of $1"; }
expect_output() { [[ $output == *"$1"* ]] || complain "the output lacks: $1"; }
expect_no_output() { [[ $output != *"$1"* ]] || complain "the output has: $1"; }
expect_equal() { [[ $1 == "$2" ]] || complain "$(printf 'got\n%s\ninstead of\n%s' "$1" "$2")"; }

# Waits for a condition that another process brings about.
eventually() {
  local attempt
  for ((attempt = 0; attempt < 200; ++attempt)); do
    if "$@"; then return; fi
    sleep 0.05
  done
  complain "never came true: $*"
}
