#!/bin/bash
# A real Slurm of two nodes, both played by this machine, in a scratch directory and without its services: salloc gives
# fedrun an allocation, and mpirun starts the ranks on its nodes by srun.
. "$(dirname "$0")/launched.sh"

# Debian's programs carry -wlm in their names where others of the same name exist.
find_program() { command -v "$1" || command -v "$1-wlm" || PATH=$PATH:/usr/sbin command -v "$1"; }
slurmctld=$(find_program slurmctld) && slurmd=$(find_program slurmd) && slurmstepd=$(find_program slurmstepd) &&
  command -v salloc > /dev/null && command -v srun > /dev/null || { echo "SKIPPED: there is no Slurm here"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "SKIPPED: slurmd wants to be root"; exit 77; }
plugins=$(ldd "$slurmctld" | sed -n 's|.*=> \(.*\)/libslurmfull.so.*|\1|p')
[ -e "$plugins/auth_none.so" ] || { echo "SKIPPED: this Slurm cannot do without munge"; exit 77; }

pids=()
stop_slurm() {
  [ ${#pids[@]} = 0 ] || { kill "${pids[@]}" 2> /dev/null; wait "${pids[@]}" 2> /dev/null; }
  rm -rf "$work"
}
trap stop_slurm EXIT

host=$(hostname -s)
port=$((20000 + $$ % 20000))
cat > slurm.conf <<CONF
ClusterName=scratch
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
AuthType=auth/none
CredType=cred/none
PluginDir=$plugins
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool.%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
NodeName=slurm1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=4
NodeName=slurm2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 2)) CPUs=4
PartitionName=main Nodes=ALL Default=YES State=UP
CONF
mkdir state spool.slurm1 spool.slurm2
export SLURM_CONF=$work/slurm.conf
"$slurmctld" -D > slurmctld.txt 2>&1 &
pids+=($!)
for node in slurm1 slurm2; do
  "$slurmd" -D -N $node -d "$slurmstepd" > $node.txt 2>&1 &
  pids+=($!)
done
nodes_are_idle() { [ "$(sinfo -h -o '%D %t' 2> /dev/null)" = "2 idle" ]; }
wait_until 30 nodes_are_idle || { tail -n 5 slurmctld.txt slurm?.txt; fail "Slurm does not start"; finish; }

cat > show.sh <<'PROGRAM'
#!/bin/bash
echo "rank $OMPI_COMM_WORLD_RANK local $OMPI_COMM_WORLD_LOCAL_RANK of $OMPI_COMM_WORLD_SIZE on $SLURMD_NODENAME <$A>"
PROGRAM
chmod +x show.sh
run_in() {  # the arguments of salloc up to --, then those of fedrun
  local allocation=()
  while [ "$1" != -- ]; do allocation+=("$1"); shift; done
  shift
  timeout 60 salloc -Q "${allocation[@]}" "$fedrun" "$@" > out.txt 2> err.txt < /dev/null
  code=$?
  out=$(cat out.txt) err=$(cat err.txt)
}

run_in -N 2 -n 3 -- -x 'A=x;$(touch executed)' ./show.sh
expect_equal "an allocation of two nodes: $err" 0 "$code"
for line in "rank 0 local 0 of 3 on slurm1" "rank 1 local 1 of 3 on slurm1" "rank 2 local 0 of 3 on slurm2"; do
  expect_contains "an allocation of two nodes" "$line <x;\$(touch executed)>" "$out"
done
[ ! -e executed ] || fail "something was executed"

run_in -N 2 --ntasks-per-node 2 -- -np 3 ./show.sh
expect_contains "fewer ranks than tasks: $err" "rank 2 local 0 of 3 on slurm2" "$out"

run_in -N 1 -n 1 -- -np 2 ./show.sh
expect_equal "more ranks than tasks" 2 "$code"
expect_contains "more ranks than tasks" "-np 2 needs 2 slots, but the hosts have 1" "$err"

run_in -N 2 -n 2 -- ./rank.sh exit 1 5
expect_equal "a rank that fails on the second node: $err" 5 "$code"
expect_no_rank_left "a rank that fails" 10
finish
