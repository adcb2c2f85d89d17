// Turns what the user asked for into what a rank says about it on the board.
#pragma once

#include <fedrun/collectives/board.h>
#include <fedrun/collectives/operation.h>

namespace fedrun {

CallTerms terms_of(const Operation& operation);

// Whether a rank has elements for the others, and whether it wants some.
bool brings_input(const Operation& operation, int rank);
bool takes_output(const Operation& operation, int rank);

}  // namespace fedrun
