#!/usr/bin/env bash
# Shows that check_includes.sh notices what it is there for: each forbidden include, alone in a small tree, must fail.
set -euo pipefail
check=$(dirname "$0")/check_includes.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

expect() { # expect <pass|fail> <layer> <include line>
  rm -rf "$tree/src" && mkdir -p "$tree/src/$2"
  echo "$3" >"$tree/src/$2/file.h"
  local outcome=pass
  bash "$check" "$tree/src" >"$tree/output" || outcome=fail
  if [[ $outcome != "$1" ]]; then
    echo "expected $1, got $outcome for '$3' in $2/"
    cat "$tree/output"
    exit 1
  fi
}

expect fail collectives '#include <torch/torch.h>'
expect fail collectives '#  include "ATen/Tensor.h"'
expect fail collectives '#include <fedrun/train/broadcast.h>'
expect fail core '#include <fedrun/collectives/types.h>'
expect fail core '#include <mpi.h>'
expect fail launcher '#include <fedrun/collectives/types.h>'
expect fail launcher '#include <c10/core/Device.h>'
expect fail sampler '#include <torch/data.h>'
expect fail train '#include <fedrun/fl/federation.h>'
expect fail unheard_of '#include <vector>'
expect pass collectives '#include <fedrun/core/error.h>'
expect pass train '#include <torch/torch.h>'
expect pass core '#include <vector>'
echo "every forbidden include was noticed"
