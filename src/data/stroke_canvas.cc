#include <fedrun/data/stroke_canvas.h>

#include <algorithm>
#include <limits>

namespace fedrun::data {
namespace {

// Ink fades out over one pixel across the edge of the pen.
constexpr int half_fade = subpixels / 2;
constexpr int lines_per_span = 4;

// The Catmull–Rom curve from b to c at k / lines_per_span: it passes through both and leaves each in the direction from
// its predecessor to its successor. The factors are the usual ones, multiplied by 2 * 4^3 to stay whole.
int curve(int a, int b, int c, int d, int k) {
  const int scaled =
      128 * b + 16 * k * (c - a) + 4 * k * k * (2 * a - 5 * b + 4 * c - d) + k * k * k * (3 * (b - c) + d - a);
  return scaled / 128;
}

Point curve(Point a, Point b, Point c, Point d, int k) {
  return {curve(a.x, b.x, c.x, d.x, k), curve(a.y, b.y, c.y, d.y, k)};
}

int squared_distance(Point pixel, Point from, Point to) {
  const Point line = {to.x - from.x, to.y - from.y};
  const Point offset = {pixel.x - from.x, pixel.y - from.y};
  const int squared_length = line.x * line.x + line.y * line.y;
  const int along = std::clamp(offset.x * line.x + offset.y * line.y, 0, squared_length);
  // A line of no length is a dot.
  const int part = squared_length == 0 ? 0 : static_cast<int>(std::int64_t{along} * 1024 / squared_length);
  const Point gap = {offset.x - line.x * part / 1024, offset.y - line.y * part / 1024};
  return gap.x * gap.x + gap.y * gap.y;
}

}  // namespace

StrokeCanvas::StrokeCanvas(int side, int largest_pen_radius)
    : side_(side),
      reach_(largest_pen_radius + half_fade),
      squared_distances_(static_cast<size_t>(side) * static_cast<size_t>(side), std::numeric_limits<int>::max()) {}

void StrokeCanvas::draw(const Stroke& stroke) {
  const bool closed = stroke.front() == stroke.back();
  const size_t last = stroke.size() - 1;
  Point pen = stroke.front();
  for (size_t i = 0; i < last; ++i) {
    const Point before = i > 0 ? stroke[i - 1] : stroke[closed ? last - 1 : 0];
    const Point after = i + 1 < last ? stroke[i + 2] : stroke[closed ? 1 : last];
    for (int k = 1; k <= lines_per_span; ++k) {
      const Point next = curve(before, stroke[i], stroke[i + 1], after, k);
      draw_line(pen, next);
      pen = next;
    }
  }
}

// Only pixels that the widest pen can touch are looked at, which is what makes drawing fast.
void StrokeCanvas::draw_line(Point from, Point to) {
  const auto first = [&](int a, int b) { return std::max(0, (std::min(a, b) - reach_) / subpixels); };
  const auto last = [&](int a, int b) { return std::min(side_ - 1, (std::max(a, b) + reach_) / subpixels); };
  for (int row = first(from.y, to.y); row <= last(from.y, to.y); ++row) {
    for (int column = first(from.x, to.x); column <= last(from.x, to.x); ++column) {
      const Point centre = {column * subpixels + subpixels / 2, row * subpixels + subpixels / 2};
      int& nearest = squared_distances_[static_cast<size_t>(row * side_ + column)];
      nearest = std::min(nearest, squared_distance(centre, from, to));
    }
  }
}

// The fade is linear in the squared distance: it needs no square root, and the eye does not tell.
std::vector<int> StrokeCanvas::ink(int pen_radius) const {
  const int inner = std::max(0, pen_radius - half_fade);
  const int outer = pen_radius + half_fade;
  const int squared_outer = outer * outer;
  std::vector<int> ink(squared_distances_.size());
  for (size_t i = 0; i < ink.size(); ++i) {
    const int within = std::clamp(squared_outer - squared_distances_[i], 0, squared_outer - inner * inner);
    ink[i] = within * 256 / (squared_outer - inner * inner);
  }
  return ink;
}

}  // namespace fedrun::data
