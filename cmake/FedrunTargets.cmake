# The functions that every folder uses, so that a target's own CMakeLists.txt says only what is special about it.
include(Warnings)

# <fedrun/collectives/communicator.h> is src/collectives/communicator.h: a link gives the tree the paths that users have.
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/include")
file(CREATE_LINK "${PROJECT_SOURCE_DIR}/src" "${PROJECT_BINARY_DIR}/include/fedrun" SYMBOLIC)

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)  # installed programs find LibTorch where it was found at build time
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# What fedrun's own sources compile with; users of the installed package get none of it.
function(fedrun_compile_privately target)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:fedrun_warnings>)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  # Results are the same bits on every CPU: no multiplication and addition fused where the hardware happens to have it.
  target_compile_options(${target} PRIVATE -ffp-contract=off)
  if(FEDRUN_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${FEDRUN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    target_link_options(${target} PRIVATE -fsanitize=${FEDRUN_SANITIZE})
    # ThreadSanitizer does not model fences, and GCC warns of them; ours order atomics only, which it does not report.
    if(FEDRUN_SANITIZE STREQUAL thread)
      target_compile_options(${target} PRIVATE -Wno-tsan)
    endif()
  endif()
endfunction()

# For code whose speed does not matter, because it tests, or because LibTorch and the collectives do the work: it compiles
# in half the time.
function(fedrun_compile_quickly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# One file with <torch/torch.h> costs half a minute, so all Torch targets share one precompiled header. Loading it costs
# 5 s, so files that need no Torch say so with fedrun_torch_free.
function(fedrun_reuse_torch_header target)
  get_target_property(libraries ${target} LINK_LIBRARIES)
  if(NOT FEDRUN_TORCH OR NOT libraries MATCHES "LibTorch::|fedrun::(torch_data|models|train|fl)")
    return()
  endif()
  if(NOT TARGET fedrun_torch_header)
    file(WRITE "${PROJECT_BINARY_DIR}/torch_header.cc" "// Exists to carry the precompiled <torch/torch.h>.\n")
    add_library(fedrun_torch_header OBJECT "${PROJECT_BINARY_DIR}/torch_header.cc")
    target_link_libraries(fedrun_torch_header PRIVATE LibTorch::cpu)
    fedrun_compile_privately(fedrun_torch_header)
    fedrun_compile_quickly(fedrun_torch_header)
    target_precompile_headers(fedrun_torch_header PRIVATE <torch/torch.h>)
  endif()
  target_precompile_headers(${target} REUSE_FROM fedrun_torch_header)
  fedrun_compile_quickly(${target})  # a precompiled header serves one level of optimisation only
endfunction()

function(fedrun_torch_free)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
endfunction()

function(fedrun_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK;PRIVATE_LINK")
  set(target fedrun_${name})
  add_library(${target} STATIC ${arg_SOURCES})
  add_library(fedrun::${name} ALIAS ${target})
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PUBLIC ${arg_LINK} PRIVATE ${arg_PRIVATE_LINK})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  fedrun_compile_privately(${target})
  fedrun_reuse_torch_header(${target})
  set_property(GLOBAL APPEND PROPERTY FEDRUN_LIBRARIES ${target})
endfunction()

# A program for users: it goes to bin/ of the build and of the installation.
function(fedrun_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  add_executable(fedrun_${name}_program ${arg_SOURCES})
  set_target_properties(fedrun_${name}_program PROPERTIES OUTPUT_NAME ${name})
  target_link_libraries(fedrun_${name}_program PRIVATE ${arg_LINK})
  fedrun_compile_privately(fedrun_${name}_program)
  fedrun_reuse_torch_header(fedrun_${name}_program)
  install(TARGETS fedrun_${name}_program RUNTIME)
endfunction()
