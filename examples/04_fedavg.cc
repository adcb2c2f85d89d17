// Federated averaging on any number of ranks: each trains its share of a round's clients, and there is no server.
#include <fedrun/fl/classification_trainer.h>
#include <fedrun/fl/client_groups.h>
#include <fedrun/fl/federation.h>
#include <fedrun/train/agreement.h>
#include <fedrun/train/session.h>
#include <fedrun/train/stopwatch.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "fedavg_data.h"
#include "fedavg_flags.h"
#include "fedavg_records.h"

namespace {

using namespace fedrun::fl;

// With --algorithm hierarchical the federation averages groups of clients, otherwise the clients themselves.
class Training {
 public:
  Training(const fedavg::Flags& flags, const TensorClients& clients, ModelTrainer& trainer, RankGroups& groups) {
    if (!flags.is_hierarchical()) {
      federation_.emplace(groups, trainer, clients, flags.make_algorithm(), flags.federation);
      return;
    }
    client_groups_.emplace(clients, flags.client_groups, flags.seed);
    group_trainer_.emplace(trainer, *client_groups_, std::make_unique<FedAvg>(),
                           GroupTrainerOptions{.inner_rounds = flags.inner_rounds, .members = flags.federation});
    federation_.emplace(
        groups, *group_trainer_, *client_groups_, flags.make_algorithm(),
        FederationOptions{.clients_per_round = flags.client_groups, .seed = flags.seed, .sums = flags.federation.sums});
  }

  Federation& federation() { return *federation_; }

 private:
  std::optional<ClientGroups> client_groups_;
  std::optional<GroupTrainer> group_trainer_;
  std::optional<Federation> federation_;
};

// Groups of clients each want a group of ranks, of which there may be fewer.
RankGroupsOptions grouping(const fedavg::Flags& flags, const fedrun::Communicator& world) {
  const RankGroupsOptions& asked = flags.groups;
  if (!flags.is_hierarchical() || asked.count != 0 || asked.by_host || !asked.lists.empty()) return asked;
  return {.count = static_cast<int>(std::min(static_cast<std::size_t>(world.size()), flags.client_groups))};
}

void show_clients(const ResultAggregator& results, std::string_view who) {
  for (const std::string& metric : results.metrics()) {
    if (!metric.ends_with("_accuracy")) continue;
    const std::vector<ClientResult> ranked = results.ranked(metric);
    const auto one = [&](std::size_t place) {
      return fmt::format("{:.4f} ({} {}, {:.0f} samples)", ranked[place].value, who, ranked[place].client,
                         ranked[place].samples);
    };
    fmt::print("{} of {} {}s: worst {}, median {}, best {}\n", metric, ranked.size(), who, one(0),
               one(ranked.size() / 2), one(ranked.size() - 1));
  }
}

std::string line_of(const fedavg::RoundRecord& round, std::uint64_t rounds) {
  const RoundReport& report = round.report;
  std::string line = fmt::format("Round [{}/{}], local loss: {:.4f}", report.round + 1, rounds, report.local_loss);
  if (report.attempt > 0) line += fmt::format(", attempt: {}", report.attempt + 1);
  if (!report.dropped.empty()) line += fmt::format(", dropped: {}", report.dropped.size());
  line += fmt::format(", train: {:.3f} s, communicate: {:.3f} s", report.train_seconds, report.communicate_seconds);
  if (!round.metrics) return line;
  const auto mean = [&](const char* name) { return round.metrics->mean(name); };
  return line + fmt::format(
                    ", evaluate: {:.3f} s, Train/Acc: {:.4f}, Train/Loss: {:.4f}, Test/Acc: {:.4f}, "
                    "Test/Loss: {:.4f}",
                    round.evaluate_seconds, mean("train_accuracy"), mean("train_loss"), mean("test_accuracy"),
                    mean("test_loss"));
}

}  // namespace

int main(int argc, char** argv) {
  fedrun::Session session;
  auto& world = session.world();
  const bool is_first = world.rank() == 0;
  const std::optional<fedavg::Flags> read = fedavg::read_flags(argc, argv, world.rank());
  if (!read) return 0;
  const fedavg::Flags& flags = *read;
  // Threads divide sums differently, and a rank's share of the cores depends on the number of ranks.
  if (flags.federation.sums == SumOrder::exact) torch::set_num_threads(1);

  const fedavg::Data data = fedavg::load_data(flags);
  fedrun::check_agreement(world, "the clients' samples", {fmt::format("hash {:016x}", data.partition.hash())},
                          "Give every rank the same files and flags.");
  torch::manual_seed(flags.seed);
  const fedrun::models::Model model =
      fedrun::models::make_model(flags.model, {.classes = data.classes, .sample_shape = data.clients.sample_shape()});
  model->to(session.device());
  ClassificationTrainer trainer(model, data.clients, flags.training);
  RankGroups groups(world, grouping(flags, world));
  Training training(flags, data.clients, trainer, groups);
  Federation& federation = training.federation();
  if (flags.resumes && federation.resume(flags.run_dir) && is_first) {
    fmt::print("going on after round {}\n", federation.round());
  }
  fedavg::Records records(flags, data, world.rank(), federation.round());
  if (is_first) {
    fmt::print(
        "{} on {}: {} clients, {} a round, {} training and {} test samples; {} groups of ranks, {} threads each\n",
        flags.algorithm, data.name, data.clients.clients(), flags.federation.clients_per_round,
        data.clients.count(Split::train), data.clients.count(Split::test), groups.count(), torch::get_num_threads());
  }

  fedavg::RoundRecord total;
  double best_accuracy = 0;
  const std::uint64_t rounds_before = federation.round();
  while (federation.round() < flags.rounds) {
    fedavg::RoundRecord round{.report = federation.run_round()};
    const std::uint64_t done = federation.round();
    if (done % flags.rounds_between_tests == 0 || done == flags.rounds) {
      const fedrun::Stopwatch watch(round.evaluate_seconds);
      round.metrics = federation.evaluate();
      best_accuracy = std::max(best_accuracy, round.metrics->mean("test_accuracy"));
    }
    records.write(round);
    if (flags.rounds_between_checkpoints > 0 && done % flags.rounds_between_checkpoints == 0) {
      federation.save(flags.run_dir);
    }
    if (is_first) fmt::print("{}\n", line_of(round, flags.rounds));
    total.report.train_seconds += round.report.train_seconds;
    total.report.communicate_seconds += round.report.communicate_seconds;
    total.evaluate_seconds += round.evaluate_seconds;
  }
  if (flags.tests_clients) {
    const ResultAggregator results = federation.evaluate_clients();
    records.write_clients(results);
    if (is_first) show_clients(results, flags.is_hierarchical() ? "group" : "client");
  }
  records.write_weights(trainer.model());
  if (!is_first) return 0;
  if (federation.round() == rounds_before) {
    fmt::print("nothing to train: {} rounds were done before, and --comm-round is {}\n", rounds_before, flags.rounds);
  } else {
    fmt::print("{} rounds: {:.2f} s training, {:.2f} s communicating, {:.2f} s evaluating; best Test/Acc {:.2f} %\n",
               federation.round() - rounds_before, total.report.train_seconds, total.report.communicate_seconds,
               total.evaluate_seconds, 100 * best_accuracy);
  }
}
