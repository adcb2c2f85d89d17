#include <fedrun/data/hdf5_file.h>
#include <fedrun/data/required_files.h>
#include <fedrun/data/tff.h>
#include <fedrun/data/users.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace fedrun::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* all_clients = "examples";

struct Form {
  ImageSet empty;
  const char* stem;    // of the files' names
  const char* images;  // the name of a client's array
  std::vector<std::size_t> image_shape;

  std::vector<std::string> files() const { return {fmt::format("{}_train.h5", stem), fmt::format("{}_test.h5", stem)}; }
  std::string source() const {
    return fmt::format("{0}.tar.bz2, from https://storage.googleapis.com/tff-datasets-public/{0}.tar.bz2", stem);
  }
};

Form form_of(TffKind kind) {
  if (kind == TffKind::fed_cifar100) {
    return {{.name = "fed_cifar100", .channels = 3, .rows = 32, .columns = 32, .classes = 100},
            "fed_cifar100",
            "image",
            {32, 32, 3}};
  }
  return {
      {.name = "FEMNIST", .channels = 1, .rows = 28, .columns = 28, .classes = 62}, "fed_emnist", "pixels", {28, 28}};
}

std::string place_of(const std::string& client, const char* array) {
  return fmt::format("{}/{}/{}", all_clients, client, array);
}

// One of the two files on its way into the set. Labels come first: when all are there, so is the number of images, and
// the pixels are allocated once.
class SplitReader {
 public:
  SplitReader(const fs::path& path, const Form& form, ImageSet& set)
      : form_(form), set_(set), file_(path, fmt::format("Get it again: it is in {}", form.source())) {}

  void read_labels() {
    clients_ = file_.names_in(all_clients);
    if (clients_.empty()) file_.fail(all_clients, "there are no clients");
    for (const std::string& client : clients_) {
      const std::string place = place_of(client, "label");
      std::vector<SampleIndex>& samples = samples_[client];
      for (const std::int64_t label : file_.integers(place, {})) {
        if (label < 0 || label >= static_cast<std::int64_t>(set_.classes)) {
          file_.fail(place, fmt::format("the label {}, where {} has 0 to {}", label, set_.name, set_.classes - 1));
        }
        samples.push_back(static_cast<SampleIndex>(set_.labels.size()));
        set_.labels.push_back(static_cast<std::uint8_t>(label));
      }
    }
  }

  void read_images() {
    for (const std::string& client : clients_) {
      const std::string place = place_of(client, form_.images);
      const std::size_t before = set_.pixels.size();
      if (set_.channels == 1) {
        append_numbers(place);
      } else {
        append_colours(place);
      }
      const std::size_t images = (set_.pixels.size() - before) / set_.image_bytes();
      const std::size_t labels = samples_[client].size();
      if (images != labels) file_.fail(place, fmt::format("{} images, but the client has {} labels", images, labels));
    }
  }

  const SamplesOfUser& samples() const { return samples_; }

 private:
  void append_numbers(const std::string& place) {
    for (const float value : file_.floats(place, form_.image_shape)) {
      if (!(value >= 0 && value <= 1)) file_.fail(place, fmt::format("the pixel {}, where 0 to 1 was expected", value));
      set_.pixels.push_back(static_cast<std::uint8_t>(std::lround(255 * value)));
    }
  }

  // The file has the colours of a pixel together, an ImageSet the pixels of a colour.
  void append_colours(const std::string& place) {
    const std::vector<std::uint8_t> values = file_.bytes(place, form_.image_shape);
    for (std::size_t image = 0; image < values.size(); image += set_.image_bytes()) {
      for (std::size_t channel = 0; channel < set_.channels; ++channel) {
        for (std::size_t i = channel; i < set_.image_bytes(); i += set_.channels) {
          set_.pixels.push_back(values[image + i]);
        }
      }
    }
  }

  const Form& form_;
  ImageSet& set_;
  Hdf5File file_;
  std::vector<std::string> clients_;
  SamplesOfUser samples_;
};

}  // namespace

TffSet load_tff(const fs::path& directory, TffKind kind) {
  const Form form = form_of(kind);
  const std::vector<fs::path> paths = require_files(form.empty.name, directory, form.files(),
                                                    fmt::format("They are in {}", form.source()), Packing::plain);
  TffSet result{.images = form.empty, .clients = {}};
  SplitReader train(paths[0], form, result.images);
  SplitReader test(paths[1], form, result.images);
  train.read_labels();
  result.train_count = result.images.count();
  test.read_labels();
  result.images.pixels.reserve(result.images.count() * result.images.image_bytes());
  train.read_images();
  test.read_images();

  Users users = number_users(train.samples(), test.samples());
  result.users = std::move(users.names);
  result.clients = std::move(users.clients);
  return result;
}

bool has_tff(const fs::path& directory, TffKind kind) {
  const std::vector<std::string> files = form_of(kind).files();
  return std::any_of(files.begin(), files.end(), [&](const std::string& name) {
    std::error_code ignored;
    return fs::exists(directory / name, ignored);
  });
}

}  // namespace fedrun::data
