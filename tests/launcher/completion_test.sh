#!/bin/bash
# The completions offer what the table of flags has, and the man page is one that groff reads without a warning.
. "$(dirname "$0")/launched.sh"

"$fedrun" --completion bash > completion.bash || fail "fedrun --completion bash"
# shellcheck disable=SC1091
. ./completion.bash
touch data.txt 'two words.txt'
mkdir folder

complete_words() {  # the words of a command line; the last is the one to complete
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  _fedrun
}
expect_offered() {  # what is offered, then the words
  complete_words "${@:2}"
  printf '%s\n' "${COMPREPLY[@]}" | grep -Fxq -- "$1" || fail "'${*:2}' offers no $1: ${COMPREPLY[*]}"
}
expect_offers() {  # all that is offered, then the words
  complete_words "${@:2}"
  expect_equal "'${*:2}'" "$1" "${COMPREPLY[*]}"
}
expect_offered --hostfile fedrun --host
expect_offered --hostfile fedrun -np 2 --host
expect_offered -np fedrun -
expect_offers --hostfile fedrun check --hostf
expect_offers "core socket none" fedrun --bind ''
expect_offers core fedrun --bind co
expect_offers core fedrun --bind = co
expect_offers "core socket none" fedrun --bind =
expect_offers "auto self shm mpi" fedrun -np 2 --backend ''
expect_offers "debug" fedrun --log-level d
expect_offers "bash zsh" fedrun --completion ''
expect_offers data.txt fedrun --hostfile data
expect_offers data.txt fedrun --config = data
expect_offers folder fedrun --output-dir f
expect_offers "" fedrun -np ''
export FEDRUN_FOR_THE_TEST=1
expect_offers FEDRUN_FOR_THE_TEST fedrun -x FEDRUN_FOR
expect_offered check fedrun ch
expect_offered bash fedrun -np 2 bas
expect_offered bash fedrun --verbose -- bas
# Everything behind the program is the program's.
expect_offers data.txt fedrun -np 2 ./train d
expect_offers "" fedrun ./train --hostf
expect_offers "two words.txt" fedrun ./train two
expect_offers "" fedrun -np 2 ./train check --bind sock

if command -v zsh > /dev/null; then
  "$fedrun" --completion zsh > _fedrun || fail "fedrun --completion zsh"
  zsh -n _fedrun || fail "zsh does not read its completion"
fi

"$fedrun" --man-page > fedrun.1 || fail "fedrun --man-page"
if command -v groff > /dev/null; then
  expect_equal "groff's warnings" "" "$(groff -man -Tascii -ww -rLL=100n fedrun.1 2>&1 > page.txt)"
  page=$(sed 's/.\x08//g; s/\x1b\[[0-9;]*m//g' page.txt)
  for part in NAME "fedrun - run a program" "-np, -n, --num-proc, --np N" "Where to run" FEDRUN_THREADS "EXIT STATUS"; do
    expect_contains "man page" "$part" "$page"
  done
else
  echo "there is no groff: the man page is not read"
fi
finish
