#!/usr/bin/env bash
# fedrun --sync brings a program and what it needs to hosts with file systems of their own.
set -euo pipefail
bin=$(realpath "$1")
# shellcheck source-path=SCRIPTDIR source=hosts.sh
source "$(dirname "${BASH_SOURCE[0]}")/hosts.sh"
hosts_up 3
work=$sandbox/work
mkdir -p "$work/my project/data" "$work/libraries"
for node in node2 node3; do on_host "$node" mount -t tmpfs none "$work"; done
cd "$work/my project"

echo 'int answer() { return 42; }' | g++ -shared -fPIC -x c++ - -o "$work/libraries/libanswer.so.1"
ln -s libanswer.so.1 "$work/libraries/libanswer.so"
cat >train.cc <<'PROGRAM'
#include <cstdio>
#include <unistd.h>
int answer();
int main() {
  char host[64] = {}, line[64] = {};
  gethostname(host, sizeof host - 1);
  std::FILE* file = std::fopen("data/a line", "r");
  if (file == nullptr || std::fgets(line, sizeof line, file) == nullptr) return 1;
  std::printf("%s: %d %s", host, answer(), line);
}
PROGRAM
g++ train.cc -o train "$work/libraries/libanswer.so" -Wl,-rpath,"$work/libraries"
echo 'of the data' >data/text
ln -s text 'data/a line'
cp "$bin/fedrun" "$work/fedrun" # which the other hosts lack

launch() { run on_host node1 timeout 60 "$work/fedrun" "$@"; }

launch -H node1:1,node2:1,node3:1 ./train
expect_status 1
expect_output "there is no $work/my project"
expect_no_output "of the data"

launch -H node1:1,node2:1,node3:1 --sync . ./train
expect_status 0
for node in node1 node2 node3; do expect_output "$node: 42 of the data"; done
expect_equal "$(on_host node2 readlink 'data/a line')" text
expect_equal "$(on_host node2 stat -c %a train)" "$(stat -c %a train)"
expect_equal "$(on_host node3 readlink -f "$work/libraries/libanswer.so.1")" "$work/libraries/libanswer.so.1"

# A change arrives, and what is only there stays.
echo 'of tomorrow' >data/text
on_host node2 touch data/kept
launch -H node1:1,node2:1 --sync data --sync train ./train
expect_status 0
expect_output "node2: 42 of tomorrow"
on_host node2 test -e data/kept

# The program comes along from a folder that is not named, too.
on_host node2 rm train
launch -H node1:1,node2:1 --sync data ./train
expect_status 0
expect_output "node2: 42 of tomorrow"

# An ssh server elsewhere, with a key whose name has a blank.
on_host node2 dropbear -s -r "$host_files/node2.key" -P "$host_files/node2.2222.pid" -p "$hosts_network.2:2222" 2>/dev/null
launch -H node2:1 --ssh-port 2222 --sync data ./train
expect_status 0
expect_output "node2: 42 of tomorrow"

launch -H node1:1,node2:1 --sync nothing ./train
expect_status 2
expect_output "--sync: $work/my project/nothing does not exist"

on_host node3 mount --bind /dev/null /usr/bin/rsync
launch -H node1:1,node2:1,node3:1 --sync . ./train
expect_status 1
expect_output "node3: there is no rsync"
expect_no_output "of tomorrow"
on_host node3 umount /usr/bin/rsync

on_host node3 mount -o remount,ro "$work"
echo more >data/text
launch -H node1:1,node3:1 --sync . ./train
expect_status 1
expect_output "node3: rsync failed"
expect_output "Read-only file system"
on_host node3 mount -o remount,rw "$work"

# Folders on the way keep the permissions that they have there.
on_host node2 chmod 700 "$work"
chmod 755 "$work"
launch -H node1:1,node2:1 --sync data ./train
expect_status 0
expect_equal "$(on_host node2 stat -c %a "$work")" 700
echo "all passed"
