#!/bin/bash
# A Slurm allocation, faked by its variables and a stand-in for scontrol, is where the ranks go unless a flag says
# otherwise.
. "$(dirname "$0")/launched.sh"

mkdir bin
cat > bin/scontrol <<'PROGRAM'
#!/bin/bash
printf '%s\n' "$*" >> "$SCONTROL_CALLS"
[ "$1 $2" = "show hostnames" ] || exit 1
case $3 in
  'node[1-2]') printf 'node1\nnode2\n' ;;
  slow) exec sleep 60 ;;
  *) exit 1 ;;
esac
PROGRAM
chmod +x bin/scontrol
export SCONTROL_CALLS=$work/calls.txt
without_scontrol=$PATH
export PATH=$work/bin:$PATH
export SLURM_JOB_ID=7 SLURM_JOB_NODELIST='node[1-2]' SLURM_TASKS_PER_NODE='2,1'

run --dry-run ./rank.sh
expect_equal "an allocation" 0 "$code"
expect_contains "an allocation" " -np 3 --host node1,node1,node2 " "$out"
expect_equal "scontrol was asked" "show hostnames node[1-2]" "$(cat calls.txt)"

run --dry-run -np 2 ./rank.sh
expect_contains "fewer ranks than tasks" " -np 2 --host node1,node1 " "$out"

run --dry-run -np 4 ./rank.sh
expect_equal "more ranks than tasks" 2 "$code"
expect_contains "more ranks than tasks" "-np 4 needs 4 slots, but the hosts have 3" "$err"

run --dry-run -H other:1 ./rank.sh
expect_contains "-H wins" " -np 1 --host other " "$out"
echo 'third slots=2' > hosts.txt
run --dry-run --hostfile hosts.txt ./rank.sh
expect_contains "--hostfile wins" " -np 2 --host third,third " "$out"
run --dry-run --no-slurm ./rank.sh
case $out in *node1*) fail "--no-slurm: $out" ;; esac
expect_contains "--no-slurm" " -np 1 " "$out"

export SLURM_JOB_NODELIST='gpu[08-10]x' SLURM_TASKS_PER_NODE='1(x3)'
run --dry-run ./rank.sh
expect_contains "scontrol fails, and the list is read anyway" " --host gpu08x,gpu09x,gpu10x " "$out"
PATH=$without_scontrol run --dry-run ./rank.sh
expect_contains "without scontrol" " --host gpu08x,gpu09x,gpu10x " "$out"
SLURM_JOB_NODELIST=slow SLURM_TASKS_PER_NODE=1 run --dry-run ./rank.sh
expect_contains "scontrol does not answer" " --host slow " "$out"
[ "$seconds" -lt 15 ] || fail "scontrol was waited for, for $seconds s"

SLURM_JOB_NODELIST='$(touch executed)' run --dry-run ./rank.sh
expect_equal "a hostile list" 2 "$code"
expect_contains "a hostile list" "is no host name" "$err"
SLURM_TASKS_PER_NODE='1;touch executed' run --dry-run ./rank.sh
expect_equal "hostile tasks" 2 "$code"
expect_contains "hostile tasks" "SLURM_TASKS_PER_NODE='1;touch executed'" "$err"
[ ! -e executed ] || fail "something was executed"
finish
