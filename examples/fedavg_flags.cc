#include "fedavg_flags.h"

#include <fedrun/core/flags.h>
#include <fedrun/core/parse.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>
#include <vector>

namespace fedavg {
namespace {

using cxxopts::value;
using fedrun::UsageError;
using std::string;

cxxopts::Options make_options() {
  cxxopts::Options options("fedavg", "Federated averaging on every rank that fedrun starts; there is no server.");
  // clang-format off
  options.add_options("data")
    ("dataset", "mnist, fashion-mnist, cifar10, cifar100, cinic10, fed_cifar100, femnist, fed_emnist, shakespeare, synthetic (numbers) or digits (drawn)", value<string>()->default_value("cifar10"))
    ("data-dir", "directory with the files of the data set", value<string>()->default_value(""))
    ("partition-method", "homo, hetero, hetero-fix, shards or power-law; fed_cifar100, femnist, fed_emnist, shakespeare and synthetic have clients of their own", value<string>()->default_value("hetero"))
    ("partition-alpha", "of hetero: small means that clients differ much", value<double>()->default_value("0.5"))
    ("partition-file", "of hetero-fix: {\"0\": [sample, …], …}", value<string>()->default_value(""))
    ("synthetic-alpha", "how much the clients' tasks differ", value<double>()->default_value("1"))
    ("synthetic-beta", "how much the clients' inputs differ", value<double>()->default_value("1"))
    ("client-num-in-total", "clients", value<std::size_t>()->default_value("1000"));
  options.add_options("training")
    ("model", "by name, such as lr, cnn, resnet56, mobilenet", value<string>()->default_value("mobilenet"))
    ("client-num-per-round", "clients that train in a round", value<std::size_t>()->default_value("4"))
    ("comm-round", "rounds", value<std::uint64_t>()->default_value("10"))
    ("epochs", "of a client in a round", value<int>()->default_value("5"))
    ("batch-size", "of a client; 0: all of its samples", value<std::size_t>()->default_value("64"))
    ("client-optimizer", "sgd or adam (amsgrad)", value<string>()->default_value("adam"))
    ("lr", "learning rate of clients", value<double>()->default_value("0.001"))
    ("momentum", "of sgd", value<double>()->default_value("0"))
    ("wd", "weight decay of adam", value<double>()->default_value("0.0001"))
    ("frequency-of-the-test", "test after every so many rounds, and after the last", value<std::uint64_t>()->default_value("1"))
    ("sampling", "fixed: so many clients a round; poisson: so many on average", value<string>()->default_value("fixed"))
    ("seed", "0: clients are chosen as FedML chooses them", value<std::uint64_t>()->default_value("0"));
  options.add_options("algorithm")
    ("algorithm", "fedavg, fedprox, fedavgm, fedadagrad, fedadam, fedyogi, fednova, scaffold or hierarchical", value<string>()->default_value("fedavg"))
    ("mu", "of fedprox", value<double>()->default_value("0.1"))
    ("server-lr", "of fedavgm, fedadagrad, fedadam, fedyogi and scaffold", value<double>()->default_value("1"))
    ("server-momentum", "of fedavgm", value<double>()->default_value("0.9"))
    ("beta1", "of fedadagrad, fedadam and fedyogi", value<double>()->default_value("0.9"))
    ("beta2", "of fedadam and fedyogi", value<double>()->default_value("0.99"))
    ("tau", "of fedadagrad, fedadam and fedyogi", value<double>()->default_value("0.001"))
    ("group-num", "of hierarchical: groups of clients", value<std::size_t>()->default_value("2"))
    ("group-comm-round", "of hierarchical: rounds inside the groups in each round", value<std::uint64_t>()->default_value("2"))
    ("buffers", "average, local (each client's own) or skip: what becomes of running statistics", value<string>()->default_value("average"))
    ("clip-norm", "largest norm of a client's update; 0: any", value<double>()->default_value("0"))
    ("noise-multiplier", "deviation of the noise on each update, in clip norms", value<double>()->default_value("0"));
  options.add_options("run")
    ("groups", "rank groups, each of which trains a client together: a number, host, or lists such as 0-1/2,3; none: each rank by itself", value<string>()->default_value(""))
    ("min-clients", "with fewer that finish, a round has failed", value<std::size_t>()->default_value("1"))
    ("round-attempts", "how often a round is tried, each time with other clients, before the run ends", value<int>()->default_value("1"))
    ("client-timeout", "seconds after which a client is left out; 0: never", value<double>()->default_value("0"))
    ("deterministic", "the same weights to the bit on any number of ranks; one thread each")
    ("run-dir", "directory for config.json, rounds.jsonl, TensorBoard's events, partition.json, model.safetensors and checkpoints", value<string>()->default_value(""))
    ("checkpoint-every", "save into --run-dir after every so many rounds; 0: never", value<std::uint64_t>()->default_value("0"))
    ("resume", "go on with the run in --run-dir, from the start if it has no checkpoint")
    ("client-table", "at the end test every client, and show the worst, the median and the best; all are in --run-dir")
    ("gpu-mapping-file", "is for fedrun, before the program", value<string>()->default_value(""))
    ("gpu-mapping-key", "likewise", value<string>()->default_value(""))
    ("ci", "one round of everything with a few samples of each client, to check the set-up");
  // clang-format on
  return options;
}

// --comm_round is --comm-round; values keep their underscores.
std::vector<string> with_hyphens(int argc, char** argv) {
  std::vector<string> arguments(argv, argv + argc);
  for (string& argument : arguments) {
    if (!argument.starts_with("--")) continue;
    const auto end = std::find(argument.begin(), argument.end(), '=');
    std::replace(argument.begin(), end, '_', '-');
  }
  return arguments;
}

std::vector<string> split(const string& text, char separator) {
  std::vector<string> parts;
  std::istringstream stream(text + separator);
  for (string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

// "0-1,5" is {0, 1, 5}.
std::vector<int> parse_ranks(const string& text) {
  constexpr int most = 1 << 20;
  std::vector<int> ranks;
  for (const string& range : split(text, ',')) {
    const std::size_t hyphen = std::min(range.find('-'), range.size());
    const int first = fedrun::parse_integer(range.substr(0, hyphen), 0, most);
    const int last = hyphen == range.size() ? first : fedrun::parse_integer(range.substr(hyphen + 1), first, most);
    for (int rank = first; rank <= last; ++rank) ranks.push_back(rank);
  }
  return ranks;
}

fedrun::fl::RankGroupsOptions parse_groups(const string& text) {
  if (text.empty()) return {};
  if (text == "host") return {.by_host = true};
  try {
    if (text.find_first_of("/,-") == string::npos) return {.count = fedrun::parse_integer(text, 1, 1 << 20)};
    fedrun::fl::RankGroupsOptions options;
    for (const string& group : split(text, '/')) options.lists.push_back(parse_ranks(group));
    return options;
  } catch (const UsageError& problem) {
    throw UsageError(
        fmt::format("--groups '{}': {}; give a number of groups, host, or the ranks of each group, such "
                    "as 0-1/2,3",
                    text, problem.what()));
  }
}

template <typename Value>
Value parse_named(const cxxopts::ParseResult& parsed, const char* flag,
                  std::initializer_list<std::pair<std::string_view, Value>> words) {
  try {
    return fedrun::parse_word<Value>(parsed[flag].as<string>(), words);
  } catch (const UsageError& problem) {
    throw UsageError(fmt::format("--{}: {}", flag, problem.what()));
  }
}

void check(const cxxopts::ParseResult& parsed, const Flags& flags) {
  if (flags.rounds < 1 || flags.rounds_between_tests < 1) {
    throw UsageError("--comm-round and --frequency-of-the-test must be at least 1");
  }
  if (flags.run_dir.empty() && (flags.resumes || flags.rounds_between_checkpoints > 0)) {
    throw UsageError("--resume and --checkpoint-every need --run-dir");
  }
  constexpr std::array<std::string_view, 5> with_clients = {"synthetic", "femnist", "fed_emnist", "shakespeare",
                                                            "fed_cifar100"};
  const bool has_clients = std::find(with_clients.begin(), with_clients.end(), flags.dataset) != with_clients.end();
  if (has_clients && parsed.count("partition-method") != 0) {
    throw UsageError(fmt::format("--dataset {} comes with its clients: leave --partition-method out", flags.dataset));
  }
  if ((flags.partition_method == "hetero-fix") != !flags.partition_file.empty()) {
    throw UsageError("--partition-method hetero-fix and --partition-file go together");
  }
  if (flags.algorithm == "scaffold" && flags.training.optimizer != fedrun::fl::ClientOptimizer::sgd) {
    throw UsageError("--algorithm scaffold needs --client-optimizer sgd: it computes with its steps");
  }
  // Adam would ignore it, and FedNova count adam's steps as if they had it.
  if (flags.training.momentum != 0 && flags.training.optimizer != fedrun::fl::ClientOptimizer::sgd) {
    throw UsageError("--momentum needs --client-optimizer sgd: adam has none to set");
  }
  if (!parsed["gpu-mapping-file"].as<string>().empty() || !parsed["gpu-mapping-key"].as<string>().empty()) {
    throw UsageError(
        "GPUs are given to ranks before they start: fedrun --gpu-mapping FILE --gpu-mapping-key KEY … fedavg …");
  }
  if (flags.is_hierarchical() && (flags.federation.min_clients > 1 || flags.federation.round_attempts > 1)) {
    throw UsageError(
        "--min-clients and --round-attempts are not for --algorithm hierarchical: there a group of clients "
        "is left out where none of them finishes");
  }
  flags.make_algorithm();
}

}  // namespace

std::unique_ptr<fedrun::fl::Algorithm> Flags::make_algorithm() const {
  using namespace fedrun::fl;
  const FedOptOptions adaptive{.lr = server_lr, .beta1 = beta1, .beta2 = beta2, .tau = tau};
  if (algorithm == "fedavg" || is_hierarchical()) return std::make_unique<FedAvg>();
  if (algorithm == "fedprox") return std::make_unique<FedProx>(mu);
  if (algorithm == "fedavgm") {
    return std::make_unique<FedAvgM>(FedAvgMOptions{.lr = server_lr, .momentum = server_momentum});
  }
  if (algorithm == "fedadagrad") return std::make_unique<FedOpt>(ServerOptimizer::adagrad, adaptive);
  if (algorithm == "fedadam") return std::make_unique<FedOpt>(ServerOptimizer::adam, adaptive);
  if (algorithm == "fedyogi") return std::make_unique<FedOpt>(ServerOptimizer::yogi, adaptive);
  if (algorithm == "fednova") return std::make_unique<FedNova>(training.momentum);
  if (algorithm == "scaffold") {
    return std::make_unique<Scaffold>(ScaffoldOptions{
        .clients = clients, .local_lr = training.lr, .local_momentum = training.momentum, .global_lr = server_lr});
  }
  throw UsageError(
      fmt::format("--algorithm: '{}' is not one of fedavg, fedprox, fedavgm, fedadagrad, fedadam, fedyogi, "
                  "fednova, scaffold, hierarchical",
                  algorithm));
}

std::optional<Flags> read_flags(int argc, char** argv, int rank) {
  using namespace fedrun::fl;
  std::vector<string> arguments = with_hyphens(argc, argv);
  std::vector<char*> pointers;
  for (string& argument : arguments) pointers.push_back(argument.data());
  cxxopts::Options options = make_options();
  const auto found = fedrun::parse_flags(options, static_cast<int>(pointers.size()), pointers.data(), rank);
  if (!found) return std::nullopt;
  const cxxopts::ParseResult& parsed = *found;
  const auto number = [&](const char* flag) { return parsed[flag].as<double>(); };
  const auto text = [&](const char* flag) { return parsed[flag].as<string>(); };
  const auto is_on = [&](const char* flag) { return parsed[flag].as<bool>(); };  // --ci=false counts as given, too
  const bool is_check = is_on("ci");
  if (!(number("client-timeout") >= 0)) throw UsageError("--client-timeout must not be negative");

  Flags flags{.dataset = text("dataset"),
              .data_dir = text("data-dir"),
              .partition_method = text("partition-method"),
              .partition_file = text("partition-file"),
              .partition_alpha = number("partition-alpha"),
              .synthetic_alpha = number("synthetic-alpha"),
              .synthetic_beta = number("synthetic-beta"),
              .clients = parsed["client-num-in-total"].as<std::size_t>(),
              .model = text("model"),
              .rounds = is_check ? 1 : parsed["comm-round"].as<std::uint64_t>(),
              .rounds_between_tests = parsed["frequency-of-the-test"].as<std::uint64_t>(),
              .seed = parsed["seed"].as<std::uint64_t>(),
              .run_dir = text("run-dir"),
              .rounds_between_checkpoints =
                  is_check && !text("run-dir").empty() ? 1 : parsed["checkpoint-every"].as<std::uint64_t>(),
              .resumes = is_on("resume"),
              .tests_clients = is_check || is_on("client-table"),
              .is_check = is_check,
              .groups = parse_groups(text("groups")),
              .algorithm = text("algorithm"),
              .mu = number("mu"),
              .server_lr = number("server-lr"),
              .server_momentum = number("server-momentum"),
              .beta1 = number("beta1"),
              .beta2 = number("beta2"),
              .tau = number("tau"),
              .client_groups = parsed["group-num"].as<std::size_t>(),
              .inner_rounds = parsed["group-comm-round"].as<std::uint64_t>()};
  flags.training = {.epochs = is_check ? 1 : parsed["epochs"].as<int>(),
                    .batch_size = parsed["batch-size"].as<std::size_t>(),
                    .optimizer = parse_named<ClientOptimizer>(
                        parsed, "client-optimizer", {{"sgd", ClientOptimizer::sgd}, {"adam", ClientOptimizer::adam}}),
                    .lr = number("lr"),
                    .momentum = number("momentum"),
                    .weight_decay = number("wd")};
  flags.federation = {
      .clients_per_round = parsed["client-num-per-round"].as<std::size_t>(),
      .sampling = {.method = parse_named<fedrun::ClientSampling>(
                       parsed, "sampling",
                       {{"fixed", fedrun::ClientSampling::fixed}, {"poisson", fedrun::ClientSampling::poisson}}),
                   .seed = flags.seed},
      .seed = flags.seed,
      .min_clients = parsed["min-clients"].as<std::size_t>(),
      .round_attempts = parsed["round-attempts"].as<int>(),
      .client_timeout = std::chrono::ceil<std::chrono::milliseconds>(
          std::chrono::duration<double>(number("client-timeout"))),  // down, a short one would be none
      .buffers = parse_named<BufferRule>(
          parsed, "buffers",
          {{"average", BufferRule::average}, {"local", BufferRule::local}, {"skip", BufferRule::skip}}),
      .sums = is_on("deterministic") ? SumOrder::exact : SumOrder::fast,
      .clip_norm = number("clip-norm"),
      .noise_multiplier = number("noise-multiplier")};
  for (const cxxopts::KeyValue& argument : parsed.arguments()) flags.given[argument.key()] = argument.value();
  for (const cxxopts::KeyValue& fallback : parsed.defaults()) flags.given.emplace(fallback.key(), fallback.value());
  check(parsed, flags);
  return flags;
}

}  // namespace fedavg
