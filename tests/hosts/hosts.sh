# Several hosts on one machine, for tests of runs across hosts; sourced by them, with the checks of expect.sh.
#
#   hosts_up 3                            node1, node2 and node3
#   on_host node1 fedrun -H node1:2,node2:2 ./train
#   host_bytes_sent node1                 what it has sent to the other hosts so far
#   hosts_down                            happens by itself when the test ends
#
# A host has what makes it one to ssh, Open MPI and fedrun: its own name, address, network, processes, shared memory and
# ssh server. Files are the same on all of them, as on a cluster with one file system. Nothing of this is seen outside:
# hosts and the switch between them are namespaces, which are gone when their processes are.
# shellcheck shell=bash
hosts_directory=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../scripts/expect.sh
source "$hosts_directory/../scripts/expect.sh"

hosts_network=10.77.0 # no route leads out of it, so it may be in use elsewhere
host_files=$sandbox/hosts
declare -A starters=() # for each host the process that waits for its first one; for the switch its only one

hosts_up() {
  local count=$1 i
  require_namespaces
  at_exit+=(hosts_down)
  write_host_files "$count"
  start_switch
  for ((i = 1; i <= count; ++i)); do start_host "node$i" "$hosts_network.$i"; done
  for ((i = 1; i <= count; ++i)); do eventually host_is_ready "node$i"; done
}

# Runs a command on a host, in the current directory and with the variables of the test.
on_host() {
  local pid
  pid=$(first_process "$1")
  # Entering a host's file systems leads to their root, hence --chdir. Open MPI's working files go where they end with
  # the host, because runs that are killed do not remove them.
  nsenter --target "$pid" --net --uts --ipc --mount --pid \
    env --chdir="$PWD" HOME="$host_files/home" OMPI_MCA_orte_tmpdir_base=/dev/shm "${@:2}"
}

host_bytes_sent() { on_host "$1" cat /proc/net/dev | awk '$1 == "eth0:" { print $10 }'; }

hosts_down() {
  local name
  # With its first process, all processes of a host end, and the one that waits for it returns only then.
  for name in "${!starters[@]}"; do
    kill -KILL "$(first_process "$name")" || kill -KILL "${starters[$name]}" || true
  done
  wait "${starters[@]}" || true
  starters=()
  rm -rf "$host_files"
} 2>/dev/null # bash would report each as killed

# --- what the above is made of ----------------------------------------------------------------------------------------

require_namespaces() {
  local tool why
  [[ $(id -u) == 0 ]] || skip "several hosts on one machine take root"
  for tool in ip unshare nsenter setpriv ssh ssh-keygen dropbear dropbearkey; do
    command -v "$tool" >/dev/null || skip "there is no $tool: scripts/setup.sh installs it"
  done
  why=$(unshare --net --uts --ipc --mount --pid --fork --mount-proc bash -c 'set -e
    ip link add bridge type bridge
    ip link add veth type veth
    mount -t tmpfs none /dev/shm' 2>&1) || skip "this machine does not let us make hosts: $why"
}

skip() {
  echo "SKIPPED: $*"
  exit 77
}

# What all hosts share: their names, and the home directory of the only user needed, with keys to enter each other.
write_host_files() {
  local i ssh=$host_files/home/.ssh
  mkdir -p "$ssh"
  ssh-keygen -q -t ed25519 -N '' -f "$ssh/id_ed25519"
  cp "$ssh/id_ed25519.pub" "$ssh/authorized_keys"
  # The hosts are as new as their keys: nobody can know those yet.
  printf '%s\n' 'StrictHostKeyChecking no' 'UserKnownHostsFile /dev/null' 'LogLevel ERROR' >"$ssh/config"
  echo "root:x:0:0::$host_files/home:/bin/bash" >"$host_files/passwd"
  echo '127.0.0.1 localhost' >"$host_files/hosts"
  for ((i = 1; i <= $1; ++i)); do echo "$hosts_network.$i node$i"; done >>"$host_files/hosts"
}

# Hosts and switch end with the test even when it is killed and cannot call hosts_down.
start_switch() {
  setpriv --pdeathsig KILL unshare --net bash -c "
    ip link add switch type bridge && ip link set switch up && touch '$host_files/switch.up' && exec sleep infinity" &
  starters[switch]=$!
  eventually test -e "$host_files/switch.up"
}

start_host() {
  setpriv --pdeathsig KILL unshare --net --uts --ipc --mount \
    bash "$hosts_directory/become_host.sh" "$1" "$2" "${starters[switch]}" "$host_files" >"$host_files/$1.log" 2>&1 &
  starters[$1]=$!
}

host_is_ready() {
  kill -0 "${starters[$1]}" 2>/dev/null || output=$(<"$host_files/$1.log") complain "$1 did not start"
  [[ -s $host_files/$1.pid ]] # the ssh server writes it when it listens
}

first_process() {
  local starter=${starters[$1]:?no such host: $1} children=
  read -r children _ <"/proc/$starter/task/$starter/children" || true
  echo "$children"
}
