#include <fedrun/collectives/hash.h>
#include <fedrun/core/error.h>
#include <fedrun/core/log.h>
#include <fedrun/fl/federation.h>
#include <fedrun/train/agreement.h>
#include <fedrun/train/broadcast.h>
#include <fedrun/train/byte_exchange.h>
#include <fmt/format.h>

#include <string>
#include <utility>

namespace fedrun::fl {
namespace {

// With Poisson sampling everybody may be chosen.
std::size_t most_clients(const ClientData& clients, const FederationOptions& options) {
  return options.sampling.method == ClientSampling::poisson ? clients.clients() : options.clients_per_round;
}

std::string too_few(const RoundReport& report, std::size_t needed) {
  // Poisson sampling may choose too few to begin with.
  if (report.dropped.empty()) {
    return fmt::format("round {}: only {} clients were chosen, where {} are needed", report.round,
                       report.clients.size(), needed);
  }
  return fmt::format("round {}: {} of {} clients finished, where {} are needed (client {} {})", report.round,
                     report.finished(), report.clients.size(), needed, report.dropped.front().client,
                     to_string(report.dropped.front().reason));
}

std::uint64_t hash_of_sizes(const ClientData& clients) {
  std::uint64_t sizes = clients.clients();
  for (std::size_t client = 0; client < clients.clients(); ++client) {
    sizes = hash_of(sizes, clients.train_samples(client));
  }
  return sizes;
}

torch::nn::Module& of_rank_0(torch::nn::Module& model, Communicator& world) {
  broadcast_parameters(world, model);
  return model;
}

}  // namespace

Federation::Federation(RankGroups& groups, ModelTrainer& trainer, const ClientData& clients,
                       std::unique_ptr<Algorithm> algorithm, const FederationOptions& options)
    : groups_(groups),
      trainer_(trainer),
      clients_(clients),
      algorithm_(std::move(algorithm)),
      options_(options),
      sampler_(clients.clients(), options.clients_per_round, options.sampling),
      model_(of_rank_0(trainer.model(), groups.world()), groups.inner()),
      averaging_(groups, trainer, clients, model_, *algorithm_, options, most_clients(clients, options)),
      client_sizes_hash_(hash_of_sizes(clients)) {
  check();
  check_ranks_agree();
}

void Federation::check() const {
  if (options_.min_clients > options_.clients_per_round) {
    throw UsageError(fmt::format("at least {} clients are to finish a round of {}", options_.min_clients,
                                 options_.clients_per_round));
  }
  if (options_.round_attempts < 1) throw UsageError("a round needs at least one attempt");
  if (!(options_.clip_norm >= 0) || !(options_.noise_multiplier >= 0)) {
    throw UsageError("the clipping norm and the noise multiplier must not be negative");
  }
  if (options_.noise_multiplier > 0 && options_.clip_norm == 0) {
    throw UsageError("noise is a multiple of the clipping norm: give that as well");
  }
  if (options_.sums == SumOrder::exact && groups_.count() < groups_.world().size() &&
      !trainer_.is_same_on_any_group()) {
    throw UsageError("results that do not depend on the number of ranks need rank groups of one rank each");
  }
}

void Federation::check_ranks_agree() {
  check_agreement(groups_.world(), "the federation's settings",
                  {fmt::format("{} clients", clients_.clients()),
                   fmt::format("sizes of clients with hash {:x}", client_sizes_hash_),
                   fmt::format("{} clients a round", options_.clients_per_round),
                   fmt::format("seeds {} and {}", options_.seed, options_.sampling.seed),
                   fmt::format("the algorithm {}", algorithm_->name()),
                   fmt::format("at least {} clients in {} attempts", options_.min_clients, options_.round_attempts)},
                  "Give every rank the same data and options.");
}

RoundReport Federation::run_round() {
  for (int attempt = 0;; ++attempt) {
    const RoundReport report = averaging_.train(round_, attempt, sampler_.clients_of_round(round_, attempt));
    // Poisson sampling may choose nobody, which is a round without news and no fault.
    if (report.clients.empty() || report.finished() >= options_.min_clients) {
      averaging_.apply(report);
      ++round_;
      return report;
    }
    averaging_.discard();
    const std::string problem = too_few(report, options_.min_clients);
    if (attempt + 1 == options_.round_attempts) {
      throw UsageError(problem + ": lower --min-clients, raise --round-attempts, or " +
                       (report.dropped.empty() ? "choose more clients with --client-num-per-round"
                                               : "look for the reason in the ranks' warnings"));
    }
    if (groups_.world().rank() == 0) log::warn("{}: it is repeated with other clients", problem);
  }
}

Meter Federation::evaluate() {
  Meter metrics;
  trainer_.test({.index = static_cast<std::size_t>(groups_.world().rank()),
                 .parts = static_cast<std::size_t>(groups_.world().size())},
                metrics);
  return metrics.over_ranks(groups_.world());
}

ResultAggregator Federation::evaluate_clients() {
  const auto groups = static_cast<std::size_t>(groups_.count());
  const auto ranks = static_cast<std::size_t>(groups_.inner().size());
  const auto rank = static_cast<std::size_t>(groups_.inner().rank());
  ResultAggregator results;
  run_everywhere(groups_.world(), "testing single clients", [&] {
    for (std::size_t client = 0; client < clients_.clients(); ++client) {
      if (averaging_.home_of(client) != groups_.group() || client / groups % ranks != rank) continue;
      averaging_.give_model_to(client);
      Meter metrics;
      trainer_.test_client(client, metrics);
      results.add(client, metrics);
    }
  });
  averaging_.give_model_to(std::nullopt);
  return results.over_ranks(groups_.world());
}

}  // namespace fedrun::fl
