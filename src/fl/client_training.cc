#include <ATen/CPUGeneratorImpl.h>
#include <fedrun/core/error.h>
#include <fedrun/core/keyed_random.h>
#include <fedrun/core/log.h>
#include <fedrun/fl/client_training.h>
#include <fedrun/fl/group_state.h>
#include <fedrun/train/tensor_collectives.h>

#include <array>
#include <span>
#include <string_view>
#include <utility>

namespace fedrun::fl {
namespace {

using Clock = std::chrono::steady_clock;

enum RandomStream : std::uint64_t { training_stream, noise_stream };

std::uint64_t seed_of(std::uint64_t seed, RandomStream stream, const TrainingKey& key) {
  return KeyedRandom(KeyedRandom(seed, stream, key.round).next(), static_cast<std::uint64_t>(key.attempt), key.client)
      .next();
}

// What Torch throws goes on with a stack trace.
std::string_view first_line(std::string_view text) { return text.substr(0, text.find('\n')); }

Outcome outcome_of(TrainingState state) {
  switch (state) {
    case TrainingState::late:
      return Outcome::late;
    case TrainingState::failed:
      return Outcome::failed;
    case TrainingState::goes_on:
    case TrainingState::ended:
      break;
  }
  return Outcome::finished;
}

}  // namespace

ClientTraining::ClientTraining(Communicator& group, ModelTrainer& trainer, FlatModel& model, Algorithm& algorithm,
                               const RoundSum& sum, const FederationOptions& options)
    : group_(group),
      trainer_(trainer),
      model_(model),
      algorithm_(algorithm),
      sum_(sum),
      options_(options),
      message_(torch::zeros({message_size(model, algorithm)}, model.state().options())),
      change_(message_.narrow(0, 0, model.state_count())),
      delta_(message_.narrow(0, 0, model.weight_count())),
      buffer_change_(change_.narrow(0, model.weight_count(), model.buffers().numel())),
      extra_(message_.narrow(0, model.state_count(), message_.numel() - model.state_count())) {}

ClientWork ClientTraining::run(const TrainingKey& key, const torch::Tensor& global_state) {
  fill_model(global_state, key.client);
  LocalResult result;
  const Outcome outcome = run_trainer(key, global_state, result);
  if (outcome != Outcome::finished) return {.outcome = outcome};
  if (!take_change(key, global_state)) return {.outcome = Outcome::diverged};

  const torch::NoGradGuard no_grad;
  ClientUpdate update{.client = key.client, .steps = result.steps, .delta = delta_, .extra = extra_};
  algorithm_.prepare(update);
  return {.scalar = update.scalar, .loss = result.loss, .samples = result.samples};
}

void ClientTraining::fill_model(const torch::Tensor& global_state, std::optional<std::size_t> client) {
  const torch::NoGradGuard no_grad;
  model_.state().copy_(global_state);
  model_.reset_counters();
  const auto own = client ? own_buffers_.find(*client) : own_buffers_.end();
  if (own != own_buffers_.end()) model_.buffers().copy_(own->second);
}

Outcome ClientTraining::run_trainer(const TrainingKey& key, const torch::Tensor& global_state, LocalResult& result) {
  LocalTask task{.client = key.client,
                 .round = key.round,
                 .seed = seed_of(options_.seed, training_stream, key),
                 .model = model_,
                 .group = group_};
  if (algorithm_.corrects_gradients()) {
    task.correct_gradients = [&, global_weights = global_state.narrow(0, 0, model_.weight_count())] {
      const torch::NoGradGuard no_grad;
      algorithm_.correct_gradients(key.client, model_.gradients(), model_.weights(), global_weights);
    };
  }
  if (options_.client_timeout.count() > 0) task.deadline = Clock::now() + options_.client_timeout;

  torch::manual_seed(task.seed);  // of dropout
  TrainingState state = TrainingState::ended;
  try {
    result = trainer_.train(task);
    if (task.deadline && Clock::now() > *task.deadline) state = TrainingState::late;
  } catch (const StoppedByGroup& stop) {
    return outcome_of(stop.state);
  } catch (const ClientTimeout&) {
    state = TrainingState::late;
  } catch (const std::exception& problem) {
    // What went wrong between ranks is not the client's fault.
    const auto* known = dynamic_cast<const Error*>(&problem);
    if (known != nullptr && known->kind() != "UsageError") throw;
    log::warn("round {}: client {} is left out: {}", key.round, key.client, first_line(problem.what()));
    state = TrainingState::failed;
  }
  state = state_of_group(group_, state);
  if (state == TrainingState::ended) average_loss(result);
  return outcome_of(state);
}

// The ranks of a group have seen different samples of each batch, and some perhaps none.
void ClientTraining::average_loss(LocalResult& result) {
  // Where the ranks have the same loss, a mean of it may differ in the last bits.
  if (group_.size() == 1 || trainer_.is_same_on_any_group()) return;
  std::array sums = {result.loss * result.loss_samples, result.loss_samples};
  group_.allreduce(std::span(sums), {.op = ReduceOp::sum});
  result.loss = sums[1] > 0 ? sums[0] / sums[1] : 0;
}

// Leaves Δ in the message; false if it is not a number, or too large for exact sums.
bool ClientTraining::take_change(const TrainingKey& key, const torch::Tensor& global_state) {
  const torch::NoGradGuard no_grad;
  // As with the loss.
  if (group_.size() > 1 && model_.buffers().numel() > 0 && !trainer_.is_same_on_any_group()) {
    allreduce_(group_, model_.buffers());
  }

  torch::sub_out(change_, model_.state(), global_state);
  if (!sum_.fits(change_)) return false;
  if (options_.buffers != BufferRule::average) take_buffers(key.client);
  if (options_.clip_norm > 0) {
    const double norm = delta_.norm().item<double>();
    if (norm > options_.clip_norm) delta_.mul_(options_.clip_norm / norm);
  }
  if (options_.noise_multiplier > 0) add_noise(key);
  return true;
}

void ClientTraining::take_buffers(std::size_t client) {
  if (options_.buffers == BufferRule::local) learnt_buffers_[client] = model_.buffers().clone();
  buffer_change_.zero_();
}

void ClientTraining::keep_learnt_buffers() {
  for (auto& [client, buffers] : learnt_buffers_) own_buffers_.insert_or_assign(client, std::move(buffers));
  learnt_buffers_.clear();
}

void ClientTraining::add_noise(const TrainingKey& key) {
  const auto generator = at::detail::createCPUGenerator(seed_of(options_.seed, noise_stream, key));
  const torch::Tensor noise = at::normal(0, options_.noise_multiplier * options_.clip_norm, delta_.sizes(), generator);
  delta_.add_(noise.to(delta_.device()));
}

}  // namespace fedrun::fl
