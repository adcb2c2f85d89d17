# The warnings that fedrun's own code compiles without; headers of others are system headers and exempt.
add_library(fedrun_warnings INTERFACE)
target_compile_options(fedrun_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-align -Wunused
  # GCC 12 takes plain appends to a std::string for overlapping copies (its bug 105651).
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
  $<$<BOOL:${FEDRUN_WERROR}>:-Werror>)
