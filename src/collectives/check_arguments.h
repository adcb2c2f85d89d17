// Finds wrong arguments before anything is sent, so that a mistake of one rank cannot leave the others waiting halfway.
#pragma once

#include <fedrun/collectives/operation.h>

namespace fedrun {

// Throws UsageError that says what is wrong with what this rank brings to the operation.
void check_arguments(const Operation& operation, int rank, int ranks);

}  // namespace fedrun
