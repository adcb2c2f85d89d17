#include <fedrun/core/error.h>
#include <fedrun/data/idx.h>
#include <fedrun/data/mnist.h>
#include <fedrun/data/required_files.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fedrun::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t side = 28;
constexpr size_t classes = 10;

// A part is one of the four files of the set; what varies in its name is what follows.
struct Part {
  std::string_view stem;
  std::string_view type;
};

constexpr Part train_images = {"train-images", "idx3-ubyte"};
constexpr Part train_labels = {"train-labels", "idx1-ubyte"};
constexpr Part test_images = {"t10k-images", "idx3-ubyte"};
constexpr Part test_labels = {"t10k-labels", "idx1-ubyte"};

std::optional<fs::path> find(const fs::path& directory, const Part& part) {
  for (const std::string_view separator : {"-", "."}) {
    if (auto path = find_plain_or_gz(directory, fmt::format("{}{}{}", part.stem, separator, part.type))) return path;
  }
  return std::nullopt;
}

[[noreturn]] void fail_incomplete(const fs::path& directory) {
  std::vector<LookedFor> files;
  for (const Part& part : {train_images, train_labels, test_images, test_labels}) {
    files.push_back({fmt::format("{}-{}", part.stem, part.type), find(directory, part).has_value()});
  }
  fail_missing("MNIST", directory, files, fmt::format("To download them: scripts/get_mnist.sh {}", directory.string()));
}

void check_images(const IdxArray& images, const fs::path& path) {
  if (images.dimensions[1] == side && images.dimensions[2] == side) return;
  throw UsageError(fmt::format("{} holds images of {} × {} pixels, where MNIST has {} × {}", path.string(),
                               images.dimensions[1], images.dimensions[2], side, side));
}

void check_labels(const IdxArray& labels, const fs::path& path) {
  const auto bad =
      std::find_if(labels.values.begin(), labels.values.end(), [](auto label) { return label >= classes; });
  if (bad == labels.values.end()) return;
  throw UsageError(fmt::format("{} holds the label {} (of image {}), where MNIST has 0 to {}", path.string(), *bad,
                               bad - labels.values.begin(), classes - 1));
}

}  // namespace

ImageSet load_mnist(const fs::path& directory, MnistSplit split) {
  const bool train = split == MnistSplit::train;
  const auto images_path = find(directory, train ? train_images : test_images);
  const auto labels_path = find(directory, train ? train_labels : test_labels);
  if (!images_path || !labels_path) fail_incomplete(directory);

  IdxArray images = read_idx(*images_path, IdxContent::images);
  check_images(images, *images_path);
  IdxArray labels = read_idx(*labels_path, IdxContent::labels);
  check_labels(labels, *labels_path);
  if (images.dimensions[0] != labels.dimensions[0]) {
    throw UsageError(fmt::format("{} holds {} images, but {} holds {} labels: they are not of one set",
                                 images_path->string(), images.dimensions[0], labels_path->string(),
                                 labels.dimensions[0]));
  }
  return {.name = "MNIST",
          .rows = side,
          .columns = side,
          .classes = classes,
          .pixels = std::move(images.values),
          .labels = std::move(labels.values)};
}

}  // namespace fedrun::data
