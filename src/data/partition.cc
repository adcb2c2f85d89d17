#include <fedrun/core/error.h>
#include <fedrun/data/partition.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <system_error>

namespace fedrun::data {
namespace {

// FNV-1a over numbers as eight bytes each, the lowest first.
class Fnv {
 public:
  void add(std::uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) {
      hash_ = (hash_ ^ ((number >> shift) & 0xff)) * 0x100000001b3;
    }
  }
  std::uint64_t hash() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

// Reads numbers and punctuation, and knows the line for the messages.
class MapReader {
 public:
  MapReader(std::string path, std::string text, std::size_t dataset_size)
      : path_(std::move(path)), text_(std::move(text)), rest_(text_), dataset_size_(dataset_size) {}

  Partition read() {
    std::map<std::uint64_t, std::vector<SampleIndex>> lists;
    expect('{');
    while (!skip('}')) {
      const std::uint64_t client = read_client();
      if (!lists.emplace(client, read_list()).second) fail(fmt::format("client {} comes a second time", client));
      skip(',');
    }
    if (!at_end()) fail("something follows the closing '}'");
    return in_order(lists);
  }

 private:
  std::uint64_t read_client() {
    const bool is_quoted = skip('"');
    const std::uint64_t client = read_number("the number of a client");
    if (is_quoted) expect('"');
    expect(':');
    return client;
  }

  std::vector<SampleIndex> read_list() {
    std::vector<SampleIndex> samples;
    expect('[');
    while (!skip(']')) {
      const std::uint64_t sample = read_number("the number of a sample");
      if (sample >= dataset_size_) {
        fail(fmt::format("sample {} was asked for, but the data set has {}", sample, dataset_size_));
      }
      samples.push_back(static_cast<SampleIndex>(sample));
      skip(',');
    }
    return samples;
  }

  Partition in_order(const std::map<std::uint64_t, std::vector<SampleIndex>>& lists) const {
    Partition partition;
    for (const auto& [client, samples] : lists) {
      if (client != partition.clients()) {
        throw UsageError(fmt::format("{} has no client {}, but a client {}: number them from 0 without gaps", path_,
                                     partition.clients(), client));
      }
      partition.append(samples);
    }
    if (partition.clients() == 0) throw UsageError(fmt::format("{} has no clients", path_));
    return partition;
  }

  bool at_end() {
    const std::size_t next = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(std::min(next, rest_.size()));
    return rest_.empty();
  }

  bool skip(char mark) {
    if (at_end() || rest_.front() != mark) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void expect(char mark) {
    if (!skip(mark)) fail(fmt::format("expected '{}' but found {}", mark, found()));
  }

  std::uint64_t read_number(std::string_view what) {
    at_end();
    std::uint64_t number = 0;
    const auto [end, problem] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (problem != std::errc{}) fail(fmt::format("expected {} but found {}", what, found()));
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return number;
  }

  std::string found() { return at_end() ? "the end" : fmt::format("'{}'", rest_.substr(0, 1)); }

  [[noreturn]] void fail(const std::string& problem) const {
    const auto line = 1 + std::count(text_.begin(), text_.end() - std::ssize(rest_), '\n');
    throw UsageError(fmt::format("{}, line {}: {}; a partition looks like {{\"0\": [3, 1, 4], \"1\": [1, 5]}}", path_,
                                 line, problem));
  }

  std::string path_;
  std::string text_;
  std::string_view rest_;
  std::size_t dataset_size_;
};

}  // namespace

std::span<const SampleIndex> Partition::samples_of(std::size_t client) const {
  if (client >= clients()) {
    throw UsageError(fmt::format("client {} was asked for, but the partition has {}", client, clients()));
  }
  const std::size_t first = client == 0 ? 0 : ends_[client - 1];
  return std::span(indices_).subspan(first, ends_[client] - first);
}

void Partition::append(std::span<const SampleIndex> samples) {
  indices_.insert(indices_.end(), samples.begin(), samples.end());
  ends_.push_back(indices_.size());
}

std::uint64_t Partition::hash() const {
  Fnv fnv;
  for (std::size_t client = 0; client < clients(); ++client) {
    fnv.add(size_of(client));
    for (const SampleIndex sample : samples_of(client)) fnv.add(sample);
  }
  return fnv.hash();
}

void write_partition(const Partition& partition, const std::filesystem::path& path) {
  errno = 0;
  std::ofstream file(path);
  file << "{\n";
  for (std::size_t client = 0; client < partition.clients(); ++client) {
    file << fmt::format("\"{}\": [{}]{}\n", client, fmt::join(partition.samples_of(client), ", "),
                        client + 1 < partition.clients() ? "," : "");
  }
  file << "}\n";
  file.close();
  if (!file) {
    throw BackendError(
        fmt::format("cannot write the partition to {}: {}", path.string(), std::generic_category().message(errno)));
  }
}

Partition read_partition(const std::filesystem::path& path, std::size_t dataset_size) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw UsageError(
        fmt::format("cannot open the partition {}: {}", path.string(), std::generic_category().message(errno)));
  }
  return MapReader(path.string(), std::string(std::istreambuf_iterator<char>(file), {}), dataset_size).read();
}

SplitPartition split_each_client(const Partition& partition, double train_share) {
  if (!(train_share >= 0 && train_share <= 1)) {
    throw UsageError(
        fmt::format("{} of each client's samples cannot be for training: choose from 0 to 1", train_share));
  }
  SplitPartition split;
  for (std::size_t client = 0; client < partition.clients(); ++client) {
    const std::span<const SampleIndex> samples = partition.samples_of(client);
    const auto train_count = static_cast<std::size_t>(train_share * static_cast<double>(samples.size()));
    split.train.append(samples.first(train_count));
    split.test.append(samples.subspan(train_count));
  }
  return split;
}

}  // namespace fedrun::data
