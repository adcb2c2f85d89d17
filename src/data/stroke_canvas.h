// Turns pen strokes into grey pixels with smooth edges, in whole numbers only.
#pragma once

#include <fedrun/data/digit_skeletons.h>

#include <cstdint>
#include <vector>

namespace fedrun::data {

// A subpixel is the unit of all positions here: 256 of them are a pixel.
inline constexpr int subpixels = 256;

// Remembers how far each pixel is from the nearest stroke, so that strokes that meet or cross leave no darker spots.
//
// Whole numbers, because floating point differs between machines: fused multiply-adds, the compiler's freedom to
// contract them, and the sines of different C libraries would each change a few pixels.
class StrokeCanvas {
 public:
  // Positions go from 0 to side * subpixels; a pen wider than the radius cannot be inked later.
  StrokeCanvas(int side, int largest_pen_radius);

  // Lays a smooth curve through the points.
  void draw(const Stroke& stroke);

  // How much ink each pixel has, from 0 to 256, row by row.
  std::vector<int> ink(int pen_radius) const;

 private:
  void draw_line(Point from, Point to);

  int side_;
  int reach_;
  std::vector<int> squared_distances_;
};

}  // namespace fedrun::data
