#!/usr/bin/env bash
# Downloads MNIST (or a set with the same file names, such as Fashion-MNIST) and checks every file's MD5.
set -euo pipefail

default_mirrors='https://ossci-datasets.s3.amazonaws.com/mnist https://storage.googleapis.com/cvdf-datasets/mnist'
default_md5s='f68b3c2dcbeaaa9fbdd348bbdeb94873  train-images-idx3-ubyte.gz
d53e105ee54ea40749a09fcbcd1e9432  train-labels-idx1-ubyte.gz
9fb629c4189551a2d022fa330f9573f3  t10k-images-idx3-ubyte.gz
ec29112dd5afa0611ce80d1b7f02629c  t10k-labels-idx1-ubyte.gz'

usage() {
  cat <<EOF
Usage: scripts/get_mnist.sh DIR    downloads MNIST into DIR; files that are there and right are kept

Environment, for other mirrors and for other sets in the same format:
  MNIST_MIRRORS='URL URL …'   tried in this order (default: $default_mirrors)
  MNIST_MD5S=FILE             the files to get, as md5sum prints them (default: the four files of MNIST)
EOF
}

fail() {
  echo "get_mnist: $*" >&2
  exit 1
}

is_right() { [[ -f $1 && $(md5sum <"$1") == "$2 "* ]]; }

clean_up() {
  [[ -z $child ]] || kill "$child" 2>/dev/null || true
  wait
  [[ -z $work ]] || rm -rf "$work"
}

# In the background, where a signal stops it at once. Gives up on a mirror that stays under 1 kB/s for 20 s.
download() {
  local status=0
  curl --fail --location --silent --show-error --connect-timeout 15 --speed-limit 1000 --speed-time 20 --max-time 900 \
    --output "$2" "$1" 2>"$work/error" &
  child=$!
  wait "$child" || status=$?
  child=
  return "$status"
}

get_file() {
  local name=$1 md5=$2 mirror url complaints=''
  if is_right "$dir/$name" "$md5"; then
    echo "$name: is there"
    return
  fi
  for mirror in $mirrors; do
    url=${mirror%/}/$name
    echo "$name: downloading from ${mirror%/}"
    if ! download "$url" "$work/$name"; then
      complaints+=$'\n'"  $url: $(tail -n 1 "$work/error")"
    elif ! is_right "$work/$name" "$md5"; then
      complaints+=$'\n'"  $url: its MD5 is $(md5sum <"$work/$name" | cut -c 1-32), and $md5 is right"
    else
      mv -f "$work/$name" "$dir/$name"
      return
    fi
  done
  fail "no mirror gave $name:$complaints"$'\n'"Try again later, or name other mirrors in MNIST_MIRRORS."
}

main() {
  case ${1:-} in
    -h | --help)
      usage
      exit
      ;;
  esac
  if [[ $# != 1 || -z $1 || $1 == -* ]]; then
    usage >&2
    exit 2
  fi
  dir=$1 child='' work=''
  mirrors=${MNIST_MIRRORS:-$default_mirrors}
  local md5s=$default_md5s md5 name
  if [[ -n ${MNIST_MD5S:-} ]]; then
    md5s=$(cat -- "$MNIST_MD5S") || fail "MNIST_MD5S=$MNIST_MD5S cannot be read"
  fi

  trap clean_up EXIT
  mkdir -p -- "$dir" || fail "cannot make the directory $dir"
  work=$(mktemp -d "$dir/.unfinished-XXXXXX") || fail "cannot write in $dir"

  while read -r md5 name; do
    name=${name#\*} # md5sum marks files that it read as binary
    [[ $md5 =~ ^[0-9a-f]{32}$ && $name =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ ]] ||
      fail "MNIST_MD5S=${MNIST_MD5S:-}: '$md5 $name' is not an MD5 and a plain file name"
    get_file "$name" "$md5"
  done <<<"$md5s"
  echo "complete: $dir"
}

main "$@"
