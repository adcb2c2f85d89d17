#!/usr/bin/env bash
# scripts/setup.sh on a machine made of stand-ins: nothing is installed, and nothing is downloaded.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=expect.sh
source "$here/expect.sh"
# shellcheck source-path=SCRIPTDIR source=fake_machine.sh
source "$here/fake_machine.sh"
setup=$(cd "$here/../../scripts" && pwd)/setup.sh
wheel_lists=$(dirname "$setup")

# make_libtorch DIRECTORY VERSION
make_libtorch() {
  mkdir -p "$1/include/torch/csrc/api/include/torch" "$1/lib"
  touch "$1/__init__.py" "$1/include/torch/csrc/api/include/torch/torch.h" "$1/lib/libtorch_cpu.so"
  echo "__version__ = '$2'" >"$1/version.py"
}

set_up() { run "${on_machine[@]}" "$@" bash "$setup"; }
calls_of() { grep -c "^$1" "$machine/calls" || true; }
files_below() { (cd "$1" && find . -type f | sort); }
no_packages() { rm "$machine/packages_installed"; }
expect_nothing_downloaded() { expect_equal "$(calls_of pip)" 0; }

explains_itself() {
  run "${on_machine[@]}" bash "$setup" --help
  expect_status 0
  expect_output 'LibTorch_ROOT=DIR'
  run "${on_machine[@]}" bash "$setup" --halp
  expect_status 1
  expect_output "'--halp' is not known"
}

without_root_prints_one_command() {
  no_packages
  echo 'echo 1000' | stand_in id
  set_up
  expect_status 1
  expect_equal "$(grep -c 'sudo apt-get' <<<"$output")" 1
  expect_output 'sudo apt-get update && sudo apt-get install -y --no-install-recommends '
  expect_output " 'libopenmpi-dev"
  expect_equal "$(calls_of '')" 0
}

root_installs_what_is_missing() {
  no_packages
  set_up
  expect_status 0
  expect_equal "$(calls_of 'apt-get -q update')" 1
  expect_equal "$(calls_of 'apt-get .*--no-install-recommends .*install .*cmake.* libopenmpi-dev')" 1
  set_up
  expect_equal "$(calls_of apt-get)" 2
}

sudo_installs_what_is_missing() {
  no_packages
  echo 'echo 1000' | stand_in id
  # shellcheck disable=SC2016 # expanded by the stand-in
  echo 'echo "sudo $*" >>"$MACHINE/calls"; shift; "$@"' | stand_in sudo
  ln -s "$(command -v true)" "$machine/bin/true"
  set_up
  expect_status 0
  expect_equal "$(calls_of 'sudo -n apt-get -q update')" 1
  expect_equal "$(calls_of 'sudo -n env DEBIAN_FRONTEND=noninteractive apt-get .* install ')" 1
}

versions_are_pinned_on_debian_12_only() {
  no_packages
  set_up
  local pinned=0
  # shellcheck source=/dev/null
  [[ $(. /etc/os-release && echo "$ID $VERSION_ID") != "debian 12" ]] || pinned=1
  expect_equal "$(calls_of 'apt-get .* install .*cmake=3.25.1-\* ')" "$pinned"
  expect_equal "$(grep -c 'differ from the tested' <<<"$output")" "$((1 - pinned))"
}

without_apt_lists_what_the_build_needs() {
  rm "$machine/bin/apt-get"
  set_up
  expect_status 0
  expect_output 'there is no apt-get here'
  expect_output ' libopenmpi-dev '
}

a_given_libtorch_is_used() {
  make_libtorch "$machine/mine" 2.9.1
  set_up LibTorch_ROOT="$machine/mine"
  expect_status 0
  expect_output "complete (LibTorch_ROOT: $machine/mine)"
  expect_nothing_downloaded
}

a_wrong_libtorch_root_is_told_before_anything_is_installed() {
  no_packages
  set_up LibTorch_ROOT="$machine/nowhere"
  expect_status 1
  expect_output "LibTorch_ROOT=$machine/nowhere is not a LibTorch: it needs include/"
  expect_output 'torch/torch.h and lib/libtorch_cpu.so'
  make_libtorch "$machine/cpu_only" 2.9.1
  set_up LibTorch_ROOT="$machine/cpu_only" GPU=1
  expect_status 1
  expect_output 'is not a LibTorch with CUDA'
  expect_equal "$(calls_of '')" 0
}

the_active_python_s_torch_is_used() {
  make_libtorch "$machine/site/torch" 2.10.0+cu130
  set_up PYTHONPATH="$machine/site"
  expect_status 0
  expect_output "complete (LibTorch 2.10.0 of the active Python: $machine/site/torch)"
  expect_nothing_downloaded
}

an_old_torch_is_passed_over() {
  make_libtorch "$machine/site/torch" 2.6.0
  set_up PYTHONPATH="$machine/site"
  expect_status 0
  expect_output "torch 2.6.0 of the active Python ($machine/site/torch) is older than 2.7"
  expect_output "complete (LibTorch 2.15.0 in $cache/libtorch-2.15.0)"
}

a_cpu_build_gets_only_its_parts() {
  set_up
  expect_status 0
  expect_equal "$(calls_of "pip .*--require-hashes -r $wheel_lists/wheels.cpu.txt ")" 1
  expect_equal "$(files_below "$cache")" './libtorch-2.15.0/nvidia.dist-info/licenses/License.txt
./libtorch-2.15.0/nvidia/cu13/lib/libcudart.so.13
./libtorch-2.15.0/nvidia/cu13/lib/libcupti.so.13
./libtorch-2.15.0/torch-2.15.0.dist-info/licenses/LICENSE
./libtorch-2.15.0/torch/include/torch/csrc/api/include/torch/torch.h
./libtorch-2.15.0/torch/lib/libc10.so
./libtorch-2.15.0/torch/lib/libgomp.so.1
./libtorch-2.15.0/torch/lib/libtorch_cpu.so
./libtorch-2.15.0/torch/version.py
./setup.lock'
}

a_gpu_build_gets_the_cuda_parts() {
  set_up GPU=1
  expect_status 0
  expect_equal "$(calls_of "pip .*--require-hashes -r $wheel_lists/wheels.gpu.txt ")" 1
  expect_equal "$(files_below "$cache")" './libtorch-2.15.0-cuda/nvidia.dist-info/licenses/License.txt
./libtorch-2.15.0-cuda/nvidia/cu13/include/cuda.h
./libtorch-2.15.0-cuda/nvidia/cu13/lib/libcudart.so.13
./libtorch-2.15.0-cuda/nvidia/cu13/lib/libcupti.so.13
./libtorch-2.15.0-cuda/nvidia/cu13/lib/libnvperf_host.so
./libtorch-2.15.0-cuda/nvidia/nccl/lib/libnccl.so.2
./libtorch-2.15.0-cuda/torch-2.15.0.dist-info/licenses/LICENSE
./libtorch-2.15.0-cuda/torch/include/torch/csrc/api/include/torch/torch.h
./libtorch-2.15.0-cuda/torch/lib/libc10.so
./libtorch-2.15.0-cuda/torch/lib/libc10_cuda.so
./libtorch-2.15.0-cuda/torch/lib/libcaffe2_nvrtc.so
./libtorch-2.15.0-cuda/torch/lib/libgomp.so.1
./libtorch-2.15.0-cuda/torch/lib/libtorch.so
./libtorch-2.15.0-cuda/torch/lib/libtorch_cpu.so
./libtorch-2.15.0-cuda/torch/lib/libtorch_cuda.so
./libtorch-2.15.0-cuda/torch/lib/libtorch_cuda_linalg.so
./libtorch-2.15.0-cuda/torch/lib/libtorch_nvshmem.so
./libtorch-2.15.0-cuda/torch/version.py
./setup.lock'
  set_up GPU=maybe
  expect_status 1
  expect_output 'GPU=maybe is neither 0 nor 1'
}

every_wheel_is_pinned_by_hash() {
  local line
  while read -r line; do
    [[ -z $line || $line == \#* || $line == '-r wheels.cpu.txt' ]] && continue
    [[ $line =~ ^[a-z0-9-]+==[0-9.]+\ --hash=sha256:[0-9a-f]{64}$ ]] || complain "not pinned: $line"
  done < <(cat "$wheel_lists/wheels.cpu.txt" "$wheel_lists/wheels.gpu.txt")
}

a_failed_download_leaves_nothing() {
  set_up PIP_DOES=fail
  expect_status 1
  expect_output 'the download of LibTorch failed'
  expect_equal "$(ls -A "$cache")" setup.lock
}

a_damaged_wheel_leaves_nothing() {
  mkdir "$machine/wheels"
  cp "$sandbox/wheels/torch-2.15.0.whl" "$machine/wheels"
  head -c 100 "$sandbox/wheels/nvidia.whl" >"$machine/wheels/nvidia.whl"
  set_up WHEELS="$machine/wheels"
  expect_status 1
  expect_output 'the wheels could not be unpacked'
  expect_equal "$(ls -A "$cache")" setup.lock
}

an_interrupted_download_leaves_nothing() {
  local pid code=0
  "${on_machine[@]}" PIP_DOES=hang bash "$setup" >/dev/null 2>&1 &
  pid=$!
  background+=("$pid")
  eventually grep -q '^pip' "$machine/calls"
  kill -TERM "$pid"
  wait "$pid" || code=$?
  expect_equal "$code" 143
  expect_equal "$(ls -A "$cache")" setup.lock
}

leftovers_of_a_killed_run_are_removed() {
  mkdir -p "$cache/.unpacking-abcdef/wheels"
  set_up
  expect_status 0
  expect_equal "$(ls -A "$cache")" $'libtorch-2.15.0\nsetup.lock'
}

two_at_once_download_once() {
  "${on_machine[@]}" bash "$setup" >/dev/null 2>&1 &
  background+=($!)
  set_up
  expect_status 0
  wait "${background[-1]}" || complain "the other set-up failed"
  expect_equal "$(calls_of pip)" 1
}

a_finished_set_up_takes_less_than_a_second() {
  set_up
  local start=${EPOCHREALTIME/[.,]/}
  set_up
  local took_us=$((${EPOCHREALTIME/[.,]/} - start))
  expect_equal "$output" "set-up: complete (LibTorch 2.15.0 in $cache/libtorch-2.15.0)"
  ((took_us < 1000000)) || complain "it took $took_us µs"
}

a_full_disk_is_told_first() {
  echo 'echo Avail; echo 12M' | stand_in df
  set_up
  expect_status 1
  expect_output "$cache has 12 MB free, and fetching LibTorch takes 1300 MB"
  expect_nothing_downloaded
}

other_processors_are_told_what_to_do() {
  echo 'echo Linux aarch64' | stand_in uname
  set_up
  expect_status 1
  expect_output 'this is Linux aarch64: set LibTorch_ROOT'
  expect_nothing_downloaded
}

make_wheels
for check in explains_itself without_root_prints_one_command root_installs_what_is_missing \
  sudo_installs_what_is_missing versions_are_pinned_on_debian_12_only without_apt_lists_what_the_build_needs \
  a_given_libtorch_is_used a_wrong_libtorch_root_is_told_before_anything_is_installed \
  the_active_python_s_torch_is_used an_old_torch_is_passed_over a_cpu_build_gets_only_its_parts \
  a_gpu_build_gets_the_cuda_parts every_wheel_is_pinned_by_hash a_failed_download_leaves_nothing \
  a_damaged_wheel_leaves_nothing an_interrupted_download_leaves_nothing leftovers_of_a_killed_run_are_removed \
  two_at_once_download_once a_finished_set_up_takes_less_than_a_second a_full_disk_is_told_first \
  other_processors_are_told_what_to_do; do
  echo "$check"
  new_machine
  "$check"
done
