// What all plots share: the room inside the axes, the grid, the labels and the legend.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "axis.h"

namespace fedrun::bench::suite {

class PlotFrame {
 public:
  struct Legend {
    std::string name;
    int color;
    bool is_dashed;
  };

  PlotFrame(double width, double height, const std::vector<Legend>& legend);

  double left() const { return left_; }
  double right() const { return width_ - 16; }
  double top() const { return top_; }
  double bottom() const { return height_ - 50; }
  double x(double position) const { return left() + position * (right() - left()); }
  double y(double position) const { return bottom() - position * (bottom() - top()); }

  void draw_y_axis(const Axis& axis, const std::string& label);
  void draw_x_axis(const Axis& axis, const std::string& label);
  void draw_category(double center, const std::string& name);
  void draw(const std::string& shapes) { shapes_ += shapes; }

  // The whole picture; `description` is read to people who cannot see it.
  std::string svg(const std::string& description) const;

 private:
  void draw_legend(const std::vector<Legend>& legend);

  double width_;
  double height_;
  double left_ = 64;
  double top_ = 10;
  std::string shapes_;
};

}  // namespace fedrun::bench::suite
