// Throughput of data-parallel training on random data, and where the time of a step goes.
#include <fedrun/train/session.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "device_choice.h"
#include "median.h"
#include "peak_memory.h"
#include "training_report.h"

namespace fedrun::bench {
namespace {

// The steps of one system, as this rank saw them.
struct Contest {
  System system = System::fedrun;
  TrainingSetting setting{};
  std::unique_ptr<TrainingRun> run{};  // none: this rank only waits
  std::vector<StepTimes> steps{};
  std::vector<double> mean_step_ms{};  // by round
};

Contest make_contest(System system, const TrainingSetting& setting, Session& session) {
  Contest contest{.system = system, .setting = setting};
  if (system == System::alone && session.rank() != 0) return contest;
  contest.run = std::make_unique<TrainingRun>(setting, system == System::fedrun ? &session.world() : nullptr);
  return contest;
}

// In the order in which they take turns and are shown: alone is what the others are compared with.
std::vector<Contest> make_contests(TrainingSetting setting, const TrainingFlags& flags, Session& session) {
  std::vector<Contest> contests;
  const auto wants = [&](System system) { return std::ranges::find(flags.systems, system) != flags.systems.end(); };
  for (const System system : {System::alone, System::independent}) {
    setting.compression = Compression::none;
    if (wants(system)) contests.push_back(make_contest(system, setting, session));
  }
  for (const auto& compression : flags.compressions) {
    setting.compression = compression;
    if (wants(System::fedrun)) contests.push_back(make_contest(System::fedrun, setting, session));
  }
  return contests;
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
  return 1e3 * static_cast<double>(contest.setting.batch_size) * world.size() / median(mean_ms);
}

// Rank 0 shows its own times; samples per second are those of all ranks that train.
TrainingResult summarise(const Contest& contest, Communicator& world) {
  TrainingResult result{.system = contest.system,
                        .model = contest.setting.model,
                        .batch_size = contest.setting.batch_size,
                        .precision = contest.setting.precision.name,
                        .compression = contest.setting.compression->name()};
  double samples_per_second = 0;
  if (contest.run) {
    result.times = medians(contest.steps);
    // Means of rounds, because slow steps cost time as well: who steps in line with others waits for those of all.
    result.step_ms = median(contest.mean_step_ms);
    samples_per_second = 1e3 * static_cast<double>(result.batch_size) / result.step_ms;
  }
  std::vector<double> sums = {samples_per_second, contest.run ? 1.0 : 0.0};
  world.allreduce(sums, {.op = ReduceOp::sum});
  result.samples_per_second = sums[0];
  result.ranks = static_cast<int>(sums[1]);
  if (contest.system == System::fedrun && !contest.setting.sharded) {
    result.bare_communication_ms = contest.run->bare_communication_ms();
  }
  result.peak_memory_mb = peak_memory_mb();
  return result;
}

void measure(const TrainingSetting& setting, const TrainingFlags& flags, Session& session,
             std::optional<TrainingReport>& report) {
  std::vector<Contest> contests = make_contests(setting, flags, session);
  for (int round = 0; round < flags.rounds; ++round) {
    for (Contest& contest : contests) take_turn(contest, flags, session.world());
  }
  session.world().barrier();
  double alone_samples_per_second = 0;
  for (const Contest& contest : contests) {
    TrainingResult result = summarise(contest, session.world());
    if (contest.system == System::independent) {
      result.samples_per_second_in_step = samples_per_second_in_step(contest, flags, session.world());
    }
    if (contest.system == System::alone) {
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
  const Device device = choose_device(flags->device, session);
  std::optional<TrainingReport> report;
  if (session.rank() == 0) {
    report.emplace(TrainingReport::Run{session.size(), session.threads(), std::string(name_of(device)), flags->sharded},
                   flags->json_path);
  }
  TrainingSetting setting{.device = device == Device::cuda ? session.device() : torch::kCPU,
                          .optimizer = flags->optimizer,
                          .sharded = flags->sharded};
  for (const std::string& model : flags->models) {
    setting.model = model;
    const std::vector usual = {usual_batch_size(model)};
    for (const std::int64_t batch_size : flags->batch_sizes.empty() ? usual : flags->batch_sizes) {
      setting.batch_size = batch_size;
      for (const Precision& precision : flags->precisions) {
        setting.precision = precision;
        measure(setting, *flags, session, report);
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace fedrun::bench

int main(int argc, char** argv) { return fedrun::bench::run(argc, argv); }
