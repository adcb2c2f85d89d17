#include "plot_frame.h"

#include <fmt/format.h>

#include "plot.h"

namespace fedrun::bench::suite {
namespace {

constexpr double letter_width = 6.9;  // of the font at 12 px, on the wide side
constexpr double legend_height = 20;

}  // namespace

PlotFrame::PlotFrame(double width, double height, const std::vector<Legend>& legend) : width_(width), height_(height) {
  draw_legend(legend);
}

void PlotFrame::draw_legend(const std::vector<Legend>& legend) {
  if (legend.size() < 2) return;  // one series is named by the title
  double x = left_;
  double y = 14;
  for (const Legend& entry : legend) {
    const double width = 24 + letter_width * static_cast<double>(entry.name.size()) + 14;
    if (x > left_ && x + width > width_) {
      x = left_;
      y += legend_height;
    }
    shapes_ += entry.is_dashed
                   ? fmt::format(R"(<path class="ideal" d="M{:.0f} {:.0f}h16"/>)", x, y - 4)
                   : fmt::format(R"(<rect class="f{}" x="{:.0f}" y="{:.0f}" width="16" height="10" rx="2"/>)",
                                 entry.color, x, y - 9);
    shapes_ += fmt::format(R"(<text x="{:.0f}" y="{:.0f}">{}</text>)", x + 22, y, escape(entry.name));
    x += width;
  }
  top_ = y + 14;
}

void PlotFrame::draw_y_axis(const Axis& axis, const std::string& label) {
  for (const Tick& tick : axis.ticks()) {
    const double at = y(axis.position(tick.value));
    shapes_ += fmt::format(R"(<path class="grid" d="M{:.0f} {:.1f}H{:.0f}"/>)", left(), at, right());
    shapes_ += fmt::format(R"(<text class="tick" x="{:.0f}" y="{:.1f}" text-anchor="end">{}</text>)", left() - 7,
                           at + 4, escape(tick.label));
  }
  const double middle = (top() + bottom()) / 2;
  shapes_ += fmt::format(
      R"svg(<text class="label" text-anchor="middle" transform="translate(14 {:.0f}) rotate(-90)">{}</text>)svg",
      middle, escape(label));
}

void PlotFrame::draw_x_axis(const Axis& axis, const std::string& label) {
  for (const Tick& tick : axis.ticks()) {
    const double at = x(axis.position(tick.value));
    shapes_ += fmt::format(R"(<path class="grid" d="M{:.1f} {:.0f}V{:.0f}"/>)", at, top(), bottom());
    shapes_ += fmt::format(R"(<text class="tick" x="{:.1f}" y="{:.0f}" text-anchor="middle">{}</text>)", at,
                           bottom() + 17, escape(tick.label));
  }
  shapes_ += fmt::format(R"(<text class="label" x="{:.0f}" y="{:.0f}" text-anchor="middle">{}</text>)",
                         (left() + right()) / 2, height_ - 10, escape(label));
}

void PlotFrame::draw_category(double center, const std::string& name) {
  shapes_ += fmt::format(R"(<text class="tick" x="{:.1f}" y="{:.0f}" text-anchor="middle">{}</text>)", center,
                         bottom() + 18, escape(name));
}

std::string PlotFrame::svg(const std::string& description) const {
  return fmt::format(
      R"(<svg viewBox="0 0 {0:.0f} {1:.0f}" role="img" aria-label="{2}">{3}<path class="axis" d="M{4:.0f} {5:.0f}V{6:.0f}H{7:.0f}"/></svg>)",
      width_, height_, escape(description), shapes_, left(), top(), bottom(), right());
}

}  // namespace fedrun::bench::suite
