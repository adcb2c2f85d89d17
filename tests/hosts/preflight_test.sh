#!/usr/bin/env bash
# What `fedrun check` says of hosts on which a run would work, and of one for each way in which it would not.
set -euo pipefail
bin=$(realpath "$1")
# shellcheck source-path=SCRIPTDIR source=hosts.sh
source "$(dirname "${BASH_SOURCE[0]}")/hosts.sh"
hosts_up 3
work=$sandbox/work
mkdir "$work"
cd "$work"
printf '#!/bin/sh\necho here\n' >train
chmod +x train

# check <flags>: from node1, in bounded time
check() {
  local begin=$SECONDS
  run on_host node1 timeout 60 "$bin/fedrun" check "$@"
  seconds=$((SECONDS - begin))
}

# row <host> <check>: the verdict and the words of a row, with the remedy below it, on one line
row() {
  awk -v host="$1" -v name="$2" '
    found { if ($1 == "→") print; exit }
    $1 == host && index($0, name) { print; found = 1 }' <<<"$output" | tr -s ' \n' ' '
}

# expect_row <host> <check> <part>...
expect_row() {
  local part seen
  seen=$(row "$1" "$2")
  for part in "${@:3}"; do
    [[ $seen == *"$part"* ]] || complain "$1, $2: '$seen' lacks: $part"
  done
}

# uncover <host> <path>: undoes a mount; the test itself may stand in it, hence --lazy
uncover() { on_host "$1" umount --lazy "$2"; }

# --- hosts on which a run works ---------------------------------------------------------------------------------------

check -H node1:2,node2:1 ./train
expect_status 0
expect_row node1 ssh "ok not needed: this machine"
expect_row node2 ssh "ok reached node2 at $hosts_network.2"
expect_row node2 directory "ok $work"
expect_row node2 program "ok ./train ($(sha256sum <train | cut -c 1-12))"
expect_row node2 fedrun "ok $bin/fedrun"
expect_row node2 libraries "all found"
expect_row node2 "Open MPI" "ok $(mpirun --version | grep -oE '[0-9]+\.[0-9]+\.[0-9]+')"
expect_row node2 /dev/shm "ok"
expect_row node2 memory "free of"
expect_row node2 clock "ok"
expect_row all network "ok $hosts_network.0/24 (node1 eth0 $hosts_network.1/24, node2 eth0 $hosts_network.2/24)"
expect_output "passed"

check -H "node1:1,$hosts_network.2:3,node3:1"
expect_status 0
expect_row node3 ssh "ok reached node3"
expect_row "$hosts_network.2" cores "warning 2 for 3 slots"

# From a machine that takes no ranks, and by the address of this one.
check -H node2:1,node3:1 ./train
expect_status 0
expect_row all network "here eth0 $hosts_network.1/24"
check -H "$hosts_network.1:1"
expect_status 0
expect_row "$hosts_network.1" ssh "this machine"
check
expect_status 0
expect_row localhost "Open MPI" ok
echo "passed on hosts that are well"

# --- ssh --------------------------------------------------------------------------------------------------------------

check -H node1:1,nowhere.invalid:1
expect_status 1
expect_row nowhere.invalid ssh "FAILED the name is not known here" "try: getent hosts nowhere.invalid"
expect_row node1 clock ok # the others are examined all the same

check -H "node1:1,$hosts_network.99:1"
expect_status 1
expect_row "$hosts_network.99" ssh FAILED "try: ssh $hosts_network.99 true"
((seconds < 20)) || complain "$seconds s for a host that is not there"

check -H node1:1,node2:1 --ssh-port 2222
expect_status 1
expect_row node2 ssh "FAILED no ssh server listens there at port 2222" "--ssh-port" "ssh -p 2222 node2 true"
on_host node2 dropbear -s -r "$host_files/node2.key" -P "$host_files/node2.2222.pid" -p "$hosts_network.2:2222" 2>/dev/null
check -H node1:1,node2:1 --ssh-port 2222
expect_status 0

cp "$host_files/home/.ssh/id_ed25519" "$work/my key"
check -H node2:1 --ssh-identity-file "$work/my key"
expect_status 0
rm "$work/my key"

kill -STOP "$(first_process node2)" # it takes connections and says nothing
check -H node2:1,node3:1
kill -CONT "$(first_process node2)"
expect_status 1
expect_row node2 ssh "FAILED no answer within 15 s" "ssh node2 true"
((seconds < 20)) || complain "$seconds s for a host that does not answer"

install -m 600 /dev/null "$sandbox/no_keys"
on_host node3 mount --bind "$sandbox/no_keys" "$host_files/home/.ssh/authorized_keys"
check -H node1:1,node3:1
expect_status 1
expect_row node3 ssh "FAILED it does not accept our key" "ssh-copy-id node3"
on_host node3 dropbear -r "$host_files/node3.key" -P "$host_files/node3.2223.pid" -p "$hosts_network.3:2223" 2>/dev/null
check -H node3:1 --ssh-port 2223
expect_status 1
expect_row node3 ssh "FAILED it wants a password" "ssh-copy-id -p 2223 node3"
uncover node3 "$host_files/home/.ssh/authorized_keys"

printf '%s\n' 'StrictHostKeyChecking ask' "UserKnownHostsFile $sandbox/known" 'LogLevel ERROR' >"$sandbox/careful"
chmod 600 "$sandbox/careful"
on_host node1 mount --bind "$sandbox/careful" "$host_files/home/.ssh/config"
touch "$sandbox/known"
check -H node2:1
expect_status 1
expect_row node2 ssh "FAILED ssh does not know its host key yet" "ssh node2 true"
echo "node2 $(cut -d ' ' -f 1-2 "$host_files/home/.ssh/id_ed25519.pub")" >"$sandbox/known"
check -H node2:1
expect_status 1
expect_row node2 ssh "FAILED its host key has changed" "ssh-keygen -R node2"
uncover node1 "$host_files/home/.ssh/config"
echo "passed on ssh"

# --- files ------------------------------------------------------------------------------------------------------------

printf '#!/bin/sh\necho there\n' >"$sandbox/other"
chmod +x "$sandbox/other"
on_host node2 mount --bind "$sandbox/other" "$work/train"
check -H node1:1,node2:1 ./train
expect_status 1
expect_row node2 program "FAILED ./train differs: $(sha256sum <"$sandbox/other" | cut -c 1-12) there" "--sync ./train"
expect_row node1 program ok
uncover node2 "$work/train"

on_host node2 mount -t tmpfs none "$work"
check -H node1:1,node2:1 ./train
expect_status 1
expect_row node2 program "FAILED ./train does not exist"
uncover node2 "$work"

mkdir deep
on_host node2 mount -t tmpfs none "$work"
cd deep
check -H node1:1,node2:1
expect_status 1
expect_row node2 directory "FAILED there is no $work/deep"
cd ..
uncover node2 "$work"

cp "$bin/fedrun" train "$work/deep"
on_host node2 mount -t tmpfs none "$work/deep"
run on_host node1 deep/fedrun check -H node2:1
expect_status 1
expect_row node2 fedrun "FAILED $work/deep/fedrun does not exist"
uncover node2 "$work/deep"

mkdir libraries
echo 'int answer() { return 42; }' | g++ -shared -fPIC -x c++ - -o libraries/libanswer.so
echo 'int answer(); int main() { return answer() - 42; }' |
  g++ -x c++ - -o needs_answer -Llibraries -lanswer -Wl,-rpath,"$work/libraries"
on_host node2 mount -t tmpfs none "$work/libraries"
check -H node1:1,node2:1 ./needs_answer
expect_status 1
expect_row node2 libraries "FAILED not found: libanswer.so" "LD_LIBRARY_PATH"
cp libraries/libanswer.so "$sandbox/libanswer.so"
on_host node2 cp "$sandbox/libanswer.so" libraries/
on_host node2 sh -c 'printf x >>libraries/libanswer.so'
check -H node1:1,node2:1 ./needs_answer
expect_status 0
expect_row node2 libraries "warning another version of libanswer.so"
uncover node2 "$work/libraries"

on_host node2 mount --bind /dev/null /usr/bin/orted
check -H node1:1,node2:1
expect_status 1
expect_row node2 "Open MPI" "FAILED orted"
uncover node2 /usr/bin/orted
echo "passed on files"

# --- the rest ---------------------------------------------------------------------------------------------------------

on_host node2 mount -o remount,size=6m /dev/shm
check -H node1:1,node2:2
expect_status 1
expect_row node2 /dev/shm "FAILED 6 MiB free of 6 MiB; Open MPI needs 8 MiB" "--shm-size"
on_host node2 mount -o remount,size=1g /dev/shm

for node in node1 node2; do # as docker leaves it
  on_host "$node" sh -c 'ip link add docker0 type bridge && ip address add 172.17.0.1/16 dev docker0 && ip link set docker0 up'
done
check -H node1:1,node2:1
expect_status 0
expect_row all network "ok $hosts_network.0/24"
check -H node1:1,node2:1 --network-interfaces eth0
expect_status 0
check -H node1:1,node2:1 --network-interfaces eth9
expect_status 1
expect_row all network "FAILED --network-interfaces eth9 fits no address of node1: eth0 $hosts_network.1/24"

on_host node3 ip address add 10.78.0.3/24 dev eth0
on_host node3 ip address delete "$hosts_network.3/24" dev eth0
check -H node1:1,node3:1
expect_status 1
expect_row node3 ssh FAILED
on_host node3 ip address add "$hosts_network.3/32" dev eth0
on_host node3 ip route add "$hosts_network.0/24" dev eth0
check -H node1:1,node3:1
expect_status 0
expect_row all network "ok $hosts_network.0/24"
echo "passed on networks and memory"

# --- before a launch --------------------------------------------------------------------------------------------------

launch() { run on_host node1 timeout 60 "$bin/fedrun" --verbose "$@"; }

unset XDG_CACHE_HOME
launch -H node1:1,node2:2 ./train
expect_status 0
expect_output "have passed the checks; network $hosts_network.0/24"
expect_equal "$(grep -c '^\[[0-2]\] here$' <<<"$output")" 3
launch -H node1:1,node2:2 ./train
expect_output "passed the checks a short while ago; network $hosts_network.0/24"
expect_equal "$(grep -c '^\[[0-2]\] here$' <<<"$output")" 3
launch --disable-cache -H node1:1,node2:2 ./train
expect_output "have passed the checks"
launch -H node1:1,node2:1 ./train
expect_output "have passed the checks"
echo 'echo more' >>train
launch -H node1:1,node2:2 ./train
expect_output "have passed the checks"
expect_equal "$(grep -c '^\[[0-2]\] more$' <<<"$output")" 3
launch -H node2:1 --ssh-port 2222 ./train
expect_status 0

# Nothing is started when one host fails, and that is not remembered.
on_host node2 mount --bind "$sandbox/other" "$work/train"
for attempt in 1 2; do
  launch --disable-cache -H node1:1,node2:1 ./train
  expect_status 1
  expect_output "nothing was started"
  expect_output "./train differs"
  expect_no_output $'\nnode1 ' # which is well
done
uncover node2 "$work/train"

check -H node1:1 --sync . ./train
expect_status 2
expect_output "check copies nothing"

# An interrupted check leaves no ssh behind.
kill -STOP "$(first_process node2)"
on_host node1 "$bin/fedrun" check -H node2:1,node3:1 >/dev/null 2>&1 &
asks_node2() { on_host node1 pgrep -f 'ssh .* node2 sh -s'; }
eventually asks_node2 >/dev/null
on_host node1 pkill -TERM -x fedrun
asks_nobody() { ! on_host node1 pgrep -x 'ssh|fedrun'; }
eventually asks_nobody >/dev/null
kill -CONT "$(first_process node2)"
echo "passed before a launch"

# --- hostile text -----------------------------------------------------------------------------------------------------

# shellcheck disable=SC2016 # nothing is to be expanded
for name in '-oProxyCommand=touch executed' '$(touch executed)' 'a;touch executed' "a'b"; do
  check -H "$name:1"
  expect_status 2
  expect_output "is no host name"
done
# shellcheck disable=SC2016
for name in 'a b' '$(touch executed)' ';touch executed' "it's" '"`touch executed`"'; do
  cp train "$name"
  check -H node1:1,node2:1 "./$name"
  expect_status 0
  expect_row node2 program "ok ./$name"
done
# shellcheck disable=SC2016
check -H node1:1,node2:1 --network-interfaces '$(touch executed)'
expect_status 2
run find "$sandbox" -name executed
expect_equal "$output" ""
echo "passed on hostile text"
