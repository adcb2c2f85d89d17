// What the ranks that train a client together tell each other before every step, so that one that cannot go on does not
// leave the others waiting.
#pragma once

#include <fedrun/collectives/communicator.h>

namespace fedrun::fl {

enum class TrainingState { goes_on, ended, late, failed };  // the worse, the later

// Thrown out of a client's training where another rank of the group has stopped it; all ranks know already.
struct StoppedByGroup {
  TrainingState state;
};

// Collective over the group: the worst state of any rank. Where some ranks have ended while others go on, the training
// has failed: they took different numbers of steps.
TrainingState state_of_group(Communicator& group, TrainingState mine);

}  // namespace fedrun::fl
