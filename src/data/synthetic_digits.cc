#include <fedrun/core/keyed_random.h>
#include <fedrun/data/digit_skeletons.h>
#include <fedrun/data/stroke_canvas.h>
#include <fedrun/data/synthetic_digits.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <utility>

namespace fedrun::data {
namespace {

constexpr int side = 28;
constexpr int classes = 10;
constexpr int unit = 1024;  // 1.0 as a factor in whole-number arithmetic
constexpr int smallest_pen_radius = 160;
constexpr int largest_pen_radius = 420;

enum RandomStream : std::uint64_t { label_stream, image_stream };

// Bends the sheet: a 3 × 3 grid of random displacements over the skeleton's bounds, bilinear in between. Unlike jitter
// of single points it keeps strokes together that meet in a corner.
class Warp {
 public:
  explicit Warp(KeyedRandom& random) {
    for (auto& row : grid_) {
      for (Point& moved_by : row) moved_by = {random.between(-largest, largest), random.between(-largest, largest)};
    }
  }

  // From eighths of a pixel to subpixels.
  Point operator()(Point point) const {
    constexpr int scale = subpixels / 8;
    const Point bound = skeleton_bound;
    // Grid positions in 1/1024 of a cell, from 0 to 2 cells.
    const int gx = (point.x + bound.x) * unit / bound.x;
    const int gy = (point.y + bound.y) * unit / bound.y;
    return {point.x * scale + interpolate(gx, gy, &Point::x), point.y * scale + interpolate(gx, gy, &Point::y)};
  }

 private:
  static constexpr int largest = 300;

  int interpolate(int gx, int gy, int Point::*axis) const {
    const int column = gx < unit ? 0 : 1;
    const int row = gy < unit ? 0 : 1;
    const int right = gx - column * unit;
    const int below = gy - row * unit;
    const auto across = [&](int at_row) {
      const auto& cells = grid_[static_cast<size_t>(at_row)];
      const size_t left = static_cast<size_t>(column);
      return (cells[left].*axis * (unit - right) + cells[left + 1].*axis * right) / unit;
    };
    return (across(row) * (unit - below) + across(row + 1) * below) / unit;
  }

  std::array<std::array<Point, 3>, 3> grid_;
};

// How the sheet lies under the pen: scale, slant, rotation, shift.
class Pose {
 public:
  explicit Pose(KeyedRandom& random) {
    const int width = random.between(760, 1120);
    const int height = random.between(800, 1060);
    const int slant = random.between(-160, 280);
    // Sine and cosine from t = tan(angle / 2) need only whole numbers; 110 / 1024 is 12 degrees.
    const int t = random.between(-110, 110);
    const int denominator = unit * unit + t * t;
    const int cosine = (unit * unit - t * t) / (denominator / unit);
    const int sine = 2 * t * unit / (denominator / unit);

    const int slanted = slant * height / unit;  // x moves by this per unit of y
    xx_ = cosine * width / unit;
    xy_ = (cosine * slanted + sine * height) / -unit;
    yx_ = sine * width / unit;
    yy_ = (cosine * height - sine * slanted) / unit;
    shift_ = {random.between(-largest_shift, largest_shift), random.between(-largest_shift, largest_shift)};
  }

  Point operator()(Point point) const {
    constexpr int middle = side * subpixels / 2;
    return {(xx_ * point.x + xy_ * point.y) / unit + middle + shift_.x,
            (yx_ * point.x + yy_ * point.y) / unit + middle + shift_.y};
  }

 private:
  static constexpr int largest_shift = 7 * subpixels / 4;

  int xx_, xy_, yx_, yy_;
  Point shift_;
};

// Noise with the standard deviation `level`: the sum of four bytes has the mean 510 and the deviation 148.
int noise(KeyedRandom& random, int level) {
  const std::uint64_t bits = random.next();
  const int sum = static_cast<int>((bits & 255) + (bits >> 8 & 255) + (bits >> 16 & 255) + (bits >> 24 & 255));
  return (sum - 510) * level / 148;
}

void draw_digit(int digit, KeyedRandom random, std::span<std::uint8_t> image) {
  const auto& ways = skeletons_of(digit);
  const Skeleton& skeleton = ways[static_cast<size_t>(random.between(0, static_cast<int>(ways.size()) - 1))];
  const Warp warp(random);
  const Pose pose(random);

  StrokeCanvas canvas(side, largest_pen_radius);
  for (Stroke stroke : skeleton) {
    for (Point& point : stroke) point = pose(warp(point));
    canvas.draw(stroke);
  }
  const std::vector<int> ink = canvas.ink(random.between(smallest_pen_radius, largest_pen_radius));
  const int darkness = random.between(160, 255);
  const int noise_level = random.between(4, 24);
  for (size_t i = 0; i < image.size(); ++i) {
    image[i] = static_cast<std::uint8_t>(std::clamp(ink[i] * darkness / 256 + noise(random, noise_level), 0, 255));
  }
}

// The digits in the order of one run of ten images.
std::array<std::uint8_t, classes> shuffled_digits(std::uint64_t seed, size_t run) {
  KeyedRandom random(seed, label_stream, run);
  std::array<std::uint8_t, classes> digits{};
  std::iota(digits.begin(), digits.end(), std::uint8_t{0});
  for (int last = classes - 1; last > 0; --last) {
    std::swap(digits[static_cast<size_t>(last)], digits[static_cast<size_t>(random.between(0, last))]);
  }
  return digits;
}

}  // namespace

ImageSet synthetic_digits(SyntheticDigitsOptions options) {
  ImageSet set{.name = "synthetic digits", .rows = side, .columns = side, .classes = classes, .synthetic = true};
  set.labels.resize(options.count);
  set.pixels.resize(options.count * set.image_bytes());
  for (size_t i = 0; i < options.count; ++i) {
    set.labels[i] = shuffled_digits(options.seed, i / classes)[i % classes];
    draw_digit(set.labels[i], KeyedRandom(options.seed, image_stream, i),
               std::span(set.pixels).subspan(i * set.image_bytes(), set.image_bytes()));
  }
  return set;
}

}  // namespace fedrun::data
