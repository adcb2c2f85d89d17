// What the user wants measured.
#pragma once

#include <fedrun/core/run_env.h>

#include <optional>
#include <string>
#include <vector>

#include "fedrun_contender.h"
#include "measure.h"

namespace fedrun::bench {

struct Flags {
  std::size_t min_bytes = 0;
  std::size_t max_bytes = 0;
  std::size_t factor = 2;
  Rounds rounds{};
  std::vector<Collective> collectives{};
  DataType type = DataType::f32;
  ReduceOp op = ReduceOp::sum;
  std::optional<DataType> wire{};
  DeviceChoice device = DeviceChoice::automatic;
  std::vector<MemoryKind> memories{};
  std::vector<Place> places{};
  std::size_t async_operations = 0;  // 0: blocking calls
  bool compare_with_mpi = false;
  bool compare_with_limit = false;
  std::optional<std::string> json_path{};
};

// Nothing after --help. Throws UsageError for what cannot be measured.
std::optional<Flags> read_flags(int argc, char** argv, int rank);

}  // namespace fedrun::bench
