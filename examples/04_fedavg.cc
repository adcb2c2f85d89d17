// Federated averaging on any number of ranks: each trains its share of a round's clients, and there is no server.
#include <fedrun/core/error.h>
#include <fedrun/core/event_file.h>
#include <fedrun/fl/classification_trainer.h>
#include <fedrun/fl/federation.h>
#include <fedrun/train/agreement.h>
#include <fedrun/train/safetensors.h>
#include <fedrun/train/session.h>
#include <fedrun/train/stopwatch.h>
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <optional>

#include "fedavg_data.h"
#include "fedavg_flags.h"

namespace {

using nlohmann::json;

// What of a line of rounds.jsonl TensorBoard shows, and under which name.
constexpr std::array<std::pair<const char*, const char*>, 8> event_tags = {
    {{"train_accuracy", "Train/Acc"},
     {"train_loss", "Train/Loss"},
     {"test_accuracy", "Test/Acc"},
     {"test_loss", "Test/Loss"},
     {"local_loss", "Round/LocalLoss"},
     {"train_seconds", "Seconds/Training"},
     {"communicate_seconds", "Seconds/Communicating"},
     {"evaluate_seconds", "Seconds/Evaluating"}}};

// What a run leaves behind; nothing without --run-dir, and only on rank 0.
class Records {
 public:
  Records(const fedavg::Flags& flags, const fedavg::Data& data, int rank, std::uint64_t first_round)
      : directory_(flags.run_dir) {
    if (flags.run_dir.empty() || rank != 0) return;
    std::error_code ignored;  // the files tell
    std::filesystem::create_directories(directory_, ignored);
    std::ofstream config(directory_ / "config.json");
    rounds_.open(directory_ / "rounds.jsonl", flags.resumes ? std::ios::app : std::ios::trunc);
    if (!config || !rounds_) throw fedrun::UsageError("cannot write into --run-dir '" + flags.run_dir + "'");
    config << json{{"flags", flags.given}, {"partition_hash", fmt::format("{:016x}", data.partition.hash())}}.dump(2)
           << '\n';
    fedrun::data::write_partition(data.partition, directory_ / "partition.json");
    events_.emplace(directory_, static_cast<std::int64_t>(first_round));
  }

  void write(const json& line) {
    if (!rounds_.is_open()) return;
    rounds_ << line.dump() << std::endl;
    std::vector<fedrun::EventScalar> scalars;
    for (const auto& [key, tag] : event_tags) {
      if (line.contains(key)) scalars.push_back({tag, line[key].get<double>()});
    }
    events_->write(line["round"].get<std::int64_t>(), scalars);
  }
  void write_weights(const torch::nn::Module& model) const {
    if (rounds_.is_open()) fedrun::write_safetensors(directory_ / "model.safetensors", model);
  }

 private:
  std::filesystem::path directory_;
  std::ofstream rounds_;
  std::optional<fedrun::EventFile> events_;
};

json to_json(const fedrun::fl::RoundReport& report) {
  json dropped = json::array();
  for (const auto& [client, reason] : report.dropped) {
    dropped.push_back({{"client", client}, {"reason", to_string(reason)}});
  }
  return {{"round", report.round},
          {"clients", report.clients},
          {"dropped", dropped},
          {"local_loss", report.local_loss},
          {"train_seconds", report.train_seconds},
          {"communicate_seconds", report.communicate_seconds}};
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
  if (flags.federation.sums == fedrun::fl::SumOrder::exact) torch::set_num_threads(1);

  const fedavg::Data data = fedavg::load_data(flags);
  fedrun::check_agreement(world, "the clients' samples", {fmt::format("hash {:016x}", data.partition.hash())},
                          "Give every rank the same files and flags.");
  torch::manual_seed(flags.seed);
  fedrun::fl::ClassificationTrainer trainer(
      fedrun::models::make_model(flags.model, {.classes = data.classes, .sample_shape = data.clients.sample_shape()}),
      data.clients, flags.training);
  fedrun::fl::RankGroups groups(world, flags.groups);
  fedrun::fl::Federation federation(groups, trainer, data.clients, flags.make_algorithm(), flags.federation);
  if (flags.resumes && federation.resume(flags.run_dir) && is_first) {
    fmt::print("going on after round {}\n", federation.round());
  }
  Records records(flags, data, world.rank(), federation.round());
  if (is_first) {
    fmt::print(
        "{} on {}: {} clients, {} a round, {} training and {} test samples; {} groups of ranks, {} threads each\n",
        flags.algorithm, data.name, data.clients.clients(), flags.federation.clients_per_round,
        data.clients.count(fedrun::fl::Split::train), data.clients.count(fedrun::fl::Split::test), groups.count(),
        torch::get_num_threads());
  }

  double train_seconds = 0;
  double communicate_seconds = 0;
  double evaluate_seconds = 0;
  double best_accuracy = 0;
  while (federation.round() < flags.rounds) {
    const fedrun::fl::RoundReport report = federation.run_round();
    const std::uint64_t round = federation.round();
    train_seconds += report.train_seconds;
    communicate_seconds += report.communicate_seconds;
    json line = to_json(report);
    std::string shown = fmt::format("Round [{}/{}], local loss: {:.4f}", round, flags.rounds, report.local_loss);
    if (!report.dropped.empty()) shown += fmt::format(", dropped: {}", report.dropped.size());
    if (round % flags.rounds_between_tests == 0 || round == flags.rounds) {
      double seconds = 0;
      const fedrun::Meter metrics = [&] {
        const fedrun::Stopwatch watch(seconds);
        return federation.evaluate();
      }();
      evaluate_seconds += seconds;
      line["evaluate_seconds"] = seconds;
      for (const std::string& name : metrics.names()) line[name] = metrics.mean(name);
      best_accuracy = std::max(best_accuracy, metrics.mean("test_accuracy"));
      shown += fmt::format(", Train/Acc: {:.4f}, Train/Loss: {:.4f}, Test/Acc: {:.4f}, Test/Loss: {:.4f}",
                           metrics.mean("train_accuracy"), metrics.mean("train_loss"), metrics.mean("test_accuracy"),
                           metrics.mean("test_loss"));
    }
    records.write(line);
    if (flags.rounds_between_checkpoints > 0 && round % flags.rounds_between_checkpoints == 0) {
      federation.save(flags.run_dir);
    }
    if (is_first) fmt::print("{}\n", shown);
  }
  records.write_weights(trainer.model());
  if (is_first) {
    fmt::print("{} rounds: {:.2f} s training, {:.2f} s communicating, {:.2f} s evaluating; best Test/Acc {:.2f} %\n",
               flags.rounds, train_seconds, communicate_seconds, evaluate_seconds, 100 * best_accuracy);
  }
}
