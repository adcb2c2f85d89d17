// Adds up what the clients of a round bring, first on each rank group and in place, then across the groups.
#pragma once

#include <fedrun/fl/rank_groups.h>
#include <torch/torch.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace fedrun::fl {

// fast: floats, whose sum depends in its last bits on which group added what. exact: whole numbers in steps of 2^-40,
// whose sum is the same in whatever order, so that results do not depend on the number of ranks.
enum class SumOrder { fast, exact };

// Holds values, of whatever meaning the caller gives them, and a few numbers besides: memory does not depend on how
// many clients add to them. Used by one thread.
class RoundSum {
 public:
  // Values are f32, lie in one piece and on `device`.
  struct Room {
    std::size_t values = 0;
    std::size_t numbers = 0;
    torch::Device device = torch::kCPU;
  };

  // Collective over the world.
  RoundSum(RankGroups& groups, const Room& room, SumOrder order);

  // Forgets everything; the next sum has so many numbers, at most as many as there is room for.
  void clear(std::size_t numbers);

  // Adds weight · values to the values from `first` on. Those must fit, see fits().
  void add(std::size_t first, const torch::Tensor& values, double weight);
  // Adds weight · number, where the weights add up to at most 1. In exact sums, numbers count only up to 2^22, and what
  // is no number counts as that.
  void add_number(std::size_t index, double number, double weight = 1);

  // Can the values be added, with weights up to 1? No NaN, nothing infinite, and in exact sums
  // nothing too large.
  bool fits(const torch::Tensor& values) const;

  // Collective over the world: from now on all of them are the sums of all groups.
  void reduce();

  torch::Tensor values(std::size_t first, std::size_t count) const;  // f32
  double number(std::size_t index) const;

 private:
  torch::Tensor part(std::size_t first, std::size_t count) const;

  RankGroups& groups_;
  SumOrder order_;
  Room room_;
  std::shared_ptr<Memory> memory_;  // shared with the elements
  torch::Tensor elements_;          // f32 or i64, in memory_: the values, then the numbers
  torch::Tensor numbers_;           // where the host adds to them
};

}  // namespace fedrun::fl
