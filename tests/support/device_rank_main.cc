// Runs the tests of all ranks with elements on GPUs.
#include <memory>
#include <optional>

#include "support/device_backend.h"
#include "support/device_world.h"
#include "support/rank_test.h"
#include "support/rank_tests.h"

namespace {

std::unique_ptr<fedrun::Process> the_process;
std::optional<fedrun::Communicator> the_world;

}  // namespace

namespace fedrun::test {
Process& process() { return *the_process; }
Communicator& world() { return *the_world; }
}  // namespace fedrun::test

int main(int argc, char** argv) {
  using namespace fedrun::test;
  testing::InitGoogleTest(&argc, argv);
  the_process = std::make_unique<fedrun::Process>();
  the_world.emplace(std::make_unique<DeviceBackend>(make_device_world()));
  const int result = run_tests_of(the_process->rank());
  the_world.reset();
  the_process.reset();
  return result;
}
