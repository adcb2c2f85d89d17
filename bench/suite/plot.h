// Plots as inline SVG: no script, no network, and colours that the page chooses for light and for dark.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "axis.h"

namespace fedrun::bench::suite {

// Text in which XML and HTML find no tags.
std::string escape(std::string_view text);

constexpr int plot_colors = 8;  // of the classes c0 to c7

struct Point {
  double x = 0;
  double y = 0;
};

struct Series {
  std::string name{};
  int color = 0;
  std::vector<Point> points{};
  bool is_ideal = false;  // a dashed line without points: what could be at best
};

struct LinePlot {
  std::string x_label{};
  std::string y_label{};
  Axis x = Axis(Scale::linear, Unit::plain, {1});
  Axis y = Axis(Scale::linear, Unit::plain, {1});
  Unit x_unit = Unit::plain;
  std::vector<Series> series{};
};
std::string to_svg(const LinePlot& plot);

struct BarSeries {
  std::string name{};
  int color = 0;
  std::vector<std::optional<double>> values{};  // by category
  std::vector<int> colors{};                    // by category, instead of one for all
};

struct BarPlot {
  std::string y_label{};
  std::vector<std::string> categories{};
  std::vector<BarSeries> series{};
  bool is_stacked = false;
  bool is_small = false;  // half as wide
};
std::string to_svg(const BarPlot& plot);

}  // namespace fedrun::bench::suite
