#include "plot.h"

#include <fmt/format.h>

#include <algorithm>

#include "plot_frame.h"

namespace fedrun::bench::suite {
namespace {

constexpr double wide = 640;
constexpr double narrow = 330;
constexpr double height = 330;

template <typename Some>
std::vector<PlotFrame::Legend> legend_of(const std::vector<Some>& series) {
  std::vector<PlotFrame::Legend> legend;
  for (const Some& one : series) {
    bool is_dashed = false;
    if constexpr (requires { one.is_ideal; }) is_dashed = one.is_ideal;
    legend.push_back({one.name, one.color % plot_colors, is_dashed});
  }
  return legend;
}

double largest_bar(const BarPlot& plot) {
  double largest = 0;
  for (std::size_t category = 0; category < plot.categories.size(); ++category) {
    double stack = 0;
    for (const BarSeries& series : plot.series) {
      const double value = series.values.at(category).value_or(0);
      stack = plot.is_stacked ? stack + value : std::max(stack, value);
    }
    largest = std::max(largest, stack);
  }
  return largest;
}

struct Bar {
  double left;
  double width;
  double low;  // positions on the axis
  double high;
  int color;
};

std::string shape_of(const Bar& bar, const PlotFrame& frame, const std::string& tip) {
  return fmt::format(
      R"(<rect class="f{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>)",
      bar.color % plot_colors, bar.left, frame.y(bar.high), bar.width,
      std::max(frame.y(bar.low) - frame.y(bar.high), 0.5), escape(tip));
}

std::string value_above(double center, double y, double value) {
  return fmt::format(R"(<text class="value" x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>)", center, y - 4,
                     short_number(value));
}

}  // namespace

std::string escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string to_svg(const LinePlot& plot) {
  PlotFrame frame(wide, height, legend_of(plot.series));
  frame.draw_x_axis(plot.x, plot.x_label);
  frame.draw_y_axis(plot.y, plot.y_label);
  for (const Series& series : plot.series) {
    std::string line;
    std::string dots;
    for (const Point& point : series.points) {
      const double x = frame.x(plot.x.position(point.x));
      const double y = frame.y(plot.y.position(point.y));
      line += fmt::format("{}{:.1f} {:.1f}", line.empty() ? "M" : "L", x, y);
      if (series.is_ideal) continue;
      dots += fmt::format(
          R"(<circle class="f{}" cx="{:.1f}" cy="{:.1f}" r="3.5"><title>{}</title></circle>)",
          series.color % plot_colors, x, y,
          escape(fmt::format("{}: {} at {}", series.name, short_number(point.y), short_number(point.x, plot.x_unit))));
    }
    const std::string style = series.is_ideal ? "ideal" : fmt::format("line s{}", series.color % plot_colors);
    frame.draw(fmt::format(R"(<path class="{}" d="{}"/>)", style, line) + dots);
  }
  return frame.svg(fmt::format("{} by {}", plot.y_label, plot.x_label));
}

std::string to_svg(const BarPlot& plot) {
  PlotFrame frame(plot.is_small ? narrow : wide, plot.is_small ? 270 : height, legend_of(plot.series));
  // Room for the values above the bars; stacks have none.
  const Axis axis(Scale::linear, Unit::plain, {largest_bar(plot) * (plot.is_stacked ? 1 : 1.08)});
  frame.draw_y_axis(axis, plot.y_label);
  const double room = (frame.right() - frame.left()) / static_cast<double>(plot.categories.size());
  const double group_width = std::min(0.72 * room, plot.is_small ? 90.0 : 150.0);
  for (std::size_t category = 0; category < plot.categories.size(); ++category) {
    const double center = frame.left() + (static_cast<double>(category) + 0.5) * room;
    const auto bars = static_cast<double>(std::ranges::count_if(
        plot.series, [&](const BarSeries& series) { return series.values[category].has_value(); }));
    const double width = plot.is_stacked ? std::min(group_width, 70.0) : group_width / std::max(bars, 1.0);
    double next = plot.is_stacked ? center - width / 2 : center - group_width / 2;
    double stack = 0;
    for (const BarSeries& series : plot.series) {
      const auto value = series.values[category];
      if (!value) continue;
      const double low = plot.is_stacked ? stack : 0;
      const std::string tip = fmt::format("{}, {}: {}", plot.categories[category], series.name, short_number(*value));
      const double gap = plot.is_stacked ? 0 : 1.5;
      const int color = series.colors.empty() ? series.color : series.colors[category];
      frame.draw(
          shape_of({next + gap, width - 2 * gap, axis.position(low), axis.position(low + *value), color}, frame, tip));
      if (plot.is_stacked) {
        stack += *value;
      } else {
        frame.draw(value_above(next + width / 2, frame.y(axis.position(*value)), *value));
        next += width;
      }
    }
    frame.draw_category(center, plot.categories[category]);
  }
  return frame.svg(plot.y_label);
}

}  // namespace fedrun::bench::suite
