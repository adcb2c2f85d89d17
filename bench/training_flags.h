// What the user wants trained, and how.
#pragma once

#include <fedrun/train/compression.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fedrun::bench {

// alone: rank 0 trains while the others wait. independent: every rank trains a model of its own. fedrun: all of them
// train one.
enum class System { alone, independent, fedrun };

struct TrainingFlags {
  std::vector<std::string> models{};
  std::vector<System> systems{};
  std::optional<std::int64_t> batch_size{};  // none: what is usual for the model
  int steps = 0;
  int warmup = 0;
  int rounds = 0;
  std::shared_ptr<Compression> compression{};  // shared: the optimizers of all models use it
  bool sharded = false;
  std::string optimizer{};
  bool announces_first_step = false;
  std::optional<std::string> json_path{};
};

// Nothing after --help. Throws UsageError for what cannot be trained.
std::optional<TrainingFlags> read_training_flags(int argc, char** argv, int rank);

}  // namespace fedrun::bench
