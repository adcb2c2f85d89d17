// Throughput of data-parallel training on random data, and where the time of a step goes.
#include <fedrun/train/session.h>
#include <fmt/format.h>

#include <map>
#include <numeric>

#include "median.h"
#include "peak_memory.h"
#include "training_report.h"

namespace fedrun::bench {
namespace {

// The steps of one system, as this rank saw them.
struct Contest {
  std::unique_ptr<TrainingRun> run{};  // none: this rank only waits
  std::vector<StepTimes> steps{};
  std::vector<double> mean_step_ms{};  // by round
};

Contest make_contest(System system, const std::string& model, const TrainingFlags& flags, Session& session) {
  Contest contest;
  if (system == System::alone && session.rank() != 0) return contest;
  contest.run = std::make_unique<TrainingRun>(model, flags, system == System::fedrun ? &session.world() : nullptr);
  return contest;
}

void take_turn(Contest& contest, const TrainingFlags& flags, Communicator& world) {
  world.barrier();
  if (!contest.run) return;
  double total_ms = 0;
  for (int step = 0; step < flags.warmup + flags.steps; ++step) {
    const StepTimes times = contest.run->step();
    if (flags.announces_first_step && step == 0 && world.rank() == 0) {
      fmt::print("first step\n");
      std::fflush(stdout);
    }
    if (step < flags.warmup) continue;
    contest.steps.push_back(times);
    total_ms += times.total();
  }
  contest.mean_step_ms.push_back(total_ms / flags.steps);
}

// What ranks that trained on their own would have reached had they waited for each other after each step: no training
// that averages gradients in every step can be faster. All ranks have trained.
double samples_per_second_in_step(const Contest& contest, const TrainingFlags& flags, Communicator& world) {
  std::vector<double> slowest_ms;
  for (const StepTimes& step : contest.steps) slowest_ms.push_back(step.total());
  world.allreduce(slowest_ms, {.op = ReduceOp::max});
  std::vector<double> mean_ms;  // by round
  for (auto first = slowest_ms.begin(); first != slowest_ms.end(); first += flags.steps) {
    mean_ms.push_back(std::accumulate(first, first + flags.steps, 0.0) / flags.steps);
  }
  return 1e3 * static_cast<double>(contest.run->batch_size()) * world.size() / median(mean_ms);
}

// Rank 0 shows its own times; samples per second are those of all ranks that train.
TrainingResult summarise(const Contest& contest, Communicator& world) {
  TrainingResult result;
  double samples_per_second = 0;
  if (contest.run) {
    result.times = medians(contest.steps);
    // Means of rounds, because slow steps cost time as well: who steps in line with others waits for those of all.
    result.step_ms = median(contest.mean_step_ms);
    result.batch_size = contest.run->batch_size();
    samples_per_second = 1e3 * static_cast<double>(result.batch_size) / result.step_ms;
  }
  std::vector<double> sums = {samples_per_second, contest.run ? 1.0 : 0.0};
  world.allreduce(sums, {.op = ReduceOp::sum});
  result.samples_per_second = sums[0];
  result.ranks = static_cast<int>(sums[1]);
  result.peak_memory_mb = peak_memory_mb();
  return result;
}

void measure(const std::string& model, const TrainingFlags& flags, Session& session,
             std::optional<TrainingReport>& report) {
  std::map<System, Contest> contests;
  for (const System system : flags.systems) contests[system] = make_contest(system, model, flags, session);
  for (int round = 0; round < flags.rounds; ++round) {
    for (auto& [_, contest] : contests) take_turn(contest, flags, session.world());
  }
  session.world().barrier();
  double alone_samples_per_second = 0;
  for (const auto& [system, contest] : contests) {
    TrainingResult result = summarise(contest, session.world());
    result.system = system;
    result.model = model;
    if (system == System::independent) {
      result.samples_per_second_in_step = samples_per_second_in_step(contest, flags, session.world());
    }
    if (system == System::alone) {
      alone_samples_per_second = result.samples_per_second;
    } else if (alone_samples_per_second > 0) {
      result.efficiency = result.samples_per_second / (result.ranks * alone_samples_per_second);
    }
    if (report) report->add(result);
  }
}

int run(int argc, char** argv) {
  Session session;
  const std::optional<TrainingFlags> flags = read_training_flags(argc, argv, session.rank());
  if (!flags) return 0;
  std::optional<TrainingReport> report;
  if (session.rank() == 0) report.emplace(*flags, session.size());
  for (const std::string& model : flags->models) measure(model, *flags, session, report);
  return 0;
}

}  // namespace
}  // namespace fedrun::bench

int main(int argc, char** argv) { return fedrun::bench::run(argc, argv); }
