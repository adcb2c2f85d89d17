#include <fedrun/core/error.h>
#include <fedrun/data/leaf.h>
#include <fedrun/data/users.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace fedrun::data {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view alphabet =
    "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}";
constexpr std::size_t text_length = 80;

std::size_t number_of(char character) {
  return std::min(alphabet.find(character), alphabet.size()) + 1;  // those that are not found are one beyond the last
}

FeatureSet empty_set(LeafKind kind) {
  if (kind == LeafKind::femnist) return {.name = "FEMNIST", .sample_shape = {1, 28, 28}, .classes = 62};
  return {.name = "Shakespeare", .sample_shape = {static_cast<std::int64_t>(text_length)}, .classes = 90};
}

// Takes {"users": [...], "user_data": {user: {"x": [...], "y": [...]}}} as it comes along and keeps the samples only.
// What else a file has, such as num_samples and hierarchies, is passed over.
class LeafReader : public json::json_sax_t {
 public:
  LeafReader(LeafKind kind, FeatureSet& set, SamplesOfUser& samples) : kind_(kind), set_(set), samples_(samples) {}

  const std::string& problem() const { return problem_; }

  bool start_object(std::size_t) override {
    path_.emplace_back();
    return true;
  }
  bool key(std::string& name) override {
    path_.back() = name;
    return true;
  }
  bool end_object() override {
    path_.pop_back();
    return !is_user() || finish_user();
  }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }

  bool null() override { return refuse("null"); }
  bool boolean(bool) override { return refuse("true or false"); }
  bool binary(json::binary_t&) override { return refuse("binary data"); }
  bool number_integer(json::number_integer_t value) override { return number(static_cast<double>(value)); }
  bool number_unsigned(json::number_unsigned_t value) override { return number(static_cast<double>(value)); }
  bool number_float(json::number_float_t value, const std::string&) override { return number(value); }
  bool string(std::string& text) override {
    if (!is_sample()) return true;
    if (kind_ != LeafKind::shakespeare) return refuse("text");
    if (path_[2] == "y") {
      if (text.size() != 1) return fail(fmt::format("the label '{}' is not one character", text));
      return label(static_cast<double>(number_of(text[0])));
    }
    if (text.size() != text_length)
      return fail(fmt::format("a text of {} characters, not {}", text.size(), text_length));
    for (const char character : text) set_.values.push_back(static_cast<float>(number_of(character)));
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const json::exception& error) override {
    return fail(fmt::format("byte {}: {}", position, error.what()));
  }

 private:
  bool is_user() const { return path_.size() == 2 && path_[0] == "user_data"; }
  bool is_sample() const {
    return path_.size() == 3 && path_[0] == "user_data" && (path_[2] == "x" || path_[2] == "y");
  }

  bool number(double value) {
    if (!is_sample()) return true;
    if (kind_ != LeafKind::femnist) return refuse("a number");
    if (path_[2] == "y") return label(value);
    set_.values.push_back(static_cast<float>(value));
    return true;
  }

  bool label(double value) {
    if (!(value >= 0 && value < static_cast<double>(set_.classes)) || value != static_cast<int>(value)) {
      return fail(fmt::format("the label {}, where {} has 0 to {}", value, set_.name, set_.classes - 1));
    }
    samples_[path_[1]].push_back(static_cast<SampleIndex>(set_.labels.size()));
    set_.labels.push_back(static_cast<std::uint8_t>(value));
    return true;
  }

  // x and y come in either order, so they are compared when both are there.
  bool finish_user() {
    if (set_.values.size() == set_.count() * set_.features()) return true;
    return fail(fmt::format("x and y do not fit: there are {} values for {} samples of {}", set_.values.size(),
                            set_.count(), set_.features()));
  }

  bool refuse(std::string_view what) { return !is_sample() || fail(fmt::format("{} among the samples", what)); }

  bool fail(const std::string& what) {
    problem_ = is_sample() || is_user() ? fmt::format("user {}: {}", path_[1], what) : what;
    return false;
  }

  LeafKind kind_;
  FeatureSet& set_;
  SamplesOfUser& samples_;
  std::vector<std::string> path_;  // the keys of the objects around the place
  std::string problem_;
};

std::vector<fs::path> json_files(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());  // the order of a directory is anybody's guess, and differs between hosts
  return files;
}

SamplesOfUser read_split(const fs::path& directory, LeafKind kind, FeatureSet& set) {
  const std::vector<fs::path> files = json_files(directory);
  if (files.empty()) {
    throw UsageError(
        fmt::format("there is no {} in {}: no file *.json. LEAF makes them, from "
                    "https://github.com/TalwalkarLab/leaf: data/{}/preprocess.sh",
                    set.name, directory.string(), kind == LeafKind::femnist ? "femnist" : "shakespeare"));
  }
  SamplesOfUser samples;
  for (const fs::path& path : files) {
    std::ifstream file(path, std::ios::binary);
    LeafReader reader(kind, set, samples);
    if (!json::sax_parse(file, &reader)) {
      throw UsageError(fmt::format("{} is not LEAF's {}: {}", path.string(), set.name, reader.problem()));
    }
  }
  return samples;
}

}  // namespace

LeafSet load_leaf(const fs::path& directory, LeafKind kind) {
  LeafSet leaf{.samples = empty_set(kind), .clients = {}};
  const SamplesOfUser train = read_split(directory / "train", kind, leaf.samples);
  const SamplesOfUser test = read_split(directory / "test", kind, leaf.samples);
  Users users = number_users(train, test);
  for (std::size_t client = 0; client < users.names.size(); ++client) {
    const auto trains_on = users.clients.train.samples_of(client);
    const auto tests_on = users.clients.test.samples_of(client);
    std::vector<SampleIndex> all(trains_on.begin(), trains_on.end());
    all.insert(all.end(), tests_on.begin(), tests_on.end());
    leaf.samples.clients.append(all);
  }
  leaf.users = std::move(users.names);
  leaf.clients = std::move(users.clients);
  return leaf;
}

}  // namespace fedrun::data
