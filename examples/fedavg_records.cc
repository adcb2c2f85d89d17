#include "fedavg_records.h"

#include <fedrun/core/error.h>
#include <fedrun/train/safetensors.h>
#include <fmt/format.h>

#include <array>
#include <string>

namespace fedavg {
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

json to_json(const RoundRecord& round) {
  const fedrun::fl::RoundReport& report = round.report;
  json dropped = json::array();
  for (const auto& [client, reason] : report.dropped) {
    dropped.push_back({{"client", client}, {"reason", to_string(reason)}});
  }
  json line = {{"round", report.round},
               {"attempt", report.attempt},
               {"clients", report.clients},
               {"dropped", dropped},
               {"local_loss", report.local_loss},
               {"train_seconds", report.train_seconds},
               {"communicate_seconds", report.communicate_seconds},
               {"evaluate_seconds", round.evaluate_seconds}};
  for (const char* name : {"train_accuracy", "train_loss", "test_accuracy", "test_loss"}) line[name] = nullptr;
  if (round.metrics) {
    for (const std::string& name : round.metrics->names()) line[name] = round.metrics->mean(name);
  }
  return line;
}

// A run that ended after its last checkpoint has lines of rounds that will come again.
std::string lines_before(const std::filesystem::path& path, std::uint64_t round) {
  std::ifstream file(path);
  std::string kept;
  for (std::string line; std::getline(file, line);) {
    const json known = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (known.is_object() && known.value("round", round) < round) kept += line + '\n';
  }
  return kept;
}

}  // namespace

Records::Records(const Flags& flags, const Data& data, int rank, std::uint64_t first_round)
    : directory_(flags.run_dir) {
  if (flags.run_dir.empty() || rank != 0) return;
  std::error_code ignored;  // the files tell
  std::filesystem::create_directories(directory_, ignored);
  open("config.json")
      << json{{"flags", flags.given}, {"partition_hash", fmt::format("{:016x}", data.partition.hash())}}.dump(2)
      << '\n';
  // Otherwise a later --resume would go on with the run that was here before.
  if (!flags.resumes) fedrun::fl::remove_checkpoint(directory_);
  const std::string earlier = lines_before(directory_ / "rounds.jsonl", first_round);
  rounds_ = open("rounds.jsonl");
  rounds_ << earlier << std::flush;
  fedrun::data::write_partition(data.partition, directory_ / "partition.json");
  events_.emplace(directory_, static_cast<std::int64_t>(first_round));
}

std::ofstream Records::open(const char* name) const {
  std::ofstream file(directory_ / name);
  if (!file) throw fedrun::UsageError("cannot write into --run-dir '" + directory_.string() + "'");
  return file;
}

void Records::write(const RoundRecord& round) {
  if (!rounds_.is_open()) return;
  const json line = to_json(round);
  rounds_ << line.dump() << std::endl;
  std::vector<fedrun::EventScalar> scalars;
  for (const auto& [key, tag] : event_tags) {
    if (line[key].is_number()) scalars.push_back({tag, line[key].get<double>()});
  }
  events_->write(line["round"].get<std::int64_t>(), scalars);
}

void Records::write_clients(const fedrun::fl::ResultAggregator& results) const {
  if (!rounds_.is_open()) return;
  std::ofstream table = open("clients.csv");
  table << "metric,client,samples,value\n";
  for (const std::string& metric : results.metrics()) {
    for (const auto& [client, samples, value] : results.clients(metric)) {
      table << fmt::format("{},{},{},{}\n", metric, client, samples, value);
    }
  }
}

void Records::write_weights(const torch::nn::Module& model) const {
  if (rounds_.is_open()) fedrun::write_safetensors(directory_ / "model.safetensors", model);
}

}  // namespace fedavg
