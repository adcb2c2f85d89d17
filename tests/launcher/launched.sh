# Sourced by the tests in this folder: a scratch directory, fedrun with captured output, and checks that can fail.
# Each test is called with the directory of the built programs.
set -u
fedrun=$(realpath "$1")/fedrun
[ -x "$fedrun" ] || { echo "FAILED: there is no $fedrun"; exit 1; }
command -v mpirun > /dev/null || { echo "SKIPPED: there is no mpirun"; exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
mkdir pids
failures=0

# A rank does what its first argument says. It tells its process id when it is ready, so that tests can see it end.
cat > rank.sh <<'PROGRAM'
#!/bin/bash
rank=$OMPI_COMM_WORLD_RANK
ready() { echo $$ > "pids/$rank"; }
end_in_order() {  # mpirun kills the others as soon as one has ended
  touch "pids/$rank.ended_in_order"
  kill $! 2> /dev/null
  exit 1
}
case $1 in
  exit) ready; [ "$rank" = "$2" ] && exit "$3"; sleep 300 ;;  # rank $2 exits with code $3, the others stay
  die) ready; [ "$rank" = "$2" ] && kill -"$3" $$; sleep 300 ;;  # rank $2 gets signal $3
  stay) trap end_in_order TERM; sleep 300 & ready; wait ;;
  stay_stubbornly) trap '' TERM INT HUP; ready; while :; do sleep 1; done ;;
esac
PROGRAM
chmod +x rank.sh

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

expect_equal() {  # what, expected, actual
  [ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"
}

expect_contains() {  # what, part, text
  case $3 in *"$2"*) ;; *) fail "$1: expected '$2' in '$3'" ;; esac
}

# Runs fedrun to its end; sets code, out, err and seconds.
run() {
  local begin=$SECONDS
  "$fedrun" "$@" > out.txt 2> err.txt < /dev/null
  code=$?
  out=$(cat out.txt) err=$(cat err.txt) seconds=$((SECONDS - begin))
}

# The text without the ranks in front of its lines.
unprefixed() { sed 's/^\[ *[0-9]*\] //' "$@"; }

# Zombies do not count: they have ended, only nobody has asked how.
is_alive() { [ -e "/proc/$1/stat" ] && ! grep -q '^State:.Z' "/proc/$1/status" 2> /dev/null; }

wait_until() {  # seconds, command...
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $deadline ] || return 1
    sleep 0.05
  done
}

ranks_have_started() { [ "$(cat pids/* 2> /dev/null | wc -l)" = "$1" ]; }
some_rank_ended_in_order() { ls pids/*.ended_in_order > /dev/null 2>&1; }
ranks_have_ended() {
  local pid
  for pid in $(cat pids/*); do ! is_alive "$pid" || return 1; done
}

expect_no_rank_left() {  # what, seconds
  wait_until "$2" ranks_have_ended ||
    fail "$1: a rank is still there after $2 s: $(cat pids/* | xargs ps -o pid,args -p)"
  rm -f pids/*
}

finish() {
  [ $failures = 0 ] && echo "all passed"
  exit $((failures > 0))
}
