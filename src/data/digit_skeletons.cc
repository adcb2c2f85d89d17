#include <fedrun/data/digit_skeletons.h>

#include <array>
#include <cstddef>

namespace fedrun::data {
namespace {

using Ways = std::vector<Skeleton>;

Ways zero() {
  const Stroke oval = {{0, -78}, {36, -54}, {45, 0}, {36, 54}, {0, 78}, {-36, 54}, {-45, 0}, {-36, -54}, {0, -78}};
  const Stroke narrow = {{4, -78}, {30, -46}, {32, 6}, {18, 60}, {-6, 78}, {-28, 48}, {-32, -6}, {-20, -58}, {4, -78}};
  return {{oval}, {narrow}};
}

Ways one() {
  const Stroke stem = {{0, -78}, {0, 78}};
  const Stroke flag = {{-30, -46}, {0, -78}};
  const Stroke base = {{-28, 78}, {28, 78}};
  return {{stem}, {stem, flag}, {stem, flag, base}};
}

Ways two() {
  const Stroke bow = {{-42, -44}, {-28, -70}, {4, -78}, {36, -56}, {30, -14}, {-4, 30}, {-44, 76}};
  const Stroke base = {{-44, 76}, {44, 76}};
  const Stroke looped = {{-40, -50}, {-14, -78}, {26, -70}, {34, -36}, {10, 20}, {-22, 66},
                         {-42, 66},  {-36, 46},  {-8, 56},  {18, 74},  {46, 64}};
  return {{bow, base}, {looped}};
}

Ways three() {
  const Stroke upper_bow = {{-40, -58}, {-8, -78}, {32, -60}, {26, -22}, {-10, -6}};
  const Stroke lower_bow = {{-10, -6}, {32, 10}, {40, 44}, {8, 76}, {-42, 56}};
  const Stroke flat_top = {{-40, -76}, {38, -76}};
  const Stroke diagonal = {{38, -76}, {-6, -16}};
  const Stroke wide_bow = {{-6, -16}, {32, 2}, {42, 40}, {8, 76}, {-42, 58}};
  return {{upper_bow, lower_bow}, {flat_top, diagonal, wide_bow}};
}

Ways four() {
  const Stroke slope = {{18, -78}, {-46, 26}};
  const Stroke bar = {{-46, 26}, {46, 26}};
  const Stroke stem = {{18, -78}, {18, 78}};
  const Stroke cup = {{-32, -74}, {-40, -26}, {-30, 2}, {0, 6}, {36, -2}};
  const Stroke leaning_stem = {{34, -70}, {28, 4}, {20, 78}};
  return {{slope, bar, stem}, {cup, leaning_stem}};
}

Ways five() {
  const Stroke top = {{40, -76}, {-30, -76}};
  const Stroke back = {{-30, -76}, {-36, -10}};
  const Stroke belly = {{-36, -10}, {0, -26}, {38, 0}, {38, 48}, {2, 78}, {-42, 60}};
  const Stroke s_shape = {{38, -70}, {-4, -76}, {-34, -50}, {-18, -18}, {22, 4}, {36, 42}, {4, 76}, {-40, 62}};
  return {{top, back, belly}, {s_shape}};
}

Ways six() {
  const Stroke round = {{30, -74}, {-10, -54}, {-38, 4}, {-34, 56}, {0, 78}, {36, 54}, {32, 16}, {0, 0}, {-34, 30}};
  const Stroke leaning = {{10, -78}, {-22, -24}, {-40, 34}, {-18, 74}, {22, 74},
                          {40, 42},  {20, 12},   {-14, 16}, {-38, 44}};
  return {{round}, {leaning}};
}

Ways seven() {
  const Stroke top = {{-42, -74}, {42, -74}};
  const Stroke bent = {{42, -74}, {8, -4}, {-12, 78}};
  const Stroke straight = {{42, -74}, {-22, 78}};
  const Stroke bar = {{-22, 4}, {34, -2}};
  return {{top, bent}, {top, straight}, {top, bent, bar}};
}

Ways eight() {
  const Stroke one_pull = {{0, -6},   {-30, -30}, {-28, -64}, {0, -78}, {28, -64}, {30, -30}, {0, -6},
                           {-36, 26}, {-34, 62},  {0, 78},    {34, 62}, {36, 26},  {0, -6}};
  const Stroke upper_ring = {{0, -78}, {30, -60}, {28, -22}, {0, -6}, {-28, -22}, {-30, -60}, {0, -78}};
  const Stroke lower_ring = {{0, -6}, {36, 16}, {38, 56}, {0, 78}, {-38, 56}, {-36, 16}, {0, -6}};
  return {{one_pull}, {upper_ring, lower_ring}};
}

Ways nine() {
  const Stroke ring = {{36, -44}, {24, -72}, {-8, -76}, {-38, -48}, {-28, -12}, {8, -8}, {36, -44}};
  const Stroke straight_tail = {{36, -72}, {34, -10}, {28, 78}};
  const Stroke hooked_tail = {{36, -44}, {38, 20}, {14, 70}, {-32, 64}};
  return {{ring, straight_tail}, {ring, hooked_tail}};
}

}  // namespace

const Ways& skeletons_of(int digit) {
  static const std::array<Ways, 10> digits = {zero(), one(), two(),   three(), four(),
                                              five(), six(), seven(), eight(), nine()};
  return digits.at(static_cast<size_t>(digit));
}

}  // namespace fedrun::data
