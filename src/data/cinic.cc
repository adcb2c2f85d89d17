#include <fedrun/core/error.h>
#include <fedrun/data/cinic.h>
#include <fedrun/data/png_image.h>
#include <fedrun/data/required_files.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace fedrun::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t side = 32;
constexpr std::array<std::string_view, 10> class_names = {"airplane", "automobile", "bird",  "cat",  "deer",
                                                          "dog",      "frog",       "horse", "ship", "truck"};

std::string_view folder_of(CinicSplit split) {
  switch (split) {
    case CinicSplit::train:
      return "train";
    case CinicSplit::valid:
      return "valid";
    case CinicSplit::test:
      break;
  }
  return "test";
}

bool is_png(const fs::directory_entry& entry) { return entry.path().extension() == ".png"; }

bool has_images(const fs::path& folder) {
  std::error_code ignored;
  const fs::directory_iterator entries(folder, ignored);
  return std::any_of(begin(entries), end(entries), is_png);
}

void require_images(const fs::path& directory, const std::vector<CinicSplit>& splits) {
  std::vector<LookedFor> folders;
  for (const CinicSplit split : splits) {
    for (const std::string_view name : class_names) {
      const std::string folder = fmt::format("{}/{}", folder_of(split), name);
      folders.push_back({folder + "/*.png", has_images(directory / folder)});
    }
  }
  if (std::all_of(folders.begin(), folders.end(), [](const LookedFor& folder) { return folder.is_found; })) return;
  fail_missing("CINIC-10", directory, folders,
               "They are in CINIC-10.tar.gz, from https://datashare.ed.ac.uk/handle/10283/3192", Packing::plain);
}

std::vector<fs::path> images_in(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (is_png(entry)) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());  // the order of a directory is anybody's guess, and differs between hosts
  return paths;
}

}  // namespace

ImageSet load_cinic10(const fs::path& directory, CinicSplit split) {
  require_images(directory,
                 split == CinicSplit::valid ? std::vector{split} : std::vector{CinicSplit::train, CinicSplit::test});
  ImageSet set{.name = "CINIC-10", .channels = 3, .rows = side, .columns = side, .classes = class_names.size()};
  for (std::size_t label = 0; label < class_names.size(); ++label) {
    const std::vector<fs::path> paths = images_in(directory / folder_of(split) / class_names[label]);
    // Classes are of equal size, so that the first tells the whole: a vector that grows would need twice the memory.
    if (label == 0) set.pixels.reserve(class_names.size() * paths.size() * set.image_bytes());
    for (const fs::path& path : paths) append_png(path, {.rows = side, .columns = side}, set.pixels);
    set.labels.insert(set.labels.end(), paths.size(), static_cast<std::uint8_t>(label));
  }
  return set;
}

}  // namespace fedrun::data
