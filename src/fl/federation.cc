#include <ATen/CPUGeneratorImpl.h>
#include <fedrun/collectives/hash.h>
#include <fedrun/core/error.h>
#include <fedrun/core/keyed_random.h>
#include <fedrun/core/log.h>
#include <fedrun/fl/client_assignment.h>
#include <fedrun/fl/federation.h>
#include <fedrun/train/agreement.h>
#include <fedrun/train/broadcast.h>
#include <fedrun/train/stopwatch.h>
#include <fedrun/train/tensor_buffer.h>
#include <fmt/format.h>

#include <string>
#include <utility>

namespace fedrun::fl {
namespace {

using Clock = std::chrono::steady_clock;

enum RandomStream : std::uint64_t { training_stream, noise_stream };

std::uint64_t seed_of(std::uint64_t seed, RandomStream stream, std::uint64_t round, std::size_t client) {
  return KeyedRandom(KeyedRandom(seed, stream, round).next(), stream, client).next();
}

// With Poisson sampling everybody may be chosen.
std::size_t most_clients(const ClientData& clients, const FederationOptions& options) {
  return options.sampling.method == ClientSampling::poisson ? clients.clients() : options.clients_per_round;
}

std::size_t message_size(const FlatModel& model, const Algorithm& algorithm) {
  return static_cast<std::size_t>(model.state_count() + algorithm.extra_parts() * model.weight_count());
}

}  // namespace

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::finished:
      return "finished";
    case Outcome::failed:
      return "failed";
    case Outcome::diverged:
      return "diverged";
    case Outcome::late:
      break;
  }
  return "late";
}

// The messages added up, the sums of weights, scalars and losses, and one number per chosen client, to which only the
// group that trained it adds: how it went.
struct Federation::Layout {
  std::size_t weight;
  std::size_t scalar;
  std::size_t loss;
  std::size_t outcomes;
  std::size_t count;
};

Federation::Federation(RankGroups& groups, ModelTrainer& trainer, const ClientData& clients,
                       std::unique_ptr<Algorithm> algorithm, const FederationOptions& options)
    : groups_(groups),
      trainer_(trainer),
      clients_(clients),
      algorithm_(std::move(algorithm)),
      options_(options),
      sampler_(clients.clients(), options.clients_per_round, options.sampling),
      model_(trainer.model(), groups.inner()),
      message_(torch::zeros({static_cast<std::int64_t>(message_size(model_, *algorithm_))})),
      sum_(groups, layout(most_clients(clients, options)).count, options.sums) {
  check();
  check_ranks_agree();
  broadcast_parameters(groups_.world(), trainer_.model());
  global_ = model_.state().clone();
}

void Federation::check() const {
  if (options_.min_clients > options_.clients_per_round) {
    throw UsageError(fmt::format("at least {} clients are to finish a round of {}", options_.min_clients,
                                 options_.clients_per_round));
  }
  if (!(options_.clip_norm >= 0) || !(options_.noise_multiplier >= 0)) {
    throw UsageError("the clipping norm and the noise multiplier must not be negative");
  }
  if (options_.noise_multiplier > 0 && options_.clip_norm == 0) {
    throw UsageError("noise is a multiple of the clipping norm: give that as well");
  }
  if (options_.sums == SumOrder::exact && groups_.count() < groups_.world().size()) {
    throw UsageError("results that do not depend on the number of ranks need rank groups of one rank each");
  }
}

void Federation::check_ranks_agree() {
  std::uint64_t sizes = clients_.clients();
  for (std::size_t client = 0; client < clients_.clients(); ++client) {
    sizes = hash_of(sizes, clients_.train_samples(client));
  }
  check_agreement(
      groups_.world(), "the federation's settings",
      {fmt::format("{} clients", clients_.clients()), fmt::format("sizes of clients with hash {:x}", sizes),
       fmt::format("{} clients a round", options_.clients_per_round),
       fmt::format("seeds {} and {}", options_.seed, options_.sampling.seed),
       fmt::format("the algorithm {}", algorithm_->name()), fmt::format("at least {} clients", options_.min_clients)},
      "Give every rank the same data and options.");
}

Federation::Layout Federation::layout(std::size_t chosen) const {
  const std::size_t size = message_size(model_, *algorithm_);
  return {.weight = size, .scalar = size + 1, .loss = size + 2, .outcomes = size + 3, .count = size + 3 + chosen};
}

RoundReport Federation::run_round() {
  RoundReport report{.round = round_, .clients = sampler_.clients_of_round(round_)};
  const Layout layout = this->layout(report.clients.size());
  double total_weight = 0;  // so that weights add up to 1 while nobody is dropped
  const auto weight_of = [&](std::size_t position) {
    return algorithm_->weight_of(static_cast<double>(clients_.train_samples(report.clients[position])));
  };
  for (std::size_t i = 0; i < report.clients.size(); ++i) total_weight += weight_of(i);

  sum_.clear(layout.count);
  {
    const Stopwatch watch(report.train_seconds);
    for (const std::size_t i : positions_of_this_group(report.clients)) {
      const Outcome outcome =
          train_client(report.clients[i], total_weight > 0 ? weight_of(i) / total_weight : 0, layout);
      sum_.add(layout.outcomes + i, static_cast<double>(outcome));
    }
  }
  {
    const Stopwatch watch(report.communicate_seconds);
    sum_.reduce();
  }
  for (std::size_t i = 0; i < report.clients.size(); ++i) {
    const auto outcome = static_cast<Outcome>(static_cast<int>(sum_.value(layout.outcomes + i)));
    if (outcome != Outcome::finished) report.dropped.push_back({report.clients[i], outcome});
  }
  const std::size_t finished = report.clients.size() - report.dropped.size();
  // Poisson sampling may choose nobody, which is a round without news and no fault.
  if (!report.clients.empty() && finished < options_.min_clients) {
    throw UsageError(fmt::format(
        "round {}: {} of {} clients finished, where {} are needed (client {} {}): lower --min-clients, or look for the "
        "reason in the ranks' warnings",
        round_, finished, report.clients.size(), options_.min_clients, report.dropped.front().client,
        to_string(report.dropped.front().reason)));
  }
  apply_average(layout, finished);
  const double weight = sum_.value(layout.weight);
  report.local_loss = weight > 0 ? sum_.value(layout.loss) / weight : 0;
  ++round_;
  return report;
}

std::vector<std::size_t> Federation::positions_of_this_group(const std::vector<std::size_t>& chosen) const {
  const auto groups = static_cast<std::size_t>(groups_.count());
  const auto group = static_cast<std::size_t>(groups_.group());
  if (algorithm_->client_memory() != nullptr) {
    std::vector<std::size_t> positions;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (chosen[i] % groups == group) positions.push_back(i);
    }
    return positions;
  }
  std::vector<double> costs;
  for (const std::size_t client : chosen) costs.push_back(static_cast<double>(clients_.train_samples(client)));
  return assign_by_cost(costs, groups)[group];
}

Outcome Federation::train_client(std::size_t client, double weight, const Layout& layout) {
  {
    const torch::NoGradGuard no_grad;
    model_.state().copy_(global_);
  }
  const auto start = Clock::now();
  LocalResult result;
  const Outcome outcome = run_trainer(client, result);
  if (outcome != Outcome::finished) return outcome;
  if (ran_late(start)) return Outcome::late;
  if (!take_update(client)) return Outcome::diverged;

  const torch::NoGradGuard no_grad;
  const std::int64_t weights = model_.weight_count();
  const std::int64_t state = model_.state_count();
  ClientUpdate update{.client = client,
                      .steps = result.steps,
                      .delta = message_.narrow(0, 0, weights),
                      .extra = message_.narrow(0, state, message_.numel() - state)};
  algorithm_->prepare(update);
  sum_.add(0, message_, weight);
  sum_.add(layout.weight, weight);
  sum_.add(layout.scalar, weight * update.scalar);
  sum_.add(layout.loss, weight * result.loss);
  return Outcome::finished;
}

Outcome Federation::run_trainer(std::size_t client, LocalResult& result) {
  const torch::Tensor global_weights = global_.narrow(0, 0, model_.weight_count());
  LocalTask task{.client = client,
                 .round = round_,
                 .seed = seed_of(options_.seed, training_stream, round_, client),
                 .model = model_,
                 .group = groups_.inner()};
  if (algorithm_->corrects_gradients()) {
    task.correct_gradients = [&] {
      const torch::NoGradGuard no_grad;
      algorithm_->correct_gradients(client, model_.gradients(), model_.weights(), global_weights);
    };
  }
  // Ranks of one group must stop at the same step, which their clocks do not tell: they only compare times at the end.
  const bool is_alone = groups_.inner().size() == 1;
  if (is_alone && options_.client_timeout.count() > 0) task.deadline = Clock::now() + options_.client_timeout;

  torch::manual_seed(task.seed);  // of dropout
  try {
    result = trainer_.train(task);
    return Outcome::finished;
  } catch (const ClientTimeout&) {
    return Outcome::late;
  } catch (const std::exception& problem) {
    // Inside a group the other ranks wait for this one, and what went wrong between ranks is not the client's fault.
    const auto* known = dynamic_cast<const Error*>(&problem);
    if (!is_alone || (known != nullptr && known->kind() != "UsageError")) throw;
    log::warn("round {}: client {} is left out: {}", round_, client, problem.what());
    return Outcome::failed;
  }
}

bool Federation::ran_late(Clock::time_point start) {
  if (options_.client_timeout.count() == 0) return false;
  double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  groups_.inner().allreduce(std::span(&seconds, 1), {.op = ReduceOp::max});
  return seconds > std::chrono::duration<double>(options_.client_timeout).count();
}

// Leaves Δ in the message; false if it is not a number, or too large for exact sums.
bool Federation::take_update(std::size_t client) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor buffers = model_.buffers();
  // The ranks of a group have seen different samples of each batch.
  if (groups_.inner().size() > 1 && buffers.numel() > 0) groups_.inner().allreduce(buffer_of(buffers, "buffers"));

  torch::Tensor changed = message_.narrow(0, 0, model_.state_count());
  torch::sub_out(changed, model_.state(), global_);
  if (options_.buffers == BufferRule::skip) changed.narrow(0, model_.weight_count(), buffers.numel()).zero_();
  if (!sum_.fits(changed)) return false;

  const torch::Tensor delta = changed.narrow(0, 0, model_.weight_count());
  if (options_.clip_norm > 0) {
    const double norm = delta.norm().item<double>();
    if (norm > options_.clip_norm) delta.mul_(options_.clip_norm / norm);
  }
  if (options_.noise_multiplier > 0) add_noise(client, delta);
  return true;
}

void Federation::add_noise(std::size_t client, const torch::Tensor& delta) const {
  const auto generator = at::detail::createCPUGenerator(seed_of(options_.seed, noise_stream, round_, client));
  delta.add_(at::normal(0, options_.noise_multiplier * options_.clip_norm, delta.sizes(), generator));
}

void Federation::apply_average(const Layout& layout, std::size_t finished) {
  const torch::NoGradGuard no_grad;
  const double weight = sum_.value(layout.weight);
  if (weight > 0) {
    const std::int64_t weights = model_.weight_count();
    const std::int64_t state = model_.state_count();
    const torch::Tensor average = sum_.values(0, static_cast<std::size_t>(message_.numel())).div_(weight);
    algorithm_->apply(global_.narrow(0, 0, weights), {.clients = finished,
                                                      .delta = average.narrow(0, 0, weights),
                                                      .extra = average.narrow(0, state, average.numel() - state),
                                                      .scalar = sum_.value(layout.scalar) / weight});
    global_.narrow(0, weights, state - weights).add_(average.narrow(0, weights, state - weights));
  }
  model_.state().copy_(global_);
}

Meter Federation::evaluate() {
  Meter metrics;
  trainer_.test({.index = static_cast<std::size_t>(groups_.world().rank()),
                 .parts = static_cast<std::size_t>(groups_.world().size())},
                metrics);
  return metrics.over_ranks(groups_.world());
}

}  // namespace fedrun::fl
