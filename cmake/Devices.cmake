# Finds the CUDA toolkit and NCCL. A build with FEDRUN_CUDA needs both. Any other links neither; but where both are at hand, its
# tests run the code for GPUs over stand-ins.
# Result: FEDRUN_HAS_NCCL, and FEDRUN_NO_NCCL_REASON where that is off.
set(oldest_nccl 2.18)
set(FEDRUN_HAS_NCCL ON)
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)  # LibTorch and NCCL share one, and so do we
# Every architecture of the toolkit's, unless the user knows which GPUs there will be.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES all-major)
endif()

# CMake looks for nvcc on PATH only, and its installers do not put it there.
macro(use_nvcc_of_toolkit)
  if(CUDAToolkit_NVCC_EXECUTABLE AND NOT DEFINED CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    set(CMAKE_CUDA_COMPILER "${CUDAToolkit_NVCC_EXECUTABLE}")
  endif()
endmacro()

if(FEDRUN_CUDA)
  fedrun_require(CUDAToolkit "install the CUDA toolkit 12 or newer, or configure with -DFEDRUN_CUDA=OFF" 12)
  use_nvcc_of_toolkit()
  enable_language(CUDA)
  fedrun_require(NCCL "run GPU=1 scripts/setup.sh, or pass -DNCCL_ROOT=<directory with include/nccl.h>; ${oldest_nccl} or newer is needed"
    ${oldest_nccl})
  return()
endif()

message(STATUS "fedrun: GPUs off; configure with --preset cuda to link CUDA")
include(CheckLanguage)
if(NOT FEDRUN_TESTS OR FEDRUN_SANITIZE)
  set(FEDRUN_NO_NCCL_REASON "this build has no tests of GPUs")
else()
  find_package(CUDAToolkit 12 QUIET)
  find_package(NCCL ${oldest_nccl} QUIET)
  use_nvcc_of_toolkit()
  check_language(CUDA)
  if(NOT CUDAToolkit_FOUND OR NOT CMAKE_CUDA_COMPILER)
    set(FEDRUN_NO_NCCL_REASON "there is no CUDA toolkit 12 or newer, with nvcc")
  elseif(NOT NCCL_FOUND)
    set(FEDRUN_NO_NCCL_REASON "there is no NCCL ${oldest_nccl} or newer")
  else()
    enable_language(CUDA)
    message(STATUS "fedrun: CUDA ${CUDAToolkit_VERSION} and NCCL ${NCCL_VERSION}, for tests")
  endif()
endif()
if(FEDRUN_NO_NCCL_REASON)
  set(FEDRUN_HAS_NCCL OFF)
  message(STATUS "fedrun: the code for GPUs is not tested: ${FEDRUN_NO_NCCL_REASON}")
endif()
