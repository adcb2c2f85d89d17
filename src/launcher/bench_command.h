// fedrun bench: hands over to the program that runs the benchmarks, which lies beside fedrun.
#pragma once

#include <string>
#include <vector>

namespace fedrun::launcher {

constexpr const char* bench_command = "bench";

// Becomes that program, with what follows the word `bench`. Returns only by BackendError, where there is none.
[[noreturn]] void become_bench_suite(const std::vector<std::string>& arguments);

}  // namespace fedrun::launcher
