#include <fedrun/core/error.h>
#include <fedrun/core/keyed_random.h>
#include <fedrun/data/image_crop.h>
#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace fedrun::data {
namespace {

constexpr std::uint64_t crop_stream = 0x63726f70;

struct Cut {
  std::size_t row = 0;
  std::size_t column = 0;
  bool is_mirrored = false;
};

Cut cut_of(std::size_t image, const ImageSet& set, const ImageCropOptions& options) {
  const std::size_t rows_left = set.rows - options.side;
  const std::size_t columns_left = set.columns - options.side;
  if (image >= options.random_count) return {.row = rows_left / 2, .column = columns_left / 2};
  KeyedRandom random(options.seed, crop_stream, image);
  const std::size_t row = random.below(rows_left + 1);
  const std::size_t column = random.below(columns_left + 1);
  return {.row = row, .column = column, .is_mirrored = random.below(2) == 1};
}

}  // namespace

ImageSet crop_images(const ImageSet& set, const ImageCropOptions& options) {
  if (options.side > std::min(set.rows, set.columns)) {
    throw UsageError(fmt::format("{}: squares of {} pixels cannot be cut out of images of {} × {}", set.name,
                                 options.side, set.rows, set.columns));
  }
  ImageSet result{.name = set.name,
                  .channels = set.channels,
                  .rows = options.side,
                  .columns = options.side,
                  .classes = set.classes,
                  .synthetic = set.synthetic,
                  .labels = set.labels};
  result.pixels.resize(result.count() * result.image_bytes());
  auto to = result.pixels.begin();
  for (std::size_t image = 0; image < set.count(); ++image) {
    const Cut cut = cut_of(image, set, options);
    for (std::size_t channel = 0; channel < set.channels; ++channel) {
      for (std::size_t row = 0; row < options.side; ++row) {
        const std::size_t line = (image * set.channels + channel) * set.rows + cut.row + row;
        const auto from = std::span(set.pixels).subspan(line * set.columns + cut.column, options.side);
        to =
            cut.is_mirrored ? std::reverse_copy(from.begin(), from.end(), to) : std::copy(from.begin(), from.end(), to);
      }
    }
  }
  return result;
}

}  // namespace fedrun::data
