#include <fedrun/core/error.h>
#include <fedrun/data/cifar.h>
#include <fedrun/data/gz_file.h>
#include <fedrun/data/required_files.h>
#include <fmt/format.h>

#include <array>
#include <span>
#include <string>
#include <vector>

namespace fedrun::data {
namespace {

constexpr size_t image_bytes = 3 * 32 * 32;

struct Form {
  const char* name;
  size_t classes;
  size_t label_bytes;  // the last of them is the label
  std::vector<std::string> train_files;
  std::vector<std::string> test_files;
  const char* remedy;
};

Form form_of(CifarKind kind) {
  if (kind == CifarKind::cifar10) {
    return {"CIFAR-10",
            10,
            1,
            {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
            {"test_batch.bin"},
            "They are in cifar-10-binary.tar.gz, from https://www.cs.toronto.edu/~kriz/cifar.html"};
  }
  return {"CIFAR-100",
          100,
          2,
          {"train.bin"},
          {"test.bin"},
          "They are in cifar-100-binary.tar.gz, from https://www.cs.toronto.edu/~kriz/cifar.html"};
}

}  // namespace

ImageSet empty_cifar_set(CifarKind kind) {
  const Form form = form_of(kind);
  return {.name = form.name, .channels = 3, .rows = 32, .columns = 32, .classes = form.classes};
}

void append_cifar_file(const std::filesystem::path& path, CifarKind kind, ImageSet& set) {
  const Form form = form_of(kind);
  GzFile file(path);
  std::vector<std::uint8_t> record(form.label_bytes + image_bytes);
  for (size_t count = 0;; ++count) {
    const size_t got = file.read(record);
    if (got == 0 && count > 0 && !file.cut_off()) return;
    if (got < record.size()) {
      throw UsageError(
          fmt::format("{} ends in the middle of image {}, after {} of its {} bytes: get the file again, and "
                      "check that it is {}",
                      path.string(), count, got, record.size(), form.name));
    }
    const std::uint8_t label = record[form.label_bytes - 1];
    if (label >= form.classes) {
      throw UsageError(fmt::format("{} holds the label {} (of image {}), where {} has 0 to {}", path.string(), label,
                                   count, form.name, form.classes - 1));
    }
    set.labels.push_back(label);
    set.pixels.insert(set.pixels.end(), record.end() - image_bytes, record.end());
  }
}

ImageSet load_cifar(const std::filesystem::path& directory, CifarKind kind, CifarSplit split) {
  const Form form = form_of(kind);
  std::vector<std::string> names = form.train_files;
  names.insert(names.end(), form.test_files.begin(), form.test_files.end());
  const std::vector<std::filesystem::path> paths = require_files(form.name, directory, names, form.remedy);

  const std::span all(paths);
  const size_t train_count = form.train_files.size();
  ImageSet set = empty_cifar_set(kind);
  for (const auto& path : split == CifarSplit::train ? all.first(train_count) : all.subspan(train_count)) {
    append_cifar_file(path, kind, set);
  }
  return set;
}

}  // namespace fedrun::data
