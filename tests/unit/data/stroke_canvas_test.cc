// Checks the rasteriser on strokes whose ink can be computed by hand.
#include <fedrun/data/stroke_canvas.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fedrun::data {
namespace {

using testing::Each;
using testing::ElementsAreArray;

constexpr int half = subpixels / 2;

std::vector<int> draw(const Stroke& stroke, int side, int pen_radius) {
  StrokeCanvas canvas(side, pen_radius);
  canvas.draw(stroke);
  return canvas.ink(pen_radius);
}

TEST(StrokeCanvas, BlankSheetHasNoInk) { EXPECT_THAT(StrokeCanvas(5, subpixels).ink(subpixels), Each(0)); }

// Along the middle of row 2 with a pen of one pixel: full ink up to half a pixel, none beyond one and a half. One pixel
// away the fade is (1.5² - 1²) / (1.5² - 0.5²) = 0.625, and √2 away at the corners (2.25 - 2) / 2 = 0.125.
TEST(StrokeCanvas, StraightLine) {
  const Stroke line = {{1 * subpixels + half, 2 * subpixels + half}, {3 * subpixels + half, 2 * subpixels + half}};
  EXPECT_THAT(draw(line, 5, subpixels), ElementsAreArray({
                                            0,   0,   0,   0,   0,    //
                                            32,  160, 160, 160, 32,   //
                                            160, 256, 256, 256, 160,  //
                                            32,  160, 160, 160, 32,   //
                                            0,   0,   0,   0,   0,    //
                                        }));
}

TEST(StrokeCanvas, AStrokeOfNoLengthIsADot) {
  const Stroke dot = {{subpixels + half, subpixels + half}, {subpixels + half, subpixels + half}};
  EXPECT_THAT(draw(dot, 3, subpixels), ElementsAreArray({32, 160, 32, 160, 256, 160, 32, 160, 32}));
}

TEST(StrokeCanvas, CrossingStrokesAreNoDarkerThanOne) {
  StrokeCanvas canvas(5, subpixels);
  const int middle = 2 * subpixels + half;
  for (int repeat = 0; repeat < 3; ++repeat) {
    canvas.draw({{half, middle}, {4 * subpixels + half, middle}});
    canvas.draw({{middle, half}, {middle, 4 * subpixels + half}});
  }
  EXPECT_EQ(canvas.ink(subpixels)[2 * 5 + 2], 256);
  EXPECT_EQ(canvas.ink(subpixels)[2 * 5 + 0], 256);
  EXPECT_EQ(canvas.ink(subpixels)[1 * 5 + 0], 160);
}

TEST(StrokeCanvas, StrokesOutsideTheSheetAreClipped) {
  const Stroke outside = {{-9000, -9000}, {-8000, 20000}, {-9000, -9000}};
  EXPECT_THAT(draw(outside, 5, subpixels), Each(0));
  const Stroke through = {{-9000, 2 * subpixels + half}, {9000, 2 * subpixels + half}};
  EXPECT_EQ(draw(through, 5, subpixels)[2 * 5 + 2], 256);
}

// A circle through eight points has ink on all of its circumference, also where it closes, and none in its middle.
TEST(StrokeCanvas, ClosedCurveHasNoGap) {
  constexpr int m = 14 * subpixels, r = 8 * subpixels, d = 1448;  // d is r / √2
  const Stroke circle = {{m, m - r},     {m + d, m - d}, {m + r, m},     {m + d, m + d}, {m, m + r},
                         {m - d, m + d}, {m - r, m},     {m - d, m - d}, {m, m - r}};
  const std::vector<int> ink = draw(circle, 28, subpixels);
  for (const auto& [row, column] : {std::pair{6, 13}, {6, 14}, {13, 21}, {21, 13}, {13, 6}, {8, 8}, {8, 19}, {19, 8}}) {
    EXPECT_GT(ink[static_cast<size_t>(row * 28 + column)], 150) << row << ", " << column;
  }
  EXPECT_EQ(ink[14 * 28 + 14], 0);
}

}  // namespace
}  // namespace fedrun::data
