#include <fedrun/core/log.h>
#include <fedrun/fl/group_state.h>

#include <array>
#include <span>

namespace fedrun::fl {

TrainingState state_of_group(Communicator& group, TrainingState mine) {
  if (group.size() == 1) return mine;
  const int state = static_cast<int>(mine);
  std::array extremes = {state, -state};  // the largest of the second is the smallest state
  group.allreduce(std::span(extremes), {.op = ReduceOp::max});
  const auto worst = static_cast<TrainingState>(extremes[0]);
  if (worst == TrainingState::ended && extremes[0] != -extremes[1]) {
    log::warn(
        "the ranks of a group took different numbers of steps on one client: train() must call "
        "finish_gradients() equally often on all of them");
    return TrainingState::failed;
  }
  return worst;
}

}  // namespace fedrun::fl
