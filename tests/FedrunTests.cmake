# The functions that register tests, so that each folder lists only its files.

function(fedrun_compile_as_test target)
  target_compile_definitions(${target} PRIVATE FEDRUN_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${target} PRIVATE ${ARGN})
  fedrun_compile_privately(${target})
  fedrun_compile_quickly(${target})
  fedrun_reuse_torch_header(${target})
endfunction()

function(fedrun_test_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  fedrun_compile_as_test(${name} ${arg_LINK})
endfunction()

# Tests that two programs run, compiled once; the programs list $<TARGET_OBJECTS:name> among their sources.
function(fedrun_test_objects name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  add_library(${name} OBJECT ${arg_SOURCES})
  fedrun_compile_as_test(${name} ${arg_LINK} GTest::gmock GTest::gtest)
endfunction()

add_custom_target(unit_tests)  # what the sanitizers build

# A test of one process.
function(fedrun_unit_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  fedrun_test_program(${name}_unit_test SOURCES ${arg_SOURCES} LINK ${arg_LINK} GTest::gmock GTest::gtest_main)
  add_dependencies(unit_tests ${name}_unit_test)
  add_test(NAME unit.${name} COMMAND ${name}_unit_test)
  # GoogleTest exits with 0 when it skipped; ctest says SKIPPED only if every test of the program was.
  set_tests_properties(unit.${name} PROPERTIES LABELS unit)
endfunction()

# A test of several ranks that the built fedrun starts, once per number of ranks and backend.
function(fedrun_rank_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK;RANKS;BACKENDS")
  fedrun_test_program(${name}_rank_test SOURCES ${arg_SOURCES} "${PROJECT_SOURCE_DIR}/tests/support/rank_main.cc"
    LINK ${arg_LINK} fedrun::collectives GTest::gmock GTest::gtest)
  if(NOT arg_BACKENDS)
    set(arg_BACKENDS auto)
  endif()
  foreach(ranks IN LISTS arg_RANKS)
    foreach(backend IN LISTS arg_BACKENDS)
      set(test ranks.${name}.${backend}.${ranks})
      add_test(NAME ${test}
        COMMAND "${PROJECT_BINARY_DIR}/bin/fedrun" -np ${ranks} --backend ${backend} $<TARGET_FILE:${name}_rank_test>)
      # Two cores carry all of it: ranks that share them with other tests would only measure the scheduler.
      set_tests_properties(${test} PROPERTIES LABELS ranks RUN_SERIAL TRUE)
    endforeach()
  endforeach()
endfunction()

# A program that finds the stand-ins in tests/stand_ins for CUDA and NCCL.
function(fedrun_device_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  # As flags, because CMake would warn of two libraries with one name. They come before those of the real ones.
  fedrun_test_program(${name}
    SOURCES ${arg_SOURCES} $<TARGET_OBJECTS:fedrun_nccl> $<TARGET_OBJECTS:fedrun_device_kernels>
    LINK "-Wl,$<TARGET_FILE:nccl_stand_in>" "-Wl,$<TARGET_FILE:cudart_stand_in>" fedrun::collectives ${arg_LINK})
  target_include_directories(${name} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS} ${NCCL_INCLUDE_DIR})
  target_link_options(${name} PRIVATE "-Wl,-rpath,${PROJECT_BINARY_DIR}/stand_ins")
  add_dependencies(${name} nccl_stand_in cudart_stand_in)
endfunction()

# A test of one process with a GPU.
function(fedrun_device_unit_test name)
  fedrun_device_program(${name}_unit_test SOURCES ${ARGN} LINK GTest::gmock GTest::gtest_main)
  add_test(NAME unit.${name} COMMAND ${name}_unit_test)
  set_tests_properties(unit.${name} PROPERTIES LABELS "unit;devices")
endfunction()

# A test of several ranks with a GPU each.
function(fedrun_device_rank_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "MAIN" "SOURCES;LINK;RANKS;BACKENDS")
  fedrun_device_program(${name}_rank_test SOURCES ${arg_SOURCES} "${PROJECT_SOURCE_DIR}/tests/support/${arg_MAIN}"
    LINK ${arg_LINK} GTest::gmock GTest::gtest)
  foreach(ranks IN LISTS arg_RANKS)
    foreach(backend IN LISTS arg_BACKENDS)
      set(test ranks.${name}.${backend}.${ranks})
      add_test(NAME ${test}
        COMMAND "${PROJECT_BINARY_DIR}/bin/fedrun" -np ${ranks} --backend ${backend} $<TARGET_FILE:${name}_rank_test>)
      set_tests_properties(${test} PROPERTIES LABELS "ranks;devices" RUN_SERIAL TRUE)
    endforeach()
  endforeach()
endfunction()

# A shell script that checks the built programs from outside; it gets the bin directory as its argument.
function(fedrun_script_test name script)
  add_test(NAME ${name} COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/${script}" "${PROJECT_BINARY_DIR}/bin" ${ARGN})
  set_tests_properties(${name} PROPERTIES RUN_SERIAL TRUE SKIP_RETURN_CODE 77)
endfunction()
