#include <fedrun/core/error.h>
#include <fedrun/fl/round_sum.h>
#include <fedrun/fl/row_kernels.h>
#include <fedrun/train/tensor_buffer.h>
#include <fmt/format.h>

#include <cmath>

namespace fedrun::fl {
namespace {

constexpr double steps_per_unit = 0x1p40;
// The weights of a round add up to 1, so its sums stay below 2^52 steps, and what algorithms make of them below 2^63. A
// weight that moves so far in a round has diverged by any measure.
constexpr double largest_exact = 0x1p12;

torch::ScalarType element_type(SumOrder order) { return order == SumOrder::fast ? torch::kFloat32 : torch::kInt64; }

}  // namespace

RoundSum::RoundSum(RankGroups& groups, std::size_t count, SumOrder order)
    : groups_(groups),
      order_(order),
      memory_(groups.world().allocate(count * (order == SumOrder::fast ? sizeof(float) : sizeof(std::int64_t)))),
      elements_(torch::from_blob(memory_.data(), {static_cast<std::int64_t>(count)}, element_type(order))),
      count_(count) {}

void RoundSum::clear(std::size_t count) {
  if (count > static_cast<std::size_t>(elements_.numel())) {
    throw UsageError(fmt::format("a round's sum has room for {} elements, not for {}", elements_.numel(), count));
  }
  count_ = count;
  part(0, count).zero_();
}

void RoundSum::add(std::size_t first, const torch::Tensor& values, double weight) {
  const auto count = static_cast<std::size_t>(values.numel());
  if (order_ == SumOrder::fast) {
    add_scaled(values.const_data_ptr<float>(), count, static_cast<float>(weight), elements_.data_ptr<float>() + first);
  } else {
    part(first, count).add_(values.to(torch::kFloat64).mul_(weight * steps_per_unit).round_().to(torch::kInt64));
  }
}

void RoundSum::add(std::size_t element, double value) {
  if (order_ == SumOrder::fast) {
    elements_.data_ptr<float>()[element] += static_cast<float>(value);
  } else {
    elements_.data_ptr<std::int64_t>()[element] += std::llround(value * steps_per_unit);
  }
}

bool RoundSum::fits(const torch::Tensor& values) const {
  const double largest = largest_magnitude(values.const_data_ptr<float>(), static_cast<std::size_t>(values.numel()));
  return order_ == SumOrder::fast ? std::isfinite(largest) : largest <= largest_exact;
}

void RoundSum::reduce() { groups_.sum_across(buffer_of(part(0, count_), "the sum of a round")); }

torch::Tensor RoundSum::values(std::size_t first, std::size_t count) const {
  const torch::Tensor sums = part(first, count);
  return order_ == SumOrder::fast ? sums : sums.to(torch::kFloat64).div_(steps_per_unit).to(torch::kFloat32);
}

double RoundSum::value(std::size_t element) const {
  if (order_ == SumOrder::fast) return elements_.data_ptr<float>()[element];
  return static_cast<double>(elements_.data_ptr<std::int64_t>()[element]) / steps_per_unit;
}

torch::Tensor RoundSum::part(std::size_t first, std::size_t count) const {
  return elements_.narrow(0, static_cast<std::int64_t>(first), static_cast<std::int64_t>(count));
}

}  // namespace fedrun::fl
