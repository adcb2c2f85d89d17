#!/usr/bin/env bash
# Brings a machine to the point where fedrun builds: apt packages, then LibTorch in a cache that all clones share.
set -euo pipefail

libtorch_version=2.15.0
oldest_torch=2.7 # from here on torch's wheels use the C++11 ABI, like every other library of the build
main_header=include/torch/csrc/api/include/torch/torch.h
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${XDG_CACHE_HOME:-${HOME:?is not set; set it, or XDG_CACHE_HOME}/.cache}/fedrun

usage() {
  cat <<EOF
Usage: scripts/setup.sh          installs what the build of fedrun needs; does nothing when all is there

Debian and Ubuntu packages are installed as root or with sudo; without either, the command to run is printed.
LibTorch $libtorch_version goes to $cache. The torch of the active Python is used instead
when it is $oldest_torch or newer.

Environment:
  GPU=1               the CUDA parts of LibTorch as well (2.6 GB to download instead of 0.6 GB)
  LibTorch_ROOT=DIR   use this LibTorch: the directory that holds include/ and lib/
  XDG_CACHE_HOME=DIR  where caches live (default: ~/.cache)
EOF
}

say() { echo "set-up: $*"; }
fail() {
  say "$*" >&2
  exit 1
}

# --- apt packages -----------------------------------------------------------------------------------------------------

# Fills package_names, and package_specs with what apt-get should install for each, such as cmake=3.25.1-*.
read_package_list() {
  local name version _ os=unknown
  # shellcheck source=/dev/null
  [[ ! -r /etc/os-release ]] || os=$(. /etc/os-release && echo "$ID ${VERSION_ID:-}")
  tested_release=no
  [[ $os != "debian 12" ]] || tested_release=yes
  package_names=()
  declare -gA package_specs=()
  while read -r name version _; do
    [[ -n $name && $name != \#* ]] || continue
    [[ $tested_release == yes && $version != "*" ]] || version=
    package_names+=("$name")
    package_specs[$name]=$name${version:+=$version}
  done <"$scripts/packages.debian-12.txt"
}

# Fills missing_specs.
find_missing_packages() {
  local installed name
  installed=$'\n'$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${package_names[@]}" 2>/dev/null || true)$'\n'
  missing_specs=()
  for name in "${package_names[@]}"; do
    [[ $installed == *$'\n'"installed $name"$'\n'* ]] || missing_specs+=("${package_specs[$name]}")
  done
}

install_missing_packages() {
  local as_root=() options=(-y --no-install-recommends)
  [[ $tested_release == yes ]] || say "this is not Debian 12, so package versions differ from the tested ones"
  if [[ $(id -u) != 0 ]]; then
    if ! sudo -n true 2>/dev/null; then
      say "packages are missing, and installing them takes root. Run this, then start again:" >&2
      printf '  sudo apt-get update && sudo apt-get install %s%s\n' "${options[*]}" \
        "$(printf " '%s'" "${missing_specs[@]}")" >&2
      exit 1
    fi
    as_root=(sudo -n)
  fi
  say "installing ${#missing_specs[@]} packages: ${missing_specs[*]}"
  # A broken third-party source must not stop us: if it matters, the install below says so.
  "${as_root[@]}" apt-get -q update || say "apt-get update had errors; going on with the package lists that are there"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q "${options[@]}" -o DPkg::Lock::Timeout=600 \
    install "${missing_specs[@]}" || fail "apt-get could not install the packages; its message is above"
}

# --- LibTorch ---------------------------------------------------------------------------------------------------------

has_libtorch() {
  [[ -f $1/lib/libtorch_cpu.so && -f $1/$main_header ]] && [[ $gpu == 0 || -f $1/lib/libtorch_cuda.so ]]
}

# Prints "VERSION DIRECTORY" of the torch that python3 would import. Importing it would take seconds.
active_python_torch() {
  command -v python3 >/dev/null || return 0
  python3 - 2>/dev/null <<'EOF' || true
import importlib.util, os, re, sys
sys.path = [p for p in sys.path if p]  # not the current directory
spec = importlib.util.find_spec("torch")
if spec and spec.origin:
    directory = os.path.dirname(spec.origin)
    with open(os.path.join(directory, "version.py")) as file:
        print(re.search(r"__version__ = .([0-9.]+)", file.read()).group(1), directory)
EOF
}

at_least() { [[ $(printf '%s\n' "$1" "$2" | sort -V | head -n 1) == "$2" ]]; }

# Sets libtorch to words for the LibTorch that the build will use; returns 1 when there is none yet.
# cmake/FindLibTorch.cmake searches in the same order.
locate_libtorch() {
  local version directory
  if [[ -n ${LibTorch_ROOT:-} ]]; then
    has_libtorch "$LibTorch_ROOT" || fail "LibTorch_ROOT=$LibTorch_ROOT is not a LibTorch$cuda_words:" \
      "it needs $main_header and lib/$main_library. Correct it, or unset it to let set-up fetch LibTorch"
    libtorch="LibTorch_ROOT: $LibTorch_ROOT"
    return
  fi
  read -r version directory < <(active_python_torch) || true
  if [[ -n ${directory:-} ]]; then
    if at_least "$version" "$oldest_torch" && has_libtorch "$directory"; then
      libtorch="LibTorch $version of the active Python: $directory"
      return
    fi
    passed_over="torch $version of the active Python ($directory) is older than $oldest_torch or lacks $main_library"
  fi
  has_libtorch "$target/torch" || return 1
  libtorch="LibTorch $libtorch_version in $target"
}

find_pip() {
  for python in python3 /usr/bin/python3; do
    "$python" -m pip --version >/dev/null 2>&1 && return
  done
  fail "fetching LibTorch takes python3 with pip: install both, or set LibTorch_ROOT to a LibTorch that you have"
}

check_room() {
  local free_mb
  free_mb=$(df -BM --output=avail "$cache" | tail -n 1 | tr -dc 0-9)
  ((free_mb >= room_mb)) || fail "$cache has $free_mb MB free, and fetching LibTorch takes $room_mb MB:" \
    "make room, or set XDG_CACHE_HOME to a larger disk"
}

# Runs in the background, where a signal stops it at once instead of after the last byte.
interruptible() {
  local status=0
  "$@" <&0 & # without <&0, bash would give it an empty input
  child=$!
  wait "$child" || status=$?
  child=
  return "$status"
}

clean_up() {
  [[ -z $child ]] || kill "$child" 2>/dev/null || true
  wait
  [[ ! -t 1 ]] || printf '\e[?25h' # pip hides the cursor while it draws, and a stopped pip leaves it hidden
  [[ -z $work ]] || rm -rf "$work"
}

# The wheels are asked for by fixed tags, so that the version of this machine's Python does not matter.
download_wheels() {
  local tags=(--python-version 3.12 --implementation cp --abi cp312) quiet=() glibc
  for glibc in _2_28 _2_27 _2_25 _2_18 2014; do tags+=(--platform "manylinux${glibc}_x86_64"); done
  [[ -t 1 ]] || quiet=(--quiet)
  mkdir "$work/tmp"
  # pip keeps unfinished files in TMPDIR; here they go away with the rest.
  interruptible env TMPDIR="$work/tmp" PIP_REQUIRE_VIRTUALENV=0 "$python" -m pip download "${quiet[@]}" \
    --disable-pip-version-check --no-cache-dir --no-deps --only-binary=:all: "${tags[@]}" \
    --require-hashes -r "$wheel_list" -d "$work/wheels" ||
    fail "the download of LibTorch failed; pip's message is above. Nothing was left behind: run this again, or set" \
      "LibTorch_ROOT to a LibTorch that you have"
}

unpack_wheels() {
  interruptible "$python" - "$work" "${wheel_parts[@]}" <<'EOF'
import fnmatch, os, pathlib, sys, zipfile
work, parts = pathlib.Path(sys.argv[1]), sys.argv[2:]
for wheel in (work / "wheels").glob("*.whl"):
    with zipfile.ZipFile(wheel) as archive:
        wanted = [name for name in archive.namelist() if any(fnmatch.fnmatchcase(name, part) for part in parts)]
        archive.extractall(work / "tree", wanted)
    os.remove(wheel)
EOF
}

fetch_libtorch() {
  [[ $(uname -sm) == "Linux x86_64" ]] ||
    fail "LibTorch is fetched for Linux on x86_64 only, and this is $(uname -sm):" \
      "set LibTorch_ROOT to a LibTorch of version $oldest_torch or newer"
  find_pip
  check_room
  [[ -z $passed_over ]] || say "$passed_over, so it is not used"
  work=$(mktemp -d "$cache/.unpacking-XXXXXX")
  say "downloading LibTorch $libtorch_version ($download_size)"
  download_wheels
  say "unpacking into $target"
  unpack_wheels || fail "the wheels could not be unpacked; Python's message is above. Nothing was left behind"
  has_libtorch "$work/tree/torch" || fail "the wheels of $wheel_list hold no LibTorch$cuda_words; please report this"
  rm -rf "$target" # present only when someone has removed parts of it
  mv "$work/tree" "$target"
}

# One set-up at a time for this cache, and whatever a killed one left is removed.
lock_cache() {
  local lock
  mkdir -p "$cache"
  exec {lock}>"$cache/setup.lock"
  if ! flock --nonblock "$lock"; then
    say "another set-up is running; waiting for it"
    flock "$lock"
  fi
  rm -rf "$cache"/.unpacking-*
}

# --- the order of things ----------------------------------------------------------------------------------------------

choose_variant() {
  case ${GPU:-0} in
    0)
      gpu=0 cuda_words='' main_library=libtorch_cpu.so
      target=$cache/libtorch-$libtorch_version wheel_list=$scripts/wheels.cpu.txt
      download_size='0.6 GB' room_mb=1300
      wheel_parts=('torch/lib/libtorch_cpu.so' 'torch/lib/libc10.so' 'nvidia/cu13/lib/libcudart.so.*'
        'nvidia/cu13/lib/libcupti.so.*')
      ;;
    1)
      gpu=1 cuda_words=' with CUDA' main_library=libtorch_cuda.so
      target=$cache/libtorch-$libtorch_version-cuda wheel_list=$scripts/wheels.gpu.txt
      download_size='2.6 GB' room_mb=6000
      wheel_parts=('torch/lib/libtorch.so' 'torch/lib/libtorch_c*.so' 'torch/lib/libtorch_nvshmem.so'
        'torch/lib/libc10*.so' 'torch/lib/libcaffe2_nvrtc.so' 'nvidia/*/lib/*.so*' 'nvidia/*/include/*')
      ;;
    *) fail "GPU=$GPU is neither 0 nor 1" ;;
  esac
  wheel_parts+=('torch/include/*' 'torch/lib/libgomp.so.*' 'torch/version.py'
    '*.dist-info/licenses/*' 'nvidia/*/LICENSE*')
}

main() {
  case ${1:-} in
    '') ;;
    -h | --help)
      usage
      exit
      ;;
    *)
      usage >&2
      fail "'$1' is not known"
      ;;
  esac
  child='' work='' passed_over=''
  choose_variant
  if [[ -n ${LibTorch_ROOT:-} ]]; then locate_libtorch; fi # a wrong one is told before anything is installed
  read_package_list
  if command -v apt-get >/dev/null; then
    find_missing_packages
    ((${#missing_specs[@]} == 0)) || install_missing_packages
  else
    say "there is no apt-get here; the build needs what these Debian packages hold: ${package_names[*]}"
  fi
  if ! locate_libtorch; then
    lock_cache
    trap clean_up EXIT
    if ! locate_libtorch; then # another set-up may have just fetched it
      fetch_libtorch
      locate_libtorch
    fi
  fi
  say "complete ($libtorch)"
}

main "$@"
