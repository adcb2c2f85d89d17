#include <fedrun/core/error.h>
#include <fedrun/core/keyed_random.h>
#include <fedrun/data/distributions.h>
#include <fedrun/fl/client_groups.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace fedrun::fl {

ClientGroups::ClientGroups(const ClientData& clients, std::size_t groups, std::uint64_t seed)
    : members_(clients), group_of_(clients.clients()), samples_(groups) {
  if (groups < 1 || groups > clients.clients()) {
    throw UsageError(fmt::format("{} clients cannot form {} groups: choose a number from 1 to {}", clients.clients(),
                                 groups, clients.clients()));
  }
  for (std::size_t client = 0; client < group_of_.size(); ++client) group_of_[client] = client % groups;
  KeyedRandom random(seed, 0, groups);
  data::shuffle(std::span(group_of_), random);
  for (std::size_t client = 0; client < group_of_.size(); ++client) {
    samples_[group_of_[client]] += clients.train_samples(client);
  }
}

GroupTrainer::GroupTrainer(ModelTrainer& trainer, const ClientGroups& groups,
                           std::unique_ptr<Algorithm> inner_algorithm, const GroupTrainerOptions& options)
    : trainer_(trainer),
      groups_(groups),
      algorithm_(std::move(inner_algorithm)),
      options_(options),
      sampler_(groups.members().clients(), options.members.clients_per_round, options.members.sampling) {
  if (options.inner_rounds < 1) throw UsageError("groups of clients need at least one round of their own");
  if (!algorithm_->memory().empty() || algorithm_->client_memory() != nullptr ||
      options.members.buffers == BufferRule::local) {
    throw UsageError(
        fmt::format("inside groups of clients nothing is remembered from round to round, which {} needs: use fedavg or "
                    "fedprox there",
                    options.members.buffers == BufferRule::local ? "--buffers local" : algorithm_->name()));
  }
}

GroupTrainer::Inside::Inside(GroupTrainer& trainer, LocalTask& task)
    : lanes(task.group),
      averaging(lanes, trainer.trainer_, trainer.groups_.members(), task.model, *trainer.algorithm_,
                trainer.options_.members, trainer.groups_.members().clients()) {}

LocalResult GroupTrainer::train(LocalTask& task) {
  if (!inside_) inside_.emplace(*this, task);
  std::vector<std::size_t> chosen = sampler_.clients_of_round(task.round);
  std::erase_if(chosen, [&](std::size_t client) { return groups_.group_of(client) != task.client; });
  LocalResult result{.samples = 0};
  if (chosen.empty()) return result;

  inside_->averaging.set_global_state(task.model.state());
  for (std::uint64_t i = 0; i < options_.inner_rounds; ++i) {
    const RoundReport report = inside_->averaging.train(task.round * options_.inner_rounds + i, 0, chosen);
    if (report.finished() == 0) {
      throw UsageError(fmt::format("none of the {} clients of group {} has finished", chosen.size(), task.client));
    }
    inside_->averaging.apply(report);
    result = {.steps = result.steps + 1, .loss = report.local_loss, .samples = report.samples};
  }
  return result;
}

void GroupTrainer::test_client(std::size_t group, Meter& metrics) {
  for (std::size_t client = 0; client < groups_.members().clients(); ++client) {
    if (groups_.group_of(client) == group) trainer_.test_client(client, metrics);
  }
}

}  // namespace fedrun::fl
