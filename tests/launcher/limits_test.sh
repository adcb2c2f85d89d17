#!/bin/bash
# Time limits, ranks that do not come up, and the debugger.
. "$(dirname "$0")/launched.sh"
program=$2 # makes a Session, which a shell script cannot

run --timeout 1 -np 2 ./rank.sh stay
expect_equal "exit code of --timeout" 124 "$code"
expect_contains "--timeout" "fedrun: the run has taken 1 s, its --timeout: ending all ranks" "$err"
some_rank_ended_in_order || fail "--timeout: no rank could end in order"
expect_no_rank_left "--timeout" 0

run --timeout 20 --start-timeout 20 -np 2 "$program" none 0
expect_equal "a run within its limits" 0 "$code"
run --start-timeout 2 -np 2 true
expect_equal "a program that ends without a Session" 0 "$code"

cat > hang_at_start.sh <<'PROGRAM'
#!/bin/bash
echo $$ > "pids/$OMPI_COMM_WORLD_RANK"
[ "$OMPI_COMM_WORLD_RANK" = 1 ] && exec sleep 300
exec "$@"
PROGRAM
chmod +x hang_at_start.sh
run --start-timeout 2 -np 3 ./hang_at_start.sh "$program" none 0
expect_equal "exit code of a rank that hangs at its start" 124 "$code"
expect_contains "a rank that hangs at its start" \
  "fedrun: rank 1 on $(hostname) started, but made no fedrun::Session within 2 s" "$err"
[ "$seconds" -le 7 ] || fail "a rank that hangs at its start took $seconds s"
expect_no_rank_left "a rank that hangs at its start" 0

# Without a limit the run goes on, and says what it waits for.
"$fedrun" -np 2 ./hang_at_start.sh "$program" none 0 > out.txt 2> err.txt < /dev/null &
pid=$!
wait_until 15 grep -q 'waiting for the ranks to come up, 5 s so far: .*: 2 of 2 started, 0 connected' err.txt ||
  fail "no progress while a rank hangs at its start: $(cat err.txt)"
kill -TERM $pid
wait $pid
expect_no_rank_left "progress" 0

run -np 2 --debug-rank 2 true
expect_equal "exit code of a rank that does not exist" 2 "$code"
expect_contains "a rank that does not exist" "--debug-rank 2: the run has the ranks 0 to 1" "$err"

if command -v gdbserver > /dev/null && command -v gdb > /dev/null; then
  "$fedrun" -np 2 --debug-rank 1 "$program" none 0 > out.txt 2> err.txt < /dev/null &
  pid=$!
  wait_until 15 grep -q 'Listening on port 5679' err.txt || fail "gdbserver does not listen: $(cat err.txt)"
  line=$(sed -n 's/^fedrun: rank 1 waits for a debugger: //p' err.txt)
  expect_equal "the line to attach" "gdb -ex 'target remote $(hostname):5679' $program" "$line"
  timeout 60 bash -c "${line/$(hostname):/localhost:} -batch -ex continue" > gdb.txt 2>&1 < /dev/null
  expect_contains "gdb sees the rank end" "exited normally" "$(cat gdb.txt)"
  wait $pid
  expect_equal "exit code after debugging" 0 $?
else
  echo "not tested: there is no gdb and gdbserver here"
fi
if command -v tmux > /dev/null && command -v gdb > /dev/null; then
  unset DISPLAY
  "$fedrun" -np 2 --debug-rank 0 --debug-with gdb "$program" none 0 > out.txt 2> err.txt < /dev/null &
  pid=$!
  wait_until 15 tmux -L fedrun-rank-0 has-session 2> /dev/null || fail "no tmux session: $(cat err.txt)"
  expect_contains "how to attach" "tmux -L fedrun-rank-0 attach" "$(cat err.txt)"
  tmux -L fedrun-rank-0 send-keys run Enter
  wait_until 30 eval "tmux -L fedrun-rank-0 capture-pane -p | grep -q 'exited normally'" || fail "gdb in tmux does not run"
  tmux -L fedrun-rank-0 send-keys quit Enter
  wait $pid
  expect_equal "exit code after gdb" 0 $?
  ! tmux -L fedrun-rank-0 has-session 2> /dev/null || fail "tmux is still there"
else
  echo "not tested: there is no tmux and gdb here"
fi

# --bind gives each rank its own cores; without it they have all.
cores=$(nproc)
if [ "$cores" -ge 2 ]; then
  run -np 2 --bind core bash -c 'grep Cpus_allowed_list /proc/self/status'
  expect_equal "cores of two ranks" 2 "$(unprefixed out.txt | sort -u | wc -l)"
  run -np 2 bash -c 'nproc'
  expect_equal "cores without --bind" "$cores $cores" "$(unprefixed out.txt | tr '\n' ' ' | sed 's/ $//')"
fi
run -np $((2 * cores)) --bind core nproc
expect_equal "more ranks than cores" "0 $((2 * cores))" "$code $(grep -c '\] 1$' out.txt)"
finish
