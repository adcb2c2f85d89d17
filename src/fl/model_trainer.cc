#include <fedrun/core/error.h>
#include <fedrun/fl/group_state.h>
#include <fedrun/fl/model_trainer.h>
#include <fedrun/train/tensor_collectives.h>

namespace fedrun::fl {

void LocalTask::finish_gradients(std::size_t samples_of_this_rank) {
  model.collect_gradients();
  if (group.size() > 1) {
    const TrainingState state = state_of_group(group, TrainingState::goes_on);
    if (state != TrainingState::goes_on) throw StoppedByGroup{state};
    allreduce_(group, model.gradients(), {.weight = static_cast<double>(samples_of_this_rank)});
  }
  if (correct_gradients) correct_gradients();
}

void LocalTask::check_time() const {
  if (deadline && std::chrono::steady_clock::now() > *deadline) throw ClientTimeout{};
}

void ModelTrainer::test_client(std::size_t /*client*/, Meter& /*metrics*/) {
  throw UsageError("this ModelTrainer does not test single clients: implement test_client() for tables of clients");
}

}  // namespace fedrun::fl
