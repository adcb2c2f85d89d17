// The ten digits as pen strokes, each in the ways that people write it.
#pragma once

#include <vector>

namespace fedrun::data {

struct Point {
  int x = 0;
  int y = 0;
  bool operator==(const Point&) const = default;
};

// A stroke is a smooth curve through its points; one that ends where it began is closed. A corner ends a stroke.
using Stroke = std::vector<Point>;
// A skeleton is one way to write a digit, in eighths of a pixel around the middle of the image; y grows downwards.
using Skeleton = std::vector<Stroke>;

// All points lie within these bounds.
inline constexpr Point skeleton_bound = {48, 80};

const std::vector<Skeleton>& skeletons_of(int digit);

}  // namespace fedrun::data
