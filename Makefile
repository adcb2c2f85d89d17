# The commands that a user or CI types. CMake builds, scripts/setup.sh installs; nothing is decided here.

.DEFAULT_GOAL := help
.NOTPARALLEL:  # each step needs the one before; ninja and ctest run things side by side
.PHONY: help setup build demo test bench lint format install clean

GPU ?= 0
PREFIX ?= /usr/local
export GPU

preset := $(if $(filter 1,$(GPU)),cuda,release)
build_dir := $(if $(filter 1,$(GPU)),build/cuda,build)
bin := $(build_dir)/bin
jobs := $(if $(JOBS),--parallel $(JOBS))

sources = git ls-files --cached --others --exclude-standard
cxx_sources = $(sources) '*.cc' '*.h' '*.cu'

help:  ## list these commands
	@echo 'make COMMAND [GPU=1] [JOBS=N]'
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/  \1\t\2/p' Makefile | expand -t 12

setup:  ## install packages and LibTorch where they are missing
	@scripts/setup.sh

build: setup $(build_dir)/build.ninja  ## set up, then build everything into build/
	cmake --build --preset $(preset) $(jobs)

demo: build  ## train the ConvNet on 2 ranks, on drawn digits or on the MNIST files of DATA=dir
	$(bin)/fedrun -np 2 $(bin)/mnist --epochs 3 $(if $(DATA),--data-dir '$(DATA)')

test: build  ## run every test, then unit tests without Torch under ASan/UBSan and TSan
	ctest --preset $(preset)
	for sanitizer in asan tsan; do \
	  cmake --preset $$sanitizer && cmake --build --preset $$sanitizer $(jobs) && ctest --preset $$sanitizer || exit 1; \
	done

bench: build  ## measure collectives, training and federated rounds, by fedrun bench with the flags of BENCH='--quick ...'
	$(bin)/fedrun bench --out $(build_dir)/bench-$$(date +%Y%m%d-%H%M%S) $(BENCH)

lint: setup $(build_dir)/build.ninja  ## check format, clang-tidy (code without Torch) and shell scripts
	$(cxx_sources) | xargs clang-format --dry-run -Werror
	run-clang-tidy -quiet -p $(build_dir) '/src/(core|collectives|launcher)/'
	if command -v shellcheck >/dev/null; then $(sources) '*.sh' .ci/run | xargs shellcheck -x; \
	else echo 'shellcheck is not installed: scripts are not checked'; fi

format:  ## format the C++ sources in place
	$(cxx_sources) | xargs clang-format -i

# Under sudo nothing is set up or built: root would fetch its own LibTorch.
install: $(if $(SUDO_USER),,build)  ## install into PREFIX=dir (default: /usr/local)
	cmake --install $(build_dir) --prefix $(PREFIX)

clean:  ## remove build/; LibTorch stays in its cache
	rm -rf build

# Only for the first time and for changed presets: ninja itself notices changed CMake files.
$(build_dir)/build.ninja: CMakePresets.json | setup
	cmake --preset $(preset)
	@touch $@
