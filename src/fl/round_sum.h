// Adds up what the clients of a round bring, first on each rank group and in place, then across the groups.
#pragma once

#include <fedrun/fl/rank_groups.h>
#include <torch/torch.h>

#include <cstddef>
#include <cstdint>

namespace fedrun::fl {

// fast: floats, whose sum depends in its last bits on which group added what. exact: whole numbers in steps of 2^-40,
// whose sum is the same in whatever order, so that results do not depend on the number of ranks.
enum class SumOrder { fast, exact };

// Holds `count` elements, of whatever meaning the caller gives them: memory does not depend on the number of clients.
// Values are f32 and lie in one piece. Used by one thread.
class RoundSum {
 public:
  // Collective over the world.
  RoundSum(RankGroups& groups, std::size_t count, SumOrder order);

  // Forgets everything; the next sum has so many elements, at most as many as there is room for.
  void clear(std::size_t count);

  // Adds weight · values to the elements from `first` on. Those must fit, see fits().
  void add(std::size_t first, const torch::Tensor& values, double weight);
  void add(std::size_t element, double value);

  // Can the values be added, with weights up to 1? No NaN, nothing infinite, and in exact sums
  // nothing too large.
  bool fits(const torch::Tensor& values) const;

  // Collective over the world: from now on the elements are the sums of all groups.
  void reduce();

  torch::Tensor values(std::size_t first, std::size_t count) const;  // f32
  double value(std::size_t element) const;

 private:
  torch::Tensor part(std::size_t first, std::size_t count) const;

  RankGroups& groups_;
  SumOrder order_;
  Memory memory_;
  torch::Tensor elements_;  // f32 or i64, in memory_
  std::size_t count_ = 0;
};

}  // namespace fedrun::fl
