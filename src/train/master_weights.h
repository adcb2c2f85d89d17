// Lets an optimizer step f32 copies of parameters that have 16 bits, in which small steps would be lost.
#pragma once

#include <fedrun/train/gradient_reducer.h>
#include <torch/torch.h>

#include <vector>

namespace fedrun {

// The optimizer gets the copies, its masters, in place of the parameters; their gradients are those that the reducer
// adds up and reduces in f32. Used by the thread that steps; what it is given must outlive it.
class MasterWeights {
 public:
  // Throws UsageError if the optimizer has stepped before: its state would be of 16 bits.
  MasterWeights(torch::optim::Optimizer& optimizer, GradientReducer& reducer);

  // Before the optimizer steps: hands out the gradients.
  void prepare();
  // Afterwards: rounds the masters into the parameters.
  void write_back();

  // What the optimizer steps: masters, and the parameters that need none.
  std::vector<torch::Tensor> stepped() const;

 private:
  struct Master {
    std::size_t parameter;
    torch::Tensor weights;
  };

  GradientReducer& reducer_;
  std::vector<Master> masters_;
};

}  // namespace fedrun
