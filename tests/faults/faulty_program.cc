// A program that fails in the way its first argument says, on the rank its second argument says (-1: on all).
#include <fedrun/collectives/process.h>
#include <fedrun/core/error.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

void fail(const std::string& how) {
  if (how == "usage") throw fedrun::UsageError("the data directory is missing\nlooked in: nowhere");
  if (how == "std") throw std::runtime_error("something odd");
  if (how == "thread") std::thread([] { throw fedrun::BackendError("in a thread"); }).join();
  if (how == "exit") std::exit(7);
  if (how == "kill") raise(SIGKILL);
  if (how == "stop") raise(SIGSTOP);
  if (how == "late") std::this_thread::sleep_for(std::chrono::seconds(3));
}

// How much processor time this process uses while the action runs.
template <typename Action>
void report_time_used(Action action) {
  const std::clock_t begin = std::clock();
  action();
  std::printf("used %.3f s\n", static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
}

void stay_idle(fedrun::Communicator& world, int late_rank) {
  const auto sleep = [] { std::this_thread::sleep_for(std::chrono::seconds(4)); };
  world.barrier();
  report_time_used(sleep);
  world.barrier();
  report_time_used([&] {
    if (world.rank() == late_rank) sleep();
    world.barrier();
  });
}

int run(const std::string& how, int failing_rank) {
  fedrun::Process process;
  auto& world = process.world();
  if (how == "idle") {
    stay_idle(world, failing_rank);
    return 0;
  }
  std::printf("pid %d\n", static_cast<int>(getpid()));
  std::fflush(stdout);
  world.barrier();
  if (failing_rank == -1 || failing_rank == world.rank()) fail(how);
  if (how == "late") {
    world.barrier({.name = "after a nap"});
    return 0;
  }
  float value = 1;
  for (int i = 0; how != "none" && i < 1'000'000'000; ++i) world.allreduce(std::span(&value, 1));  // until stopped
  return 0;
}

}  // namespace

int main(int, char** argv) {
  const std::string how = argv[1];
  const int failing_rank = std::atoi(argv[2]);
  if (how != "caught") return run(how, failing_rank);
  // The usual shape of a careful main: the session is unwound before the error is printed.
  try {
    return run("usage", failing_rank);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "my own words: %s\n", error.what());
    return 3;
  }
}
