#!/bin/bash
# A rank that the kernel kills for lack of memory is reported as such, and an ordinary SIGKILL is not.
. "$(dirname "$0")/launched.sh"
[ "$(id -u)" = 0 ] || { echo "SKIPPED: limiting memory takes root"; exit 77; }

# A control group of version 1 or 2, whichever counts memory here.
if [ -d /sys/fs/cgroup/memory ]; then
  parent=/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup) limit=memory.limit_in_bytes
else
  parent=/sys/fs/cgroup limit=memory.max
fi
group=$parent/fedrun_test.$$
mkdir "$group" 2> /dev/null || { echo "SKIPPED: this machine lets us make no control group"; exit 77; }
leave_group() {
  echo $$ > "$parent/cgroup.procs"
  rmdir "$group"
  rm -rf "$work"
}
trap leave_group EXIT
echo 150M > "$group/$limit" && echo $$ > "$group/cgroup.procs" || { echo "SKIPPED: memory cannot be limited here"; exit 77; }
[ ! -e "$group/memory.swap.max" ] || echo 0 > "$group/memory.swap.max"

run -np 2 bash -c 'echo $$ > pids/$OMPI_COMM_WORLD_RANK; [ $OMPI_COMM_WORLD_RANK = 1 ] && exec tail /dev/zero; sleep 60'
expect_equal "exit code of a rank without memory" 137 "$code"
expect_contains "a rank without memory" "rank 1 on $(hostname) was ended by signal 9 (Killed) because the host ran out of memory" "$err"
expect_no_rank_left "a rank without memory" 2

run -np 2 ./rank.sh die 1 KILL
expect_equal "exit code of a rank that was killed" 137 "$code"
case $err in *"out of memory"*) fail "an ordinary SIGKILL is taken for lack of memory: $err" ;; esac
finish
