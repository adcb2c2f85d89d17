// Says once, in one form that the launcher recognises, why a rank ended early.
#pragma once

#include <fedrun/collectives/topology.h>

#include <exception>
#include <string>

namespace fedrun {

// "fedrun: rank 1 on host-a: UsageError: …"; lines after the first are indented by two spaces, so that the launcher can
// tell where a report ends. A run of one process leaves the rank out.
std::string describe_failure(const Topology& where, std::exception_ptr problem);

// From now on an exception that nobody catches is printed in that form and ends the process with exit code 1, on
// whichever thread it happens; mpirun then stops the other ranks.
void report_uncaught_exceptions(const Topology& where);

}  // namespace fedrun
