#!/usr/bin/env bash
# The collectives across hosts, with as many ranks on each and with uneven numbers.
set -euo pipefail
bin=$(realpath "$1")
program=$(realpath "$2")
# shellcheck source-path=SCRIPTDIR source=hosts.sh
source "$(dirname "${BASH_SOURCE[0]}")/hosts.sh"
hosts_up 3

# Where the ranks of a layout such as node1:2,node2:1 sit, in the words of fedrun's log.
places() {
  local layout host rank=0 local_rank
  IFS=, read -ra layout <<<"$1"
  for host in "${!layout[@]}"; do
    for ((local_rank = 0; local_rank < ${layout[host]#*:}; ++local_rank)); do
      printf '[rank %d] info: host %s, local rank %d of %d, host %d of %d\n' \
        "$((rank++))" "${layout[host]%:*}" "$local_rank" "${layout[host]#*:}" "$host" "${#layout[@]}"
    done
  done
}

for layout in node1:2,node2:2 node1:2,node2:1 node1:1,node2:3,node3:1; do
  run on_host node1 timeout 60 "$bin/fedrun" -H "$layout" --log-level info "$program"
  expect_status 0
  seen=$(grep -oE '\[rank [0-9]+\] info: host .*, host [0-9]+ of [0-9]+' <<<"$output" | sort || true)
  expect_equal "$seen" "$(places "$layout")"
  echo "passed on $layout"
done
