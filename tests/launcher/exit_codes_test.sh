#!/bin/bash
# fedrun's exit code is the program's, one message says what went wrong, and a failing rank takes the others with it.
. "$(dirname "$0")/launched.sh"

run true
expect_equal "success" "0//" "$code/$out/$err"
run -np 3 true
expect_equal "more ranks than cores" "0//" "$code/$out/$err"
run -H localhost:3 true
expect_equal "more slots than cores" "0//" "$code/$out/$err"

run -np 3 ./rank.sh exit 1 3
expect_equal "a rank that exits with 3" 3 "$code"
expect_contains "a rank that exits with 3" "exited with code 3" "$err"
expect_equal "one line" 1 "$(wc -l < err.txt)"
[ "$seconds" -le 5 ] || fail "the other ranks took $seconds s to end"
expect_no_rank_left "exit 3" 0

run -np 3 ./rank.sh die 2 KILL
expect_equal "a rank that is killed" 137 "$code"
expect_contains "a rank that is killed" "signal 9 (Killed)" "$err"
expect_equal "one line" 1 "$(wc -l < err.txt)"
expect_no_rank_left "die KILL" 0

expect_refused() {  # exit code, message, arguments...
  local expected_code=$1 message=$2
  shift 2
  run "$@"
  expect_equal "exit code of fedrun $*" "$expected_code" "$code"
  expect_contains "message of fedrun $*" "$message" "$err"
  expect_equal "output of fedrun $*" "" "$out"
}
touch notes.txt
expect_refused 127 "fedrun: ./nowhere does not exist" -np 2 ./nowhere
expect_refused 127 "fedrun: rank.sh is not on PATH; did you mean ./rank.sh?" -np 2 rank.sh
expect_refused 126 "fedrun: ./notes.txt is not executable" -np 2 ./notes.txt
expect_refused 126 "fedrun: ./pids is not a program" -np 2 ./pids
expect_refused 2 "fedrun: which program shall run?"
expect_refused 2 "fedrun: -np: '0' is not a whole number" -np 0 true
expect_refused 2 "fedrun: -np: '-1' is not a whole number" -np -1 true
expect_refused 2 "fedrun: unknown option '--nonsense'" --nonsense true
expect_refused 2 "try 'fedrun --help'" --nonsense true
expect_refused 2 "fedrun: -np 3 needs 3 slots, but the hosts have 2" -np 3 -H localhost:2 true
expect_refused 2 "fedrun: cannot read the host file nowhere: No such file or directory" --hostfile nowhere true
printf 'a\nb 3\n' > hosts.txt
expect_refused 2 "hosts.txt:2: 'b 3' is not understood" --hostfile hosts.txt true
FEDRUN_THREADS=many expect_refused 2 "FEDRUN_THREADS='many' is not valid" true
expect_equal "no mpirun" "fedrun: mpirun is not on PATH: run scripts/setup.sh, or install the Debian package openmpi-bin
exit code 1" "$(PATH=$work "$fedrun" ./rank.sh 2>&1; echo "exit code $?")"

run --version
expect_contains "--version" "fedrun 0." "$out"
run --help
expect_contains "--help" "FEDRUN_THREADS" "$out"
run --check-build
expect_equal "--check-build" 0 "$code"
expect_contains "--check-build" "mpirun      Open MPI" "$out"
finish
