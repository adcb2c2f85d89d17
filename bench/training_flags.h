// What the user wants trained, and how.
#pragma once

#include <fedrun/core/run_env.h>
#include <fedrun/train/compression.h>
#include <torch/torch.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fedrun::bench {

// alone: rank 0 trains while the others wait. independent: every rank trains a model of its own. fedrun: all of them
// train one.
enum class System { alone, independent, fedrun };

struct Precision {
  std::string name{};
  torch::ScalarType type = torch::kFloat32;
};

// Every model is trained with every batch size in every precision, and by fedrun with every compression.
struct TrainingFlags {
  std::vector<std::string> models{};
  std::vector<System> systems{};
  DeviceChoice device = DeviceChoice::automatic;
  std::vector<std::int64_t> batch_sizes{};  // of each rank; none: what is usual for the model
  std::vector<Precision> precisions{};
  int steps = 0;
  int warmup = 0;
  int rounds = 0;
  std::vector<std::shared_ptr<Compression>> compressions{};  // shared: the optimizers of all models use it
  bool sharded = false;
  std::string optimizer{};
  bool announces_first_step = false;
  std::optional<std::string> json_path{};
};

// Nothing after --help. Throws UsageError for what cannot be trained.
std::optional<TrainingFlags> read_training_flags(int argc, char** argv, int rank);

}  // namespace fedrun::bench
