#include "axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace fedrun::bench::suite {
namespace {

constexpr int most_ticks = 8;

// 1, 2 or 5 times a power of ten: what people divide axes by.
double round_step(double at_least) {
  const double power = std::pow(10, std::floor(std::log10(at_least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= at_least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::string with_suffix(double value, double base, const std::array<const char*, 5>& suffixes) {
  std::size_t index = 0;
  while (value >= base && index + 1 < suffixes.size()) {
    value /= base;
    ++index;
  }
  return fmt::format("{:.4g}{}", value, suffixes[index]);
}

}  // namespace

std::string short_number(double value, Unit unit) {
  if (unit == Unit::bytes) return with_suffix(value, 1024, {" B", " KiB", " MiB", " GiB", " TiB"});
  if (value >= 1e4) return with_suffix(value, 1000, {"", "k", "M", "G", "T"});
  if (value == 0) return "0";
  const int digits = std::clamp(2 - static_cast<int>(std::floor(std::log10(std::abs(value)))), 0, 9);
  std::string text = fmt::format("{:.{}f}", value, digits);
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

Axis::Axis(Scale scale, Unit unit, const std::vector<double>& values) : scale_(scale) {
  const auto [smallest, largest] = std::ranges::minmax(values);
  if (scale == Scale::linear) {
    fit_linear(largest);
  } else if (unit == Unit::bytes) {
    fit_bytes(smallest, largest);
  } else {
    fit_log(smallest, largest);
  }
}

Axis Axis::with_ticks_at(Scale scale, std::vector<double> values) {
  std::ranges::sort(values);
  values.erase(std::ranges::unique(values).begin(), values.end());
  Axis axis;
  axis.scale_ = scale;
  // A little room at both ends, so that no point lies on the frame.
  constexpr double room = 1.15;
  axis.low_ = scale == Scale::log ? values.front() / room : 0;
  axis.high_ = values.back() * room;
  for (const double value : values) axis.ticks_.push_back({value, short_number(value)});
  return axis;
}

void Axis::fit_linear(double largest) {
  if (!(largest > 0)) largest = 1;
  const double step = round_step(largest / 5);
  high_ = std::ceil(largest / step - 1e-9) * step;
  for (int i = 0; i * step <= high_ * (1 + 1e-9); ++i) ticks_.push_back({i * step, short_number(i * step)});
}

void Axis::fit_log(double smallest, double largest) {
  const double first = std::floor(std::log10(smallest));
  const double last = std::ceil(std::log10(largest));
  const int decades = static_cast<int>(last - first);
  std::vector<double> marks;
  for (double exponent = first; exponent <= last; ++exponent) {
    for (const double factor : {1.0, 2.0, 5.0}) marks.push_back(factor * std::pow(10, exponent));
  }
  const auto low = std::ranges::upper_bound(marks, smallest * (1 + 1e-9)) - 1;
  const auto high = std::ranges::lower_bound(marks, largest * (1 - 1e-9));
  low_ = *low;
  high_ = high == low ? *(low + 1) : *high;
  const int every = std::max(1, (decades + most_ticks - 1) / most_ticks);
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const bool is_power = i % 3 == 0;
    if (marks[i] < low_ * (1 - 1e-9) || marks[i] > high_ * (1 + 1e-9)) continue;
    // The numbers between the powers of ten are named only where there are few of those.
    if (decades > 2 && (!is_power || static_cast<int>(i / 3) % every != 0)) continue;
    ticks_.push_back({marks[i], short_number(marks[i])});
  }
}

void Axis::fit_bytes(double smallest, double largest) {
  low_ = smallest;
  high_ = std::max(largest, 2 * smallest);
  const int doublings = static_cast<int>(std::lround(std::log2(high_ / low_)));
  const int every = std::max(1, (doublings + most_ticks - 1) / most_ticks);
  // From a power of two on, so that no label is crooked where a size is not one.
  double value = std::exp2(std::ceil(std::log2(low_) - 1e-9));
  for (; value <= high_ * (1 + 1e-9); value *= std::exp2(every)) {
    ticks_.push_back({value, short_number(value, Unit::bytes)});
  }
}

double Axis::position(double value) const {
  if (scale_ == Scale::linear) return (value - low_) / (high_ - low_);
  return std::log(value / low_) / std::log(high_ / low_);
}

}  // namespace fedrun::bench::suite
