#include <fedrun/core/error.h>
#include <fedrun/fl/round_sum.h>
#include <fedrun/fl/row_kernels.h>
#include <fedrun/train/gradient_bucket.h>
#include <fedrun/train/tensor_buffer.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fedrun::fl {
namespace {

constexpr double steps_per_unit = 0x1p40;
// The weights of a round add up to 1, so its sums stay below 2^52 steps, and what algorithms make of them below 2^63. A
// weight that moves so far in a round has diverged by any measure.
constexpr double largest_exact = 0x1p12;
// Likewise the sums of numbers stay within 2^62 steps. A loss may be larger, or NaN.
constexpr double largest_number = 0x1p22;

torch::ScalarType element_type(SumOrder order) { return order == SumOrder::fast ? torch::kFloat32 : torch::kInt64; }

}  // namespace

RoundSum::RoundSum(RankGroups& groups, const Room& room, SumOrder order)
    : groups_(groups),
      order_(order),
      room_(room),
      memory_(std::make_shared<Memory>(allocate_on(
          room.device, (room.values + room.numbers) * torch::elementSize(element_type(order)), groups.world()))),
      elements_(
          tensor_in(memory_, 0, room.values + room.numbers, torch::dtype(element_type(order)).device(room.device))) {
  clear(room.numbers);
}

void RoundSum::clear(std::size_t numbers) {
  if (numbers > room_.numbers) {
    throw UsageError(fmt::format("a round's sum has room for {} numbers, not for {}", room_.numbers, numbers));
  }
  part(0, room_.values).zero_();
  numbers_ = torch::zeros(static_cast<std::int64_t>(numbers), element_type(order_));
}

void RoundSum::add(std::size_t first, const torch::Tensor& values, double weight) {
  const auto count = static_cast<std::size_t>(values.numel());
  if (order_ == SumOrder::exact) {
    part(first, count).add_(values.to(torch::kFloat64).mul_(weight * steps_per_unit).round_().to(torch::kInt64));
  } else if (room_.device.is_cpu()) {
    add_scaled(values.const_data_ptr<float>(), count, static_cast<float>(weight), elements_.data_ptr<float>() + first);
  } else {
    part(first, count).add_(values, weight);
  }
}

void RoundSum::add_number(std::size_t index, double number, double weight) {
  if (order_ == SumOrder::fast) {
    numbers_.data_ptr<float>()[index] += static_cast<float>(weight * number);
    return;
  }
  const double in_range = number < largest_number ? std::max(number, -largest_number) : largest_number;
  numbers_.data_ptr<std::int64_t>()[index] += std::llround(weight * in_range * steps_per_unit);
}

bool RoundSum::fits(const torch::Tensor& values) const {
  if (values.numel() == 0) return true;
  const double largest = values.device().is_cpu() ? largest_magnitude(values.const_data_ptr<float>(),
                                                                      static_cast<std::size_t>(values.numel()))
                                                  : values.abs().max().item<double>();
  return order_ == SumOrder::fast ? std::isfinite(largest) : largest <= largest_exact;
}

void RoundSum::reduce() {
  const auto count = static_cast<std::size_t>(numbers_.numel());
  const torch::Tensor travelling = part(room_.values, count);
  travelling.copy_(numbers_);
  groups_.sum_across(buffer_of(part(0, room_.values + count), "the sum of a round"));
  numbers_.copy_(travelling);
}

torch::Tensor RoundSum::values(std::size_t first, std::size_t count) const {
  const torch::Tensor sums = part(first, count);
  return order_ == SumOrder::fast ? sums : sums.to(torch::kFloat64).div_(steps_per_unit).to(torch::kFloat32);
}

double RoundSum::number(std::size_t index) const {
  if (order_ == SumOrder::fast) return numbers_.const_data_ptr<float>()[index];
  return static_cast<double>(numbers_.const_data_ptr<std::int64_t>()[index]) / steps_per_unit;
}

torch::Tensor RoundSum::part(std::size_t first, std::size_t count) const {
  return elements_.narrow(0, static_cast<std::int64_t>(first), static_cast<std::int64_t>(count));
}

}  // namespace fedrun::fl
