#!/usr/bin/env bash
# A rank is killed, stopped or stuck in the middle of an operation on GPUs: the others end in time, and nothing stays
# behind. The GPUs are the stand-ins of tests/stand_ins.
set -uo pipefail
fedrun=$1/fedrun
program=$2
source "$(dirname "$0")/checked_run.sh"

host=$(hostname)
export FEDRUN_DEVICE=cuda

# in_time <name> <seconds since> : the others are not left waiting
in_time() {
  ((SECONDS - $2 < 15)) || complain "$1: took $((SECONDS - $2)) s"
  grep -q "in the middle" "$output" || complain "$1: the rank was not in the middle of the operation"
}

for backend in auto mpi; do
  fedrun_flags=(--backend "$backend")
  check "no failure over $backend" 3 none 0 0
  for ranks in 2 4; do
    # The last rank, and the one that gives the operations their order.
    for victim in $((ranks - 1)) 0; do
      what="rank $victim of $ranks over $backend"
      start=$SECONDS
      check "kill -9 of $what" "$ranks" kill "$victim" 137 "fedrun: rank $victim on $host was ended by signal 9 (Killed)"
      in_time "kill -9 of $what" "$start"
      start=$SECONDS
      check "an error of $what" "$ranks" throw "$victim" 1 \
        "fedrun: rank $victim on $host: UsageError: the data directory is missing"
      in_time "an error of $what" "$start"
    done
  done

  export FEDRUN_STALL_WARN_SECONDS=1 FEDRUN_STALL_ABORT_SECONDS=3
  for how in stop hang; do
    for ranks in 2 3; do
      what="$how of rank 1 of $ranks over $backend"
      start=$SECONDS
      check "$what" "$ranks" "$how" 1 1
      in_time "$what" "$start"
      grep -q "PeerLostError: rank [0-9] has waited [0-9] s for operation 3 of its group of $ranks: allreduce" "$output" ||
        complain "$what: the error does not name the operation"
    done
  done
  unset FEDRUN_STALL_WARN_SECONDS FEDRUN_STALL_ABORT_SECONDS
done

finish
