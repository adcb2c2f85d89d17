// A small model and its data, for tests that compare training on several ranks with training on one.
#pragma once

#include <torch/torch.h>

#include <cmath>
#include <vector>

#include "support/rank_test.h"
#include "support/torch_device.h"

namespace fedrun::test {

inline torch::nn::Sequential make_model() {
  torch::manual_seed(7);
  return here(torch::nn::Sequential(torch::nn::Linear(10, 32), torch::nn::Tanh(), torch::nn::Linear(32, 32),
                                    torch::nn::ReLU(), torch::nn::Linear(32, 3)));
}

struct Batch {
  torch::Tensor input;
  torch::Tensor target;

  torch::Tensor loss(torch::nn::Sequential& model) const {
    return torch::cross_entropy_loss(model->forward(input), target);
  }
  // One of `count` equal parts.
  Batch part(int index, int count) const { return {input.chunk(count)[index], target.chunk(count)[index]}; }
};

// The whole batch of one step; 24 divides by 1, 2, 3 and 4 ranks, also in two passes.
inline Batch whole_batch(int step) {
  torch::manual_seed(1000 + static_cast<std::uint64_t>(step));
  return {here(torch::randn({24, 10})), here(torch::randint(3, {24}))};
}

inline Batch my_part(const Batch& whole) { return whole.part(rank(), ranks()); }

inline torch::Tensor flat(const torch::nn::Module& model) {
  std::vector<torch::Tensor> parts;
  for (const auto& parameter : model.parameters()) parts.push_back(parameter.detach().flatten());
  return torch::cat(parts).cpu().contiguous();
}

inline double relative_error(const torch::nn::Module& actual, const torch::nn::Module& expected) {
  return ((flat(actual) - flat(expected)).norm() / flat(expected).norm()).item<double>();
}

// Are the parameters the same bits on every rank?
inline bool replicas_are_equal(const torch::nn::Module& model) {
  const torch::Tensor mine = flat(model);
  const auto all =
      world().allgather(std::span<const float>(mine.const_data_ptr<float>(), static_cast<std::size_t>(mine.numel())));
  return std::ranges::all_of(all, [&](const auto& other) { return other == all.front(); });
}

}  // namespace fedrun::test
