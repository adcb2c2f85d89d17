// Lets an optimizer step f32 copies of parameters that have 16 bits, in which small steps would be lost.
#pragma once

#include <fedrun/train/broadcast.h>
#include <fedrun/train/gradient_reducer.h>
#include <torch/torch.h>

#include <cstdint>
#include <vector>

namespace fedrun {

// The optimizer gets the copies, its masters, in place of the parameters; their gradients are those that the reducer
// adds up and reduces in f32. Used by the thread that steps; what it is given must outlive it.
class MasterWeights {
 public:
  // Throws UsageError if the optimizer has stepped before: its state would be of 16 bits.
  MasterWeights(torch::optim::Optimizer& optimizer, GradientReducer& reducer);

  // Before the optimizer steps: hands out the gradients. Where somebody else has written to a parameter, as
  // broadcast_parameters does and whoever loads a checkpoint, its master takes that over.
  void prepare();
  // Afterwards: rounds the masters into the parameters.
  void write_back();

  // What the optimizer steps: masters, and the parameters that need none.
  std::vector<torch::Tensor> stepped() const;
  // The masters, with the names of their parameters.
  NamedTensors named() const;

 private:
  struct Master {
    std::size_t parameter;
    torch::Tensor weights;
    const void* data = nullptr;  // where the parameter lay when the two were last the same
    std::uint32_t version = 0;   // and how often it had been written to
  };

  const torch::Tensor& parameter_of(const Master& master) const;
  void remember(Master& master) const;
  void follow_parameter(Master& master) const;

  GradientReducer& reducer_;
  std::vector<Master> masters_;
};

}  // namespace fedrun
