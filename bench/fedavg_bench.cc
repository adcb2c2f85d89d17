// Time of federated rounds without evaluation, next to the least that the same work could cost.
#include <fedrun/data/partition.h>
#include <fedrun/train/session.h>
#include <fedrun/train/stopwatch.h>

#include <algorithm>

#include "device_choice.h"
#include "fedavg_contender.h"
#include "fedavg_report.h"
#include "median.h"
#include "peak_memory.h"

namespace fedrun::bench {
namespace {

struct Contest {
  FedavgSystem system;
  int groups;                                  // of ranks that train one client at a time
  std::unique_ptr<FedavgContender> contender;  // none: this rank only waits
  std::vector<double> round_ms{};              // of the slowest rank
};

double time_round(FedavgContender* contender, std::uint64_t round, Communicator& world) {
  double seconds = 0;
  if (contender != nullptr) contender->prepare(round);
  world.barrier();
  if (contender != nullptr) {
    const Stopwatch watch(seconds);
    contender->run(round);
  }
  world.allreduce(std::span(&seconds, 1), {.op = ReduceOp::max});
  return 1e3 * seconds;
}

// Every system runs the same rounds. The first turn is to warm up.
void measure(const FedavgWorkload& workload, const FedavgFlags& flags, Session& session,
             std::optional<FedavgReport>& report) {
  const torch::Device device =
      choose_device(flags.device, session) == Device::cuda ? session.device() : torch::Device(torch::kCPU);
  const fedavg::Data data = load_data(workload, flags.data_dir);
  if (report && !flags.partition_path.empty()) data::write_partition(data.partition, flags.partition_path);
  std::vector<Contest> contests;
  for (const FedavgSystem system : flags.systems) {
    if (system == FedavgSystem::tight && workload.model != "lr") continue;
    if (system != FedavgSystem::fedrun && workload.shares_samples) continue;  // they may use what memory they like
    const int ranks = system == FedavgSystem::tight ? 1 : session.size();
    const bool has_groups = system == FedavgSystem::fedrun && !flags.groups.empty();
    for (const int groups : has_groups ? flags.groups : std::vector{ranks}) {
      contests.push_back({system, groups, make_contender(system, workload, data, session.world(), {groups, device})});
    }
  }
  const int rounds = flags.rounds.value_or(workload.rounds_per_turn);
  for (int turn = 0; turn <= flags.turns; ++turn) {
    for (Contest& contest : contests) {
      for (int i = 0; i < rounds; ++i) {
        const auto round = static_cast<std::uint64_t>(turn * rounds + i);
        const double ms = time_round(contest.contender.get(), round, session.world());
        if (turn > 0) contest.round_ms.push_back(ms);
      }
    }
  }
  for (const Contest& contest : contests) {
    if (!report) continue;
    report->add({.system = contest.system,
                 .workload = workload.name,
                 .ranks = contest.system == FedavgSystem::tight ? 1 : session.size(),
                 .groups = contest.groups,
                 .device = device.is_cpu() || contest.system == FedavgSystem::tight ? "cpu" : "cuda",
                 .round_ms = median(contest.round_ms),
                 .fastest_ms = *std::ranges::min_element(contest.round_ms),
                 .peak_memory_mb = peak_memory_mb()});
  }
}

int run(int argc, char** argv) {
  Session session;
  const std::optional<FedavgFlags> flags = read_fedavg_flags(argc, argv, session.rank());
  if (!flags) return 0;
  std::optional<FedavgReport> report;
  if (session.rank() == 0) report.emplace(*flags);
  for (const FedavgWorkload& workload : flags->workloads) measure(workload, *flags, session, report);
  return 0;
}

}  // namespace
}  // namespace fedrun::bench

int main(int argc, char** argv) { return fedrun::bench::run(argc, argv); }
