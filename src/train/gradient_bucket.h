// Gradients that travel together, and the memory in which they lie.
#pragma once

#include <fedrun/collectives/memory.h>
#include <fedrun/train/bucket_plan.h>
#include <torch/torch.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fedrun {

struct GradientBucket {
  std::size_t index = 0;  // the same on every rank; another bucket's after the optimizer has planned anew
  std::string name{};     // of the operation that reduces it
  std::shared_ptr<Memory>
      memory;  // what tells buckets apart; shared with the gradients, which users may keep longer than the optimizer
  Buffer buffer{};                 // all of the memory; zeros between the gradients
  std::vector<std::size_t> parts;  // how many elements belong to each rank, where only one of them steps each
  std::vector<BucketSlot> slots;
  std::vector<torch::Tensor> gradients;  // by slot, with the shape and the strides of the parameter

  // The rank's elements: where they begin, and all of them.
  std::size_t first_of(int rank) const;
  Buffer part_of(int rank) const;
  torch::Tensor flat() const;
  torch::Device device() const { return gradients.front().device(); }
};

// Elements of the memory as a tensor like `options`, which keeps the memory alive.
torch::Tensor tensor_in(const std::shared_ptr<Memory>& memory, std::size_t first_element, std::size_t elements,
                        const torch::TensorOptions& options);

// The same in the shape and, where they are dense, the strides of the parameter: autograd adopts a gradient only if its
// strides are those of the parameter. In its type, too, unless another one is given.
torch::Tensor tensor_like_in(const std::shared_ptr<Memory>& memory, std::size_t first_element,
                             const torch::Tensor& parameter, std::optional<torch::ScalarType> type = std::nullopt);

}  // namespace fedrun
