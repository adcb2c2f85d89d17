#include "fedavg_flags.h"

#include "flag_reader.h"

namespace fedrun::bench {
namespace {

cxxopts::Options describe_flags() {
  cxxopts::Options options("fedavg_bench", "Times rounds of federated averaging, without tests; run it under fedrun.");
  const auto text = [](const char* standard) { return cxxopts::value<std::string>()->default_value(standard); };
  const auto list = [](const char* standard) {
    return cxxopts::value<std::vector<std::string>>()->default_value(standard);
  };
  // clang-format off
  options.add_options()
    ("workload", "list of lr-10, lr-100 (logistic regression, so many of 1000 clients a round), cnn, memory (100 to 100,000 clients)", list("lr-10,lr-100"))
    ("systems", "list of fedrun, tight (one process, a plain loop; lr only) and independent (no averaging)", list("fedrun,tight,independent"))
    ("device", "auto, cpu or cuda: where models are trained; auto: on the GPU of each rank, where the run has them", text("auto"))
    ("groups", "list: so many groups of ranks, each of which trains one client at a time; default: each rank is one", cxxopts::value<std::vector<std::string>>())
    ("data-dir", "directory with MNIST's files; without it, digits are drawn", text(""))
    ("turns", "how often the systems take turns", text("5"))
    ("rounds", "in each turn; default 20 for lr, 1 for cnn", cxxopts::value<std::string>())
    ("write-partition", "write who trains on what to this file, for other systems", text(""))
    ("json", "also write results to this file, or with - among the output, one JSON object per line", cxxopts::value<std::string>());
  // clang-format on
  return options;
}

int parse_positive(std::string_view text) { return parse_integer(text, 1, 1'000'000); }

}  // namespace

std::optional<FedavgFlags> read_fedavg_flags(int argc, char** argv, int rank) {
  cxxopts::Options options = describe_flags();
  const auto parsed = parse_flags(options, argc, argv, rank);
  if (!parsed) return std::nullopt;
  const FlagReader reader("fedavg_bench", *parsed);
  FedavgFlags flags;
  for (const std::vector<FedavgWorkload>& named : reader.each("workload", workloads_named)) {
    flags.workloads.insert(flags.workloads.end(), named.begin(), named.end());
  }
  flags.systems = reader.list<FedavgSystem>(
      "systems",
      {{"fedrun", FedavgSystem::fedrun}, {"tight", FedavgSystem::tight}, {"independent", FedavgSystem::independent}});
  flags.device = reader.device();
  if (reader.has("groups")) flags.groups = reader.each("groups", parse_positive);
  flags.data_dir = reader.text("data-dir");
  flags.turns = reader.read("turns", parse_positive);
  if (reader.has("rounds")) flags.rounds = reader.read("rounds", parse_positive);
  flags.partition_path = reader.text("write-partition");
  if (!flags.partition_path.empty() && flags.workloads.size() > 1) {
    throw UsageError("--write-partition goes with one workload");
  }
  if (reader.has("json")) flags.json_path = reader.text("json");
  return flags;
}

}  // namespace fedrun::bench
