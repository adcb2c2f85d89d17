# Finds LibTorch without Torch's own config file, which wants nvcc and a newer CMake even for the CPU.
#
# Looked for in this order: LibTorch_ROOT (variable or environment), what was found the last time, the torch of the active
# Python, and the cache that scripts/setup.sh fills. Components: cpu (default), cuda.
# Result: LibTorch_FOUND, LibTorch_VERSION, LibTorch_DIRECTORY, and the targets LibTorch::cpu and LibTorch::cuda.

# 2.7 is the first whose Linux binaries all use the C++11 ABI of std::string.
set(oldest_libtorch 2.7)

# The cache that scripts/setup.sh fills, in the layout of the wheel.
function(libtorch_cache result)
  set(cache "$ENV{XDG_CACHE_HOME}")
  if(NOT cache)
    set(cache "$ENV{HOME}/.cache")
  endif()
  set(suffix "")
  if("cuda" IN_LIST LibTorch_FIND_COMPONENTS)
    set(suffix "-cuda")
  endif()
  set(${result} "${cache}/fedrun/libtorch-2.15.0${suffix}/torch" PARENT_SCOPE)
endfunction()

# Asks the active Python where torch is, without importing it: that would take seconds.
function(libtorch_of_python result)
  find_program(python NAMES python3 python NO_CACHE)
  set(found "")
  if(python)
    execute_process(
      COMMAND ${python} -c "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
      OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

# The version by the headers, empty where they do not say.
function(libtorch_version directory result)
  set(version "")
  foreach(header include/torch/headeronly/version.h include/torch/csrc/api/include/torch/version.h)
    if(NOT version AND EXISTS "${directory}/${header}")
      file(STRINGS "${directory}/${header}" lines REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
      if("${lines}" MATCHES "MAJOR ([0-9]+);.*MINOR ([0-9]+);.*PATCH ([0-9]+)")
        set(version "${CMAKE_MATCH_1}.${CMAKE_MATCH_2}.${CMAKE_MATCH_3}")
      endif()
    endif()
  endforeach()
  set(${result} "${version}" PARENT_SCOPE)
endfunction()

# Every component needs its library: a CPU-only torch of the active Python is no use to a CUDA build.
function(libtorch_is_complete directory result)
  set(complete TRUE)
  foreach(file include/torch/csrc/api/include/torch/torch.h lib/libtorch_cpu.so)
    if(NOT EXISTS "${directory}/${file}")
      set(complete FALSE)
    endif()
  endforeach()
  if("cuda" IN_LIST LibTorch_FIND_COMPONENTS AND NOT EXISTS "${directory}/lib/libtorch_cuda.so")
    set(complete FALSE)
  endif()
  set(${result} ${complete} PARENT_SCOPE)
endfunction()

if(LibTorch_ROOT)
  set(candidates "${LibTorch_ROOT}")
elseif(NOT "$ENV{LibTorch_ROOT}" STREQUAL "")
  set(candidates "$ENV{LibTorch_ROOT}")
else()
  # What was found before comes first: a build must not change its LibTorch because a Python environment was entered.
  libtorch_of_python(from_python)
  libtorch_cache(from_cache)
  set(candidates "${LibTorch_DIRECTORY}" "${from_python}" "${from_cache}")
endif()

set(found "LibTorch_DIRECTORY-NOTFOUND")
foreach(candidate IN LISTS candidates)
  libtorch_is_complete("${candidate}" complete)
  libtorch_version("${candidate}" LibTorch_VERSION)
  if(complete AND LibTorch_VERSION VERSION_GREATER_EQUAL oldest_libtorch)
    set(found "${candidate}")
    break()
  elseif(candidate AND EXISTS "${candidate}")
    message(STATUS "fedrun: not using ${candidate}: version ${LibTorch_VERSION} (${oldest_libtorch} or newer is needed), or incomplete")
  endif()
endforeach()
set(LibTorch_DIRECTORY "${found}" CACHE PATH "The LibTorch in use, with include/ and lib/" FORCE)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch REQUIRED_VARS LibTorch_DIRECTORY VERSION_VAR LibTorch_VERSION)

if(LibTorch_FOUND AND NOT TARGET LibTorch::cpu)
  add_library(LibTorch::c10 SHARED IMPORTED)
  set_target_properties(LibTorch::c10 PROPERTIES IMPORTED_LOCATION "${LibTorch_DIRECTORY}/lib/libc10.so")
  add_library(LibTorch::cpu SHARED IMPORTED)
  set_target_properties(LibTorch::cpu PROPERTIES
    IMPORTED_LOCATION "${LibTorch_DIRECTORY}/lib/libtorch_cpu.so"
    INTERFACE_LINK_LIBRARIES LibTorch::c10
    INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY=1)  # it comes with the headers of fmt, but not with their library
  target_include_directories(LibTorch::cpu SYSTEM INTERFACE
    "${LibTorch_DIRECTORY}/include" "${LibTorch_DIRECTORY}/include/torch/csrc/api/include")
endif()

if(LibTorch_FOUND AND "cuda" IN_LIST LibTorch_FIND_COMPONENTS AND NOT TARGET LibTorch::cuda)
  add_library(LibTorch::c10_cuda SHARED IMPORTED)
  set_target_properties(LibTorch::c10_cuda PROPERTIES IMPORTED_LOCATION "${LibTorch_DIRECTORY}/lib/libc10_cuda.so")
  add_library(LibTorch::cuda SHARED IMPORTED)
  set_target_properties(LibTorch::cuda PROPERTIES
    IMPORTED_LOCATION "${LibTorch_DIRECTORY}/lib/libtorch_cuda.so"
    INTERFACE_LINK_LIBRARIES "LibTorch::c10_cuda;LibTorch::cpu"
    # CUDA kernels register themselves when the library is loaded; nothing refers to it by symbol.
    INTERFACE_LINK_OPTIONS "LINKER:--no-as-needed")
endif()
