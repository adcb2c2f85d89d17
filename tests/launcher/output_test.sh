#!/bin/bash
# All that ranks write arrives, and an error that several ranks report is shown once.
. "$(dirname "$0")/launched.sh"

cat > long_line.sh <<'PROGRAM'
#!/bin/bash
[ "$OMPI_COMM_WORLD_RANK" = 0 ] && { head -c 10000000 /dev/zero | tr '\0' x; echo; echo end; } >&2
exit 0
PROGRAM
cat > many_lines.sh <<'PROGRAM'
#!/bin/bash
seq -f "rank $OMPI_COMM_WORLD_RANK line %g" 20000 >&2
PROGRAM
cat > report.sh <<'PROGRAM'
#!/bin/bash
rank=$OMPI_COMM_WORLD_RANK
echo "rank $rank works" >&2
touch "worked.$rank"
until [ -e worked.0 ] && [ -e worked.1 ] && [ -e worked.2 ]; do sleep 0.01; done
[ "$rank" = 0 ] || sleep 0.3
printf 'fedrun: rank %s on here: UsageError: no data\n  looked in there\n' "$rank" >&2
touch "reported.$rank"
until [ -e reported.0 ] && [ -e reported.1 ] && [ -e reported.2 ]; do sleep 0.01; done
sleep 0.3
exit 9
PROGRAM
cat > prompt.sh <<'PROGRAM'
#!/bin/bash
printf '[y/n] ' >&2  # mpirun's own lines begin with a bracket, too
sleep 300
PROGRAM
chmod +x ./*.sh

run -np 2 ./long_line.sh
expect_equal "exit code of a long line" 0 "$code"
expect_equal "a line of 10 MB" "10000005 [0] x" "$(head -1 err.txt | wc -c) $(head -1 err.txt | tr -s x)"
expect_equal "the line after it" "[0] end" "$(tail -1 err.txt)"

run -np 1 ./many_lines.sh
seq -f "rank 0 line %g" 20000 | cmp - err.txt || fail "lines of a rank are not as they were written"
run -np 3 ./many_lines.sh
for rank in 0 1 2; do
  seq -f "[$rank] rank $rank line %g" 20000 | cmp - <(grep "^\[$rank\]" err.txt) || fail "lines of rank $rank among three"
done

run -np 3 ./report.sh
expect_equal "exit code of a report" 9 "$code"
expect_equal "reports" "fedrun: rank 0 on here: UsageError: no data
  looked in there
fedrun: the same error on ranks 1, 2 as on rank 0" "$(grep -A 2 '^fedrun: rank . on here' err.txt)"
expect_equal "other lines" 3 "$(grep -c '^\[.\] rank . works$' err.txt)"
expect_contains "the last line" "on $(hostname) exited with code 9 after " "$(tail -1 err.txt)"

run --verbose -np 2 ./rank.sh exit 1 3
expect_contains "--verbose shows where the ranks run" "rank  host" "$(head -1 err.txt)"
expect_contains "--verbose shows the command" "fedrun: FEDRUN_TERMINAL_COLUMNS=0 mpirun " "$err"
expect_contains "--verbose shows mpirun's messages" "Per user-direction, the job has been aborted" "$err"
rm -f pids/*

"$fedrun" -np 1 ./prompt.sh 2> err.txt < /dev/null &
pid=$!
wait_until 30 grep -q 'y/n' err.txt || fail "a prompt does not appear before its newline"
kill -TERM $pid
wait $pid

# A reader that stops reading neither keeps fedrun from its signals nor fills its memory.
mkfifo stuck
sleep 300 < stuck &
reader=$!
"$fedrun" -np 1 bash -c 'echo $$ > pids/0; exec yes some text >&2' 2> stuck < /dev/null &
pid=$!
wait_until 30 ranks_have_started 1 || fail "the rank did not start"
sleep 2
memory_kb=$(awk '/^VmRSS/ { print $2 }' /proc/$pid/status)
[ "$memory_kb" -le 100000 ] || fail "fedrun has taken $memory_kb kB for output that nobody reads"
kill -TERM $pid
expect_no_rank_left "stuck reader" 8
kill $reader
wait $pid
finish
