#!/usr/bin/env bash
# Furnishes the fresh namespaces that hosts.sh starts it in, then starts the first process of the host: its ssh server.
set -euo pipefail
name=$1 address=$2 switch_pid=$3 files=$4

hostname "$name"
mount -t tmpfs none /dev/shm
mount --bind "$files/hosts" /etc/hosts
mount --bind "$files/passwd" /etc/passwd # with the home directory that ssh and its server look for keys in

ip link set lo up
ip link add eth0 type veth peer name "$name" netns "$switch_pid"
nsenter --target "$switch_pid" --net ip link set "$name" master switch up
ip address add "$address/24" dev eth0
ip link set eth0 up

dropbearkey -t ed25519 -f "$files/$name.key"
exec unshare --pid --fork --kill-child --mount-proc \
  dropbear -F -E -s -r "$files/$name.key" -P "$files/$name.pid" -p "$address:22"
