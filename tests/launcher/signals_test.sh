#!/bin/bash
# However fedrun or mpirun ends, no rank outlives it.
. "$(dirname "$0")/launched.sh"

# Starts fedrun in the background and waits for its ranks. A shell lets those ignore SIGINT; env undoes that.
start() {  # ranks, arguments...
  local ranks=$1
  shift
  env --default-signal=INT "$fedrun" -np "$ranks" "$@" > out.txt 2> err.txt < /dev/null &
  pid=$!
  wait_until 30 ranks_have_started "$ranks" || fail "the ranks did not start: $(cat err.txt)"
}
finished() {  # sets code, err and seconds
  local begin=$SECONDS
  wait "$pid"
  code=$? err=$(cat err.txt) seconds=$((SECONDS - begin))
}
mpirun_of() { cat "/proc/$1/task/$1/children"; }

for signal in INT TERM HUP; do
  start 2 ./rank.sh stay
  kill -$signal "$pid"
  finished
  expect_equal "exit code after SIG$signal" $((128 + $(kill -l $signal))) "$code"
  expect_contains "message after SIG$signal" "ending all ranks" "$err"
  expect_equal "lines after SIG$signal" 1 "$(wc -l < err.txt)"
  [ "$seconds" -le 5 ] || fail "SIG$signal took $seconds s"
  some_rank_ended_in_order || fail "after SIG$signal no rank could end in order"
  expect_no_rank_left "SIG$signal" 0
done

start 2 ./rank.sh stay_stubbornly
kill -TERM "$pid"
finished
expect_equal "exit code of stubborn ranks" 143 "$code"
[ "$seconds" -le 5 ] || fail "stubborn ranks took $seconds s"
expect_no_rank_left "stubborn ranks" 0

start 2 ./rank.sh stay_stubbornly
begin=$(date +%s%N)
kill -INT "$pid"
sleep 0.4
kill -INT "$pid"
finished
expect_equal "exit code after two signals" 130 "$code"
elapsed_ms=$((($(date +%s%N) - begin) / 1000000))
[ $elapsed_ms -le 1500 ] || fail "the second signal did not end stubborn ranks at once, but after $elapsed_ms ms"
expect_no_rank_left "two signals" 0

# timeout signals fedrun and then its whole process group; that counts as one signal.
timeout 2 "$fedrun" -np 2 ./rank.sh stay > out.txt 2> err.txt < /dev/null
expect_equal "exit code under timeout" 124 $?
expect_equal "lines under timeout" 1 "$(wc -l < err.txt)"
some_rank_ended_in_order || fail "under timeout no rank could end in order"
expect_no_rank_left "timeout" 0

start 2 ./rank.sh stay
kill -KILL "$pid"
finished
expect_no_rank_left "SIGKILL of fedrun" 5

start 2 ./rank.sh stay
kill -KILL $(mpirun_of "$pid")
finished
expect_equal "exit code after SIGKILL of mpirun" 137 "$code"
expect_contains "message after SIGKILL of mpirun" "fedrun: mpirun was ended by signal 9 (Killed)" "$err"
expect_no_rank_left "SIGKILL of mpirun" 0

# Only what mpirun has started is fedrun's to end, not what a shell had started before it became fedrun.
(sleep 301 & echo $! > other.txt; exec "$fedrun" -np 2 ./rank.sh exit 0 3) 2> err.txt < /dev/null
is_alive "$(cat other.txt)" || fail "fedrun has ended a process that is not its own"
kill "$(cat other.txt)"
expect_no_rank_left "exec fedrun" 0

# nohup: what was ignored before stays so.
(trap '' HUP; exec "$fedrun" -np 1 ./rank.sh stay > out.txt 2> err.txt < /dev/null) &
pid=$!
wait_until 30 ranks_have_started 1 || fail "the rank did not start"
kill -HUP "$pid"
sleep 0.5
is_alive "$pid" || fail "SIGHUP ended fedrun although it was ignored"
kill -TERM "$pid"
finished
expect_equal "exit code under nohup" 143 "$code"
expect_no_rank_left "nohup" 0
finish
