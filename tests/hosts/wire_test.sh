#!/usr/bin/env bash
# f16 on the wire halves what the hosts send.
set -euo pipefail
bin=$(realpath "$1")
# shellcheck source-path=SCRIPTDIR source=hosts.sh
source "$(dirname "${BASH_SOURCE[0]}")/hosts.sh"
hosts_up 2

# bytes_sent <flags of allreduce_bench>: sets `sent` to what node1 sends
bytes_sent() {
  local before
  before=$(host_bytes_sent node1)
  run on_host node1 timeout 60 "$bin/fedrun" -H node1:2,node2:2 "$bin/allreduce_bench" -b 4M -e 4M -n 5 -w 1 --op sum "$@"
  expect_status 0
  sent=$(($(host_bytes_sent node1) - before))
}

bytes_sent
plain=$sent
bytes_sent --wire f16
echo "f32: $plain bytes, f16 on the wire: $sent bytes"
((sent * 100 < plain * 55)) || complain "f16 on the wire sends $sent bytes, f32 $plain"
# Two levels: each host sends 2 (hosts - 1) / hosts of the buffer per call, whatever its number of ranks. 6 rounds of
# one checked and 4 timed calls.
((plain < 6 * 5 * (4 << 20) * 11 / 10)) || complain "each call sends $((plain / 30)) bytes, not 4 MiB"
