// Runs GoogleTest on every rank.
#include <memory>

#include "support/rank_test.h"
#include "support/rank_tests.h"

namespace {

std::unique_ptr<fedrun::Process> the_process;

}  // namespace

namespace fedrun::test {
Process& process() { return *the_process; }
Communicator& world() { return process().world(); }
}  // namespace fedrun::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  the_process = std::make_unique<fedrun::Process>();
  const int result = fedrun::test::run_tests_of(the_process->rank());
  the_process.reset();
  return result;
}
