# A machine made of stand-ins for apt, pip and the like; sourced by setup_test.sh after expect.sh.
# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared between the files

real_python=$(python3 -c 'import sys; print(sys.executable)')

stand_in() {
  { echo '#!/usr/bin/env bash' && cat; } >"$machine/bin/$1"
  chmod +x "$machine/bin/$1"
}

# A fresh machine: root, all packages installed, no LibTorch. Its PATH holds nothing but what is put there.
new_machine() {
  machine=$(mktemp -d "$sandbox/machine-XXXX")
  mkdir -p "$machine/bin" "$machine/home"
  cache=$machine/home/.cache/fedrun
  on_machine=(env -i HOME="$machine/home" PATH="$machine/bin" MACHINE="$machine" WHEELS="$sandbox/wheels"
    REAL_PYTHON="$real_python")
  local tool
  for tool in bash cat cp dirname env flock head mkdir mktemp mv rm sleep sort tail touch tr; do
    ln -s "$(command -v "$tool")" "$machine/bin/$tool"
  done
  touch "$machine/calls" "$machine/packages_installed"
  echo 'echo Linux x86_64' | stand_in uname
  echo 'echo Avail; echo 99999M' | stand_in df
  echo 'echo 0' | stand_in id
  stand_in dpkg-query <<'EOF'
[[ -e $MACHINE/packages_installed ]] || exit 1
for name in "${@:4}"; do echo "installed $name"; done
EOF
  stand_in apt-get <<'EOF'
echo "apt-get $*" >>"$MACHINE/calls"
[[ $* != *" install "* ]] || touch "$MACHINE/packages_installed"
EOF
  # -S hides the torch that the real machine may have; PYTHONPATH still counts.
  stand_in python3 <<'EOF'
case $* in
  "-m pip --version") ;;
  "-m pip download "*)
    echo "pip $*" >>"$MACHINE/calls"
    wheels=${*: -1}
    mkdir -p "$wheels"
    echo half >"$wheels/torch.whl.part"
    echo half >"$TMPDIR/torch.whl.part"
    case ${PIP_DOES:-} in
      fail) exit 1 ;;
      hang) exec sleep 600 ;;
      *) sleep 0.3 && cp "$WHEELS"/*.whl "$wheels" ;;
    esac
    ;;
  *) exec "$REAL_PYTHON" -S "$@" ;;
esac
EOF
}

# As the real wheels, in small: parts that C++ needs between parts that it does not need.
make_wheels() {
  mkdir "$sandbox/wheels"
  python3 - "$sandbox/wheels" <<'EOF'
import sys, zipfile
def wheel(name, members):
    with zipfile.ZipFile(f"{sys.argv[1]}/{name}.whl", "w") as archive:
        for member in members.split():
            archive.writestr(member, "__version__ = '2.15.0'")
wheel("torch-2.15.0", """torch/__init__.py torch/version.py torch/include/torch/csrc/api/include/torch/torch.h
    torch/_vendor/x/LICENSE
    torch/lib/libc10.so torch/lib/libc10_cuda.so torch/lib/libcaffe2_nvrtc.so torch/lib/libgomp.so.1 torch/lib/libshm.so
    torch/lib/libtorch.so torch/lib/libtorch_cpu.so torch/lib/libtorch_cuda.so torch/lib/libtorch_cuda_linalg.so
    torch/lib/libtorch_global_deps.so torch/lib/libtorch_nvshmem.so torch/lib/libtorch_python.so
    torch-2.15.0.dist-info/METADATA torch-2.15.0.dist-info/licenses/LICENSE""")
wheel("nvidia", """nvidia/cu13/include/cuda.h nvidia/cu13/lib/libcudart.so.13 nvidia/cu13/lib/libcudart_static.a
    nvidia/cu13/lib/libcupti.so.13 nvidia/cu13/lib/libnvperf_host.so nvidia/nccl/lib/libnccl.so.2
    nvidia.dist-info/licenses/License.txt""")
EOF
}
