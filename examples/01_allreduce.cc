// The smallest fedrun program: every rank brings a number, and all of them learn the sum and the weighted mean.
#include <fedrun/collectives/process.h>
#include <fmt/format.h>

#include <cstdio>
#include <span>

int main() {
  fedrun::Process process;
  auto& world = process.world();

  float sum = static_cast<float>(world.rank() + 1);
  world.allreduce(std::span(&sum, 1), {.op = fedrun::ReduceOp::sum});

  // Rank r has r + 1 samples whose mean is 10 · r; the mean over all samples weighs each rank by its count.
  double mean = 10.0 * world.rank();
  world.allreduce(std::span(&mean, 1), {.weight = world.rank() + 1.0});

  fmt::print("rank {} of {} on {} ({} backend): sum {}, weighted mean {:.4f}\n", world.rank(), world.size(),
             process.topology().host, world.backend_name(), sum, mean);
}
