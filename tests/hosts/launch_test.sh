#!/usr/bin/env bash
# fedrun across hosts: ranks where they belong, and, however a run ends, no process and no file left on any host.
set -euo pipefail
bin=$(realpath "$1")
program=$(realpath "$2")
# shellcheck source-path=SCRIPTDIR source=hosts.sh
source "$(dirname "${BASH_SOURCE[0]}")/hosts.sh"
cd "$sandbox"
hosts_up 3
hosts=(node1 node2 node3)

# --- what is checked after each run -------------------------------------------------------------------------------------

# Every host runs its ssh server, and nothing else.
left_on() { on_host "$1" ps -eo pid=,args= | grep -Ev '^ *[0-9]+ (dropbear|ps |env |nsenter )' || true; }
nothing_left() {
  local host
  for host in "${hosts[@]}"; do
    [[ -z $(left_on "$host") && -z $(on_host "$host" ls /dev/shm) ]] || return 1
  done
}
expect_nothing_left() {
  local host
  for ((attempt = 0; attempt < 100; ++attempt)); do
    ! nothing_left || return 0
    sleep 0.05
  done
  for host in "${hosts[@]}"; do output+=$'\n'"$host: $(left_on "$host") $(on_host "$host" ls -R /dev/shm)"; done
  complain "$1: something is left"
}

# A run that lasts until it is ended, with all ranks at work.
start_run() { # layout, flags...
  rm -f started.*
  on_host node1 env --default-signal=INT "$bin/fedrun" -H "$1" "${@:2}" bash -c 'touch "started.$OMPI_COMM_WORLD_RANK"; exec "$0" stop 99' "$program" \
    >run.txt 2>&1 </dev/null &
  run_pid=$!
  eventually all_started "$(tr ',' '\n' <<<"$1" | awk -F: '{ n += $2 } END { print n }')"
  sleep 1
}
all_started() { [[ $(ls started.* 2>/dev/null | wc -l) == "$1" ]]; }
end_of_run() {
  status=0
  wait "$run_pid" || status=$?
  output=$(<run.txt)
}
process_on() { # host, text: the youngest process whose command line begins with it
  on_host "$1" ps --sort=-start_time -eo pid=,args= | awk -v text="$2" '$1 != 1 && index($0, text) == length($1) + index($0, $1) + 1 { print $1; exit }'
}
kill_on() { # signal, host, text
  local pid
  pid=$(process_on "$2" "$3")
  [[ -n $pid ]] || complain "there is no '$3' on $2"
  on_host "$2" kill "-$1" "$pid"
}

# --- ranks where they belong --------------------------------------------------------------------------------------------

for layout in node1:2,node2:2 node1:1,node2:3,node3:2 node3:1,node1:1; do
  run on_host node1 timeout 60 "$bin/fedrun" -H "$layout" bash -c 'echo "rank $OMPI_COMM_WORLD_RANK on $(hostname)"'
  expect_status 0
  rank=0
  for entry in ${layout//,/ }; do
    for ((slot = 0; slot < ${entry#*:}; ++slot)); do
      expect_output "[$rank] rank $rank on ${entry%:*}"
      ((++rank))
    done
  done
done
expect_nothing_left "ordinary runs"

# --- ends of all kinds --------------------------------------------------------------------------------------------------

start_run node1:1,node2:2,node3:1
kill_on KILL node2 "$program stop"
end_of_run
expect_status 137
[[ $(tail -1 run.txt) == "fedrun: rank "[12]" on node2 was ended by signal 9 (Killed) after "* ]] || complain "who is to blame?"
expect_nothing_left "kill -9 of a rank"

start_run node1:1,node2:1
kill_on KILL node2 dropbear # the process of mpirun's connection, not the server
end_of_run
[[ $status != 0 ]] || complain "a lost connection is no success"
expect_output "fedrun: a host could not be reached, or was lost"
expect_output "fedrun: nothing was heard of the end of rank 1 on node2"
expect_nothing_left "kill -9 of an ssh connection"

start_run node1:1,node2:1
kill_on KILL node1 mpirun
end_of_run
expect_status 137
expect_output "fedrun: mpirun was ended by signal 9 (Killed)"
expect_nothing_left "kill -9 of mpirun"

start_run node1:1,node2:1
kill_on KILL node1 "$bin/fedrun -H"
end_of_run
expect_nothing_left "kill -9 of fedrun"

for signal in INT TERM; do
  start_run node1:1,node2:1,node3:1
  begin=$SECONDS
  kill_on $signal node1 "$bin/fedrun -H"
  end_of_run
  ((SECONDS - begin <= 5)) || complain "SIG$signal: took $((SECONDS - begin)) s"
  expect_output "ending all ranks"
  expect_nothing_left "SIG$signal"
done

start_run node1:1,node2:1 --timeout 6
end_of_run
expect_status 124
expect_nothing_left "--timeout"
echo "ranks were where they belong, and nothing was left behind"
