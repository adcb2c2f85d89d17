#include "measure.h"

#include <algorithm>
#include <chrono>

#include "median.h"
#include "reference.h"

namespace fedrun::bench {
namespace {

// Several calls in a row are timed, as nccl-tests does: a short one takes less time than the ranks differ in leaving a
// barrier, and filling the buffers before each call would measure where that left them in the caches.
int calls_per_sample(std::size_t bytes) {
  constexpr std::size_t enough_bytes = std::size_t{16} << 20;
  constexpr std::size_t fewest = 3;
  constexpr std::size_t most = 100;
  return static_cast<int>(std::clamp(enough_bytes / std::max<std::size_t>(bytes, 1), fewest, most));
}

double time_calls_us(Communicator& world, Contender& contender, int calls) {
  world.barrier();
  const auto start = std::chrono::steady_clock::now();
  for (int call = 0; call < calls; ++call) contender.run();
  contender.finish();
  const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - start;
  return elapsed.count() / calls;
}

// Only the first call, which is not timed, has a result to check: the others would add up what that one left in the
// buffer, until it is exact no more.
Measurement take_sample(Communicator& world, const Reference& reference, Contender& contender, int calls) {
  reference.load(contender.buffers());
  time_calls_us(world, contender, 1);
  const auto wrong = static_cast<std::int64_t>(reference.count_wrong(contender.buffers().output_for_host()));
  Reference::clear(contender.buffers());
  return {time_calls_us(world, contender, calls), wrong};
}

}  // namespace

std::vector<Measurement> measure(Communicator& world, const Workload& workload,
                                 std::span<const std::unique_ptr<Contender>> contenders, const Rounds& rounds) {
  const Reference reference(workload);
  const int calls = calls_per_sample(workload.bytes());
  std::vector<std::vector<double>> times_us(contenders.size());
  std::vector<std::int64_t> wrong(contenders.size());
  for (int round = -rounds.warmup; round < rounds.iterations; ++round) {
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      const Measurement sample = take_sample(world, reference, *contenders[i], calls);
      wrong[i] += sample.wrong;
      if (round >= 0) times_us[i].push_back(sample.time_us);
    }
  }
  std::vector<Measurement> measurements;
  world.allreduce(wrong, {.op = ReduceOp::sum});
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    world.allreduce(times_us[i], {.op = ReduceOp::max});  // the slowest rank decides
    measurements.push_back({median(times_us[i]), wrong[i]});
  }
  return measurements;
}

}  // namespace fedrun::bench
