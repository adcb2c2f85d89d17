// The first line of every program that trains: starts MPI, finds this rank's place, and sets Torch up for it.
#pragma once

#include <fedrun/collectives/process.h>
#include <torch/torch.h>

namespace fedrun {

// A Process that gives Torch this rank's share of the cores and says where the model belongs.
class Session : public Process {
 public:
  Session();
  explicit Session(const RunEnv& env);

  // The GPU of this rank, or the CPU.
  torch::Device device() const { return device_; }

 private:
  torch::Device device_;
};

}  // namespace fedrun
