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
  auto devices = make_device_world();
  // What only passes through host memory is worked on there as everything else is, unless each host rounds its own sum.
  const bool is_as_on_host = reach_of_nccl() == fedrun::NcclReach::nobody && devices->name() != "shm+mpi";
  const std::string_view name = is_as_on_host ? devices->name() : "nccl";
  the_world.emplace(std::make_unique<DeviceBackend>(std::move(devices), name));
  const int result = run_tests_of(the_process->rank());
  the_world.reset();
  the_process.reset();
  return result;
}
