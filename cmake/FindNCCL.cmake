# Finds NCCL: in NCCL_ROOT, in the wheel that lies beside LibTorch, beside the CUDA toolkit, or in the system. LibTorch
# for GPUs needs functions that an older NCCL of the toolkit or the system lacks.
# Result: NCCL_FOUND, NCCL_VERSION and the target NCCL::nccl.
set(wheel "${LibTorch_DIRECTORY}/../nvidia/nccl")
find_path(NCCL_INCLUDE_DIR nccl.h HINTS "${wheel}" ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
# Names by directory: a wheel has libnccl.so.2 only, and must not lose against libnccl.so elsewhere.
find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 NAMES_PER_DIR
  HINTS "${wheel}" ${CUDAToolkit_LIBRARY_DIR} PATH_SUFFIXES lib lib64)

if(NCCL_INCLUDE_DIR)
  file(STRINGS "${NCCL_INCLUDE_DIR}/nccl.h" lines REGEX "#define NCCL_(MAJOR|MINOR|PATCH) [0-9]+")
  string(REGEX REPLACE "[^;]*MAJOR ([0-9]+);[^;]*MINOR ([0-9]+);[^;]*PATCH ([0-9]+).*" "\\1.\\2.\\3" NCCL_VERSION "${lines}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL REQUIRED_VARS NCCL_LIBRARY NCCL_INCLUDE_DIR VERSION_VAR NCCL_VERSION)
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)

if(NCCL_FOUND AND NOT TARGET NCCL::nccl)
  add_library(NCCL::nccl UNKNOWN IMPORTED)
  set_target_properties(NCCL::nccl PROPERTIES IMPORTED_LOCATION "${NCCL_LIBRARY}")
  target_include_directories(NCCL::nccl SYSTEM INTERFACE "${NCCL_INCLUDE_DIR}")
endif()
