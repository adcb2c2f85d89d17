// Where a benchmark's elements lie: on the GPU of each rank, where the run has one and nobody asks for something else.
#pragma once

#include <fedrun/collectives/process.h>
#include <fedrun/collectives/types.h>

#include <string_view>

namespace fedrun::bench {

// A run that has GPUs can still be asked to work in host memory, but not the other way round: throws UsageError that
// says why this run has no GPU. The same on every rank.
Device choose_device(DeviceChoice choice, const Process& process);

std::string_view name_of(Device device);  // cpu or cuda

}  // namespace fedrun::bench
