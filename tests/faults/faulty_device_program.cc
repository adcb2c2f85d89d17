// A program that reduces on GPUs, and is killed, stopped or stuck in the middle of it, as its first argument says, on
// the rank that its second argument says.
#include <fedrun/collectives/cuda_handles.h>
#include <fedrun/collectives/process.h>
#include <fedrun/core/error.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "stand_ins/stand_in_control.h"
#include "support/device_backend.h"

namespace {

using namespace std::chrono_literals;

constexpr std::size_t count = 100'000;

int launches() { return stand_in::control().calls("stuck kernel"); }  // asked for each operation that goes on a stream

// Returns when the operation is on this rank's stream, where it does not end.
void hang_in(fedrun::Work& work, int launches_before) {
  while (launches() == launches_before) {
    if (work.done()) throw std::logic_error("the operation has ended without having been launched");
    std::this_thread::yield();
  }
}

void fail(const std::string& how) {
  std::printf("in the middle\n");
  std::fflush(stdout);
  if (how == "kill") raise(SIGKILL);
  if (how == "stop") raise(SIGSTOP);
  if (how == "throw") throw fedrun::UsageError("the data directory is missing");
}

int run(const std::string& how, int failing_rank) {
  fedrun::Process process;
  auto& world = process.world();
  std::printf("pid %d\n", static_cast<int>(getpid()));
  std::fflush(stdout);
  const fedrun::CudaStream stream;
  const fedrun::test::DeviceMemory memory(count * sizeof(float));
  const fedrun::Buffer elements{memory.get(), count, fedrun::DataType::f32, fedrun::Device::cuda, stream.get()};
  fedrun::check_cuda(cudaMemsetAsync(memory.get(), 0, elements.bytes(), stream.get()), "cudaMemsetAsync");
  for (int i = 0; i < 3; ++i) world.allreduce(elements);
  const bool fails = how != "none" && world.rank() == failing_rank;
  if (fails) stand_in::control().fail("stuck kernel", 1);
  const int launches_before = launches();
  const auto work = world.allreduce_async(elements);
  if (fails) {
    hang_in(*work, launches_before);
    fail(how);
  }
  try {
    work->wait();
  } catch (const fedrun::PeerLostError&) {
    std::printf("lost a peer\n");
    std::fflush(stdout);
    throw;
  }
  return 0;
}

}  // namespace

int main(int, char** argv) { return run(argv[1], std::atoi(argv[2])); }
