#!/bin/bash
# What ranks write arrives whole, with its rank in front, on the screen and in files.
. "$(dirname "$0")/launched.sh"

# Lines of several ranks at once stay whole, however they are written.
cat > pieces.sh <<'PROGRAM'
#!/bin/bash
for i in 1 2 3 4 5; do
  printf 'first half of %s from rank %s, ' "$i" "$OMPI_COMM_WORLD_RANK"
  sleep 0.02
  printf 'größe → 東京\n'
done
PROGRAM
cat > long_lines.sh <<'PROGRAM'
#!/bin/bash
head -c 10000000 /dev/zero | tr '\0' "$OMPI_COMM_WORLD_RANK"
echo
PROGRAM
cat > bar.sh <<'PROGRAM'
#!/bin/bash
printf '10 %%\r20 %%\rdone\n'
PROGRAM
cat > both.sh <<'PROGRAM'
#!/bin/bash
echo "out of $OMPI_COMM_WORLD_RANK"
echo "err of $OMPI_COMM_WORLD_RANK" >&2
printf 'no newline'
PROGRAM
chmod +x ./*.sh

run -np 3 ./pieces.sh
for rank in 0 1 2; do
  expect_equal "lines of rank $rank" 5 "$(grep -c "^\[$rank\] first half of [1-5] from rank $rank, größe → 東京\$" out.txt)"
done
expect_equal "no other lines" 15 "$(wc -l < out.txt)"

run -np 2 ./long_lines.sh
for rank in 0 1; do
  expect_equal "a line of 10 MB of rank $rank among others" "10000005" "$(grep "^\[$rank\]" out.txt | wc -c)"
done
expect_equal "nothing else" "[0] 0 [1] 1" "$(tr -s 01 < out.txt | sort | tr '\n' ' ' | sed 's/ $//')"

run -np 2 ./bar.sh
for rank in 0 1; do
  expect_contains "a progress bar of rank $rank" "[$rank] 10 %"$'\r'"[$rank] 20 %"$'\r'"[$rank] done" "$out"
done

run -np 1 ./bar.sh
printf '10 %%\r20 %%\rdone\n' | cmp - out.txt || fail "a single rank's output is changed"
run --no-prefix -np 2 ./bar.sh
expect_equal "--no-prefix" 0 "$(grep -c '\[' out.txt)"
run --timestamps -np 2 ./both.sh
expect_equal "--timestamps" 2 "$(grep -Ec '^\[[01] [0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}\] out of [01]$' out.txt)"

run --output-dir logs/new -np 2 ./both.sh
expect_equal "exit code of --output-dir" 0 "$code"
for rank in 0 1; do
  expect_equal "stdout of rank $rank" "out of $rank
no newline" "$(cat logs/new/rank.$rank/stdout)"
  expect_equal "stderr of rank $rank" "err of $rank" "$(cat logs/new/rank.$rank/stderr)"
  expect_contains "the screen shows it, too" "[$rank] out of $rank" "$out"
done
touch a_file
run --output-dir a_file/x -np 2 ./both.sh
expect_equal "exit code of an impossible --output-dir" 2 "$code"
expect_contains "an impossible --output-dir" "--output-dir: cannot make a_file/x" "$err"

# Both streams in one file: lines of one never break into those of the other.
"$fedrun" -np 4 bash -c 'for i in $(seq 500); do echo "out $i"; echo "err $i" >&2; done' > mixed.txt 2>&1 < /dev/null
expect_equal "two streams in one file" 4000 "$(grep -Ec '^\[[0-3]\] (out|err) [0-9]+$' mixed.txt)"

# 100,000 short lines of 4 ranks: none is lost, none out of order.
run -np 4 bash -c 'seq -f "line %.0f of $OMPI_COMM_WORLD_RANK" 25000'
for rank in 0 1 2 3; do
  seq -f "[$rank] line %.0f of $rank" 25000 | cmp - <(grep "^\[$rank\]" out.txt) || fail "lines of rank $rank are lost"
done

# A reader that goes away ends the run.
begin=$SECONDS
"$fedrun" -np 2 bash -c "echo \$\$ > pids/\$OMPI_COMM_WORLD_RANK; exec yes" 2> err.txt < /dev/null | head -1 > /dev/null
[ $((SECONDS - begin)) -le 8 ] || fail "a run whose reader had gone took $((SECONDS - begin)) s to end"
expect_contains "a reader that has gone" "nobody reads standard output any more" "$(cat err.txt)"
expect_no_rank_left "a reader that has gone" 2
finish
