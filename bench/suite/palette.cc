#include "palette.h"

#include <algorithm>
#include <array>
#include <utility>

namespace fedrun::bench::suite {

int color_of(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, int>, 24> colors = {{{"allreduce", 0},
                                                                        {"reduce_scatter", 1},
                                                                        {"allgather", 2},
                                                                        {"broadcast", 3},
                                                                        {"alltoall", 5},
                                                                        {"convnet", 0},
                                                                        {"mlp", 1},
                                                                        {"resnet18", 2},
                                                                        {"resnet50", 3},
                                                                        {"fedrun", 0},
                                                                        {"independent", 2},
                                                                        {"alone", 7},
                                                                        {"tight", 1},
                                                                        {"f32", 0},
                                                                        {"none", 0},
                                                                        {"bf16", 1},
                                                                        {"f16", 2},
                                                                        {"fp16", 2},
                                                                        {"forward", 0},
                                                                        {"backward", 2},
                                                                        {"exposed communication", 4},
                                                                        {"optimizer", 6},
                                                                        {"communication alone", 5},
                                                                        {"ideal", 7}}};
  const auto* found = std::ranges::find(colors, name, &std::pair<std::string_view, int>::first);
  return found == colors.end() ? 0 : found->second;
}

}  // namespace fedrun::bench::suite
