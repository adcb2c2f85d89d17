// Lets every rank step with its own gradients, and combines by Adasum what the steps have changed.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <fedrun/train/gradient_reducer.h>
#include <torch/torch.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fedrun {

// Adasum works on whole tensors: what it adds and what it averages is decided for each parameter. Used by the thread
// that steps.
class AdasumStep {
 public:
  AdasumStep(Communicator& group, const std::vector<NamedParameter>& parameters, std::optional<DataType> wire);

  // Before this rank changes the parameters,
  void remember();
  // and afterwards. Collective.
  void combine();

 private:
  struct Change {
    std::string name;
    torch::Tensor parameter;
    torch::Tensor start;             // the parameter before the step
    std::shared_ptr<Memory> memory;  // shared with the tensor below
    torch::Tensor difference;
  };

  Communicator& group_;
  std::optional<DataType> wire_;
  std::vector<Change> changes_;
};

}  // namespace fedrun
