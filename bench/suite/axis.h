// Where values lie along an axis of a plot, and which of them are named there.
#pragma once

#include <string>
#include <vector>

namespace fedrun::bench::suite {

enum class Scale { linear, log };
enum class Unit { plain, bytes };

struct Tick {
  double value = 0;
  std::string label{};
};

// As short as can be: 0.02, 7.5, 1200, 64k, or 64 KiB.
std::string short_number(double value, Unit unit = Unit::plain);

class Axis {
 public:
  // Around the values, which are greater than 0 on a log axis: from 0 to a round number on a linear one; on a log axis
  // between round numbers, or between the values themselves where they are bytes.
  Axis(Scale scale, Unit unit, const std::vector<double>& values);

  // The same with a tick at each of the values and nowhere else.
  static Axis with_ticks_at(Scale scale, std::vector<double> values);

  const std::vector<Tick>& ticks() const { return ticks_; }
  double position(double value) const;  // 0 at the lower end, 1 at the upper

 private:
  Axis() = default;
  void fit_linear(double largest);
  void fit_log(double smallest, double largest);
  void fit_bytes(double smallest, double largest);

  Scale scale_ = Scale::linear;
  double low_ = 0;
  double high_ = 1;
  std::vector<Tick> ticks_;
};

}  // namespace fedrun::bench::suite
