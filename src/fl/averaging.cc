#include <fedrun/fl/averaging.h>
#include <fedrun/fl/client_assignment.h>
#include <fedrun/train/stopwatch.h>

#include <utility>

namespace fedrun::fl {

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

namespace {

// What is added up besides the messages: weights, samples, scalars and losses, and one number per chosen client, to
// which only the group that trained it adds: how it went.
enum Number : std::size_t { weight_sum, sample_sum, scalar_sum, loss_sum, first_outcome };

}  // namespace

// Of all chosen clients: what is added up is divided by it, so that weights add up to 1 while nobody is dropped.
struct Averaging::Totals {
  double samples = 0;
  double weight = 0;
};

Averaging::Averaging(RankGroups& groups, ModelTrainer& trainer, const ClientData& clients, FlatModel& model,
                     Algorithm& algorithm, const FederationOptions& options, std::size_t most_clients)
    : groups_(groups),
      clients_(clients),
      model_(model),
      algorithm_(algorithm),
      options_(options),
      sum_(groups,
           {.values = static_cast<std::size_t>(message_size(model, algorithm)),
            .numbers = first_outcome + most_clients,
            .device = model.state().device()},
           options.sums),
      training_(groups.inner(), trainer, model, algorithm, sum_, options),
      global_(model.state().clone()) {}

RoundReport Averaging::train(std::uint64_t round, int attempt, std::vector<std::size_t> chosen) {
  RoundReport report{.round = round, .attempt = attempt, .clients = std::move(chosen)};
  Totals totals;
  for (const std::size_t client : report.clients) {
    const auto samples = static_cast<double>(clients_.train_samples(client));
    totals.samples += samples;
    totals.weight += algorithm_.weight_of(samples);
  }

  sum_.clear(first_outcome + report.clients.size());
  {
    const Stopwatch watch(report.train_seconds);
    for (const std::size_t position : positions_of_this_group(report.clients)) {
      train_client({.client = report.clients[position], .round = round, .attempt = attempt}, position, totals);
    }
  }
  {
    const Stopwatch watch(report.communicate_seconds);
    sum_.reduce();
  }
  for (std::size_t i = 0; i < report.clients.size(); ++i) {
    const auto outcome = static_cast<Outcome>(static_cast<int>(sum_.number(first_outcome + i)));
    if (outcome != Outcome::finished) report.dropped.push_back({report.clients[i], outcome});
  }
  const double weight = sum_.number(weight_sum);
  report.samples = sum_.number(sample_sum) * totals.samples;
  report.local_loss = weight > 0 ? sum_.number(loss_sum) / weight : 0;
  return report;
}

std::vector<std::size_t> Averaging::positions_of_this_group(const std::vector<std::size_t>& chosen) {
  if (!client_memories().empty()) {
    std::vector<std::size_t> positions;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (home_of(chosen[i]) == groups_.group()) positions.push_back(i);
    }
    return positions;
  }
  std::vector<double> costs;
  for (const std::size_t client : chosen) costs.push_back(static_cast<double>(clients_.train_samples(client)));
  return assign_by_cost(costs, static_cast<std::size_t>(groups_.count()))[static_cast<std::size_t>(groups_.group())];
}

void Averaging::train_client(const TrainingKey& key, std::size_t position, const Totals& totals) {
  const ClientWork work = training_.run(key, global_);
  sum_.add_number(first_outcome + position, static_cast<double>(work.outcome));
  if (work.outcome != Outcome::finished || totals.samples == 0) return;
  const double samples = work.samples.value_or(static_cast<double>(clients_.train_samples(key.client)));
  const double weight = algorithm_.weight_of(samples) / totals.weight;
  sum_.add(0, training_.message(), weight);
  sum_.add_number(weight_sum, weight);
  sum_.add_number(sample_sum, samples / totals.samples);
  sum_.add_number(scalar_sum, work.scalar, weight);
  sum_.add_number(loss_sum, work.loss, weight);
}

void Averaging::apply(const RoundReport& report) {
  const torch::NoGradGuard no_grad;
  const double weight = sum_.number(weight_sum);
  if (weight > 0) {
    const std::int64_t weights = model_.weight_count();
    const std::int64_t state = model_.state_count();
    const torch::Tensor average = sum_.values(0, static_cast<std::size_t>(training_.message().numel())).div_(weight);
    algorithm_.apply(global_.narrow(0, 0, weights), {.clients = report.finished(),
                                                     .delta = average.narrow(0, 0, weights),
                                                     .extra = average.narrow(0, state, average.numel() - state),
                                                     .scalar = sum_.number(scalar_sum) / weight});
    global_.narrow(0, weights, state - weights).add_(average.narrow(0, weights, state - weights));
  }
  training_.keep_learnt_buffers();
  give_model_to(std::nullopt);
}

void Averaging::discard() {
  algorithm_.discard();
  training_.forget_learnt_buffers();
  give_model_to(std::nullopt);
}

void Averaging::set_global_state(const torch::Tensor& state) {
  const torch::NoGradGuard no_grad;
  global_.copy_(state);
  give_model_to(std::nullopt);
}

void Averaging::give_model_to(std::optional<std::size_t> client) { training_.fill_model(global_, client); }

std::vector<std::pair<const char*, std::map<std::size_t, torch::Tensor>*>> Averaging::client_memories() {
  std::vector<std::pair<const char*, std::map<std::size_t, torch::Tensor>*>> memories;
  if (auto* memory = algorithm_.client_memory()) memories.emplace_back("client", memory);
  if (options_.buffers == BufferRule::local) memories.emplace_back("buffers", &training_.own_buffers());
  return memories;
}

int Averaging::home_of(std::size_t client) const {
  return static_cast<int>(client % static_cast<std::size_t>(groups_.count()));
}

}  // namespace fedrun::fl
