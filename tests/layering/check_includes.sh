#!/usr/bin/env bash
# Fails when a folder of src/ includes a folder or LibTorch that docs/architecture.md does not let it include.
set -euo pipefail
src=${1:?usage: check_includes.sh SRC_DIRECTORY}

# folder: what it may include besides itself; "torch" stands for LibTorch, "mpi" for MPI, "cuda" for CUDA and NCCL.
declare -A allowed=(
  [core]=""
  [collectives]="core mpi cuda"
  [sampler]="core"
  [data]="core torch"
  [models]="core torch"
  [train]="core collectives sampler torch"
  [fl]="core collectives sampler data models train torch"
  [launcher]="core"
)

violations=0
report() {
  echo "$1 includes $2, which $3/ must not: see the layers in docs/architecture.md"
  violations=$((violations + 1))
}

for folder in "$src"/*/; do
  layer=$(basename "$folder")
  if [[ ! -v "allowed[$layer]" ]]; then
    echo "src/$layer is not a layer of docs/architecture.md: add it there and here"
    violations=$((violations + 1))
    continue
  fi
  while IFS=: read -r file include; do
    case $include in
      fedrun/*/*) target=${include#fedrun/} target=${target%%/*} ;;
      torch/* | ATen/* | c10/*) target=torch ;;
      mpi.h) target=mpi ;;
      cuda*.h | nccl*.h) target=cuda ;;
      *) continue ;;
    esac
    [[ $target == "$layer" || " ${allowed[$layer]} " == *" $target "* ]] || report "$file" "<$include>" "$layer"
  done < <(grep -rEo --include='*.h' --include='*.cc' --include='*.cu' '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"][^>"]+' "$folder" |
    sed -E 's/:[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]/:/')
done

if ((violations > 0)); then
  echo "$violations violation(s) of the layering"
  exit 1
fi
echo "the layers hold"
