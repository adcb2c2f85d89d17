#!/bin/bash
# On a terminal: Ctrl-C ends the ranks, the program can ask the user, and it learns the width.
. "$(dirname "$0")/launched.sh"
command -v script > /dev/null || { echo "SKIPPED: there is no script(1)"; exit 77; }

# Runs fedrun on a pseudo-terminal of 77 columns; what the user types comes from standard input, which must stay open
# until fedrun has ended, because script(1) ends with it. Ctrl-C reaches the shell inside as well, and without the trap
# a plain sh, which script(1) takes where SHELL is not set, would end before fedrun does.
on_terminal() {
  script -qec "trap : INT; stty cols 77 rows 20; '$fedrun' $*; echo exit code \$?" /dev/null | tee terminal.txt
}
terminal_shows() { grep -q "$1" terminal.txt 2> /dev/null; }
wait_for_end() { wait_until 30 terminal_shows "exit code"; }

cat > columns.sh <<'PROGRAM'
#!/bin/bash
echo "columns: $FEDRUN_TERMINAL_COLUMNS"
PROGRAM
cat > ask.sh <<'PROGRAM'
#!/bin/bash
echo 'your name?'
read -r name
echo "hello $name"
PROGRAM
chmod +x ./*.sh

expect_contains "width" "columns: 77" "$(wait_for_end | on_terminal -np 1 ./columns.sh)"
rm terminal.txt
text=$(wait_for_end | on_terminal -np 2 ./columns.sh)
expect_contains "width beside the rank" "columns: 73" "$text"
expect_contains "colour of the rank" $'\033[33m[1]\033[0m columns' "$text"

rm terminal.txt
text=$({ wait_until 30 terminal_shows "your name"; echo Ada; wait_for_end; } | on_terminal -np 1 ./ask.sh)
expect_contains "answer" "hello Ada" "$text"

rm terminal.txt
text=$({ wait_until 30 ranks_have_started 2; printf '\003'; wait_for_end; } | on_terminal -np 2 ./rank.sh stay)
expect_contains "Ctrl-C" "fedrun: Interrupt: ending all ranks" "$text"
expect_contains "Ctrl-C" "exit code 130" "$text"
expect_no_rank_left "Ctrl-C" 0
finish
