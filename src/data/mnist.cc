#include <fedrun/core/error.h>
#include <fedrun/data/idx.h>
#include <fedrun/data/mnist.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

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
    for (const std::string_view ending : {"", ".gz"}) {
      fs::path candidate = directory / fmt::format("{}{}{}{}", part.stem, separator, part.type, ending);
      std::error_code ignored;
      if (fs::exists(candidate, ignored)) return candidate;
    }
  }
  return std::nullopt;
}

// Shows all four files, so that one failed run is enough to learn everything that is missing.
[[noreturn]] void fail_missing(const fs::path& directory) {
  std::error_code ignored;
  const bool is_directory = fs::is_directory(directory, ignored);
  std::string message = is_directory ? fmt::format("MNIST is not complete in {}", directory.string())
                                     : fmt::format("there is no MNIST in {}: no such directory", directory.string());
  message += "; looked for, plain or with .gz:";
  for (const Part& part : {train_images, train_labels, test_images, test_labels}) {
    message += fmt::format("\n  {}-{}: {}", part.stem, part.type, find(directory, part) ? "found" : "missing");
  }
  message += fmt::format("\nTo download them: scripts/get_mnist.sh {}", directory.string());
  throw UsageError(message);
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
  if (!images_path || !labels_path) fail_missing(directory);

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
