# What the tests of faults share. Needs: fedrun, program; counts failures.
output=$(mktemp)
begin=$(mktemp)
trap 'rm -f "$output" "$begin"' EXIT
failures=0

complain() {
  echo "FAILED: $*"
  cat "$output"
  failures=$((failures + 1))
}

# check <name> <ranks> <how> <failing rank> <exit code> <text that must appear exactly once>
check() {
  timeout 60 "$fedrun" -np "$2" ${fedrun_flags[@]+"${fedrun_flags[@]}"} "$program" "$3" "$4" >"$output" 2>&1
  local code=$?
  [[ $code == "$5" ]] || complain "$1: exit code $code, expected $5"
  if [[ -n ${6:-} ]]; then
    local times
    times=$(grep -cF -- "$6" "$output")
    [[ $times == 1 ]] || complain "$1: '$6' appears $times times"
  fi
  local pid
  while read -r pid; do
    ! kill -0 "$pid" 2>/dev/null || complain "$1: process $pid is still there"
  done < <(sed -nE 's/.*pid ([0-9]+).*/\1/p' "$output")
}

# Says what is wrong, if anything, and ends the test.
finish() {
  local file
  while read -r file; do
    # Other runs on this machine have theirs mapped.
    grep -lqsF -- "$file" /proc/[0-9]*/maps || complain "left in /dev/shm: $file"
  done < <(find /dev/shm -maxdepth 1 -type f -newer "$begin" 2>/dev/null)
  ((failures == 0)) && echo "every failure was reported once and left nothing behind"
  exit $((failures > 0))
}
