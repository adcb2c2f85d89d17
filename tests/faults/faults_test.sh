#!/usr/bin/env bash
# A rank that fails ends the run: its error is shown once, the exit code is not 0, and no process stays behind.
set -uo pipefail
fedrun=$1/fedrun
program=$2
source "$(dirname "$0")/checked_run.sh"

host=$(hostname)
check "no failure" 2 none 0 0
check "one rank throws" 2 usage 1 1 "fedrun: rank 1 on $host: UsageError: the data directory is missing"
check "rank 0 of 3 throws" 3 usage 0 1 "fedrun: rank 0 on $host: UsageError: the data directory is missing"
check "all ranks throw the same" 4 usage -1 1 "UsageError: the data directory is missing"
check "an exception of the standard library" 2 std 1 1 "fedrun: rank 1 on $host: error: something odd"
check "an exception in a thread" 2 thread 0 1 "fedrun: rank 0 on $host: BackendError: in a thread"
check "an exception that the program catches" 2 caught 1 3 "[1] my own words: the data directory is missing"
check "exit without a word" 2 exit 1 7 "fedrun: rank 1 on $host exited with code 7"
check "kill -9" 2 kill 1 137 "fedrun: rank 1 on $host was ended by signal 9 (Killed)"

# Within the seconds that the user has chosen; a frozen process is not a dead one.
begin=$SECONDS
export FEDRUN_STALL_WARN_SECONDS=1 FEDRUN_STALL_ABORT_SECONDS=3
check "a frozen rank" 2 stop 1 1 "PeerLostError: rank 0 has waited "
grep -q "PeerLostError: rank 0 has waited [0-9] s for operation 1 of its group of 2: allreduce" "$output" ||
  complain "a frozen rank: the error does not name the operation"
grep -q "rank 0 has waited [0-9] s for operation 1 .* missing: rank 1; rank 1 last called operation 0, a barrier (stopped by a signal" \
  "$output" || complain "a frozen rank: no warning that names it"
((SECONDS - begin < 15)) || complain "a frozen rank: took $((SECONDS - begin)) s"
unset FEDRUN_STALL_ABORT_SECONDS
check "a late rank is warned about" 3 late 1 0
grep -q "rank 0 has waited [0-9] s for operation 1 of its group of 3: barrier named 'after a nap'; missing: rank 1; " "$output" ||
  complain "a late rank: no warning that names it"
unset FEDRUN_STALL_WARN_SECONDS

export FEDRUN_THREADS=many
check "a bad variable" 2 none 0 2 "environment variable FEDRUN_THREADS='many' is not valid"
unset FEDRUN_THREADS

finish
