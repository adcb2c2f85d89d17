#include <fedrun/collectives/hash.h>
#include <fedrun/core/error.h>
#include <fedrun/train/tensor_buffer.h>
#include <fedrun/train/tensor_rows.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <string>

namespace fedrun {
namespace {

std::int64_t hash_of_row(const torch::Tensor& rows) {
  std::uint64_t hash = static_cast<std::uint64_t>(data_type_of_tensor(rows, "rows"));
  for (const std::int64_t size : rows.sizes().slice(1)) hash = hash_of(hash, static_cast<std::uint64_t>(size));
  return static_cast<std::int64_t>(hash);
}

std::string exchange_name(std::string_view name) { return name.empty() ? std::string() : std::string(name) + ".rows"; }

// Collective, and called only when two ranks' rows differ: puts it into words.
[[noreturn]] void throw_different_rows(Communicator& group, std::string_view operation, const torch::Tensor& rows,
                                       std::size_t other) {
  const std::string mine = describe_tensor("", rows);
  const auto all = group.allgather(std::vector<std::uint8_t>(mine.begin(), mine.end()));
  const auto text = [&](std::size_t rank) { return std::string(all[rank].begin(), all[rank].end()); };
  throw MismatchError(
      fmt::format("{}: rank 0 brings{}, rank {} brings{}: types, and all dimensions but the first, must "
                  "agree",
                  operation, text(0), other, text(other)));
}

// What a rank says about one tensor.
struct RowFacts {
  std::int64_t count = 0;  // all rows, or those for one rank
  std::int64_t hash = 0;   // of what the ranks must agree about
};
static_assert(sizeof(RowFacts) == 2 * sizeof(std::int64_t));

Buffer as_buffer(std::vector<RowFacts>& facts) { return {facts.data(), 2 * facts.size(), DataType::i64}; }

}  // namespace

torch::Tensor as_rows(const torch::Tensor& tensor) { return tensor.dim() == 0 ? tensor.reshape({1}) : tensor; }

torch::Tensor make_rows_like(const torch::Tensor& rows, std::int64_t count) {
  std::vector<std::int64_t> sizes = rows.sizes().vec();
  sizes[0] = count;
  return torch::empty(sizes, rows.options());
}

std::vector<std::size_t> element_counts(const torch::Tensor& rows, const Splits& splits) {
  std::size_t row_elements = 1;
  for (const std::int64_t size : rows.sizes().slice(1)) row_elements *= static_cast<std::size_t>(size);
  std::vector<std::size_t> counts;
  for (const std::int64_t split : splits) counts.push_back(static_cast<std::size_t>(split) * row_elements);
  return counts;
}

Splits check_splits(const Communicator& group, std::string_view operation, const torch::Tensor& rows,
                    const Splits& splits) {
  if (splits.empty()) {
    const std::vector<std::size_t> parts = group.equal_parts(static_cast<std::size_t>(rows.size(0)));
    return {parts.begin(), parts.end()};
  }
  const bool are_negative = std::ranges::any_of(splits, [](std::int64_t split) { return split < 0; });
  if (splits.size() != static_cast<std::size_t>(group.size()) || are_negative ||
      std::reduce(splits.begin(), splits.end()) != rows.size(0)) {
    throw UsageError(
        fmt::format("{}: the splits [{}] do not fit a tensor of {} rows: give one number for each of the {} "
                    "ranks, none negative, that add up to {}",
                    operation, fmt::join(splits, ", "), rows.size(0), group.size(), rows.size(0)));
  }
  return splits;
}

std::vector<Splits> exchange_row_counts(Communicator& group, std::string_view operation, const Tensors& tensors,
                                        std::string_view name) {
  const auto ranks = static_cast<std::size_t>(group.size());
  std::vector<RowFacts> mine;
  for (const torch::Tensor& rows : tensors) mine.push_back({rows.size(0), hash_of_row(rows)});
  std::vector<RowFacts> all(ranks * mine.size());
  group.allgather(as_buffer(mine), as_buffer(all), std::vector<std::size_t>(ranks, 2 * mine.size()),
                  {.name = exchange_name(name)});
  std::vector<Splits> counts(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const RowFacts& theirs = all[rank * tensors.size() + i];
      if (theirs.hash != all[i].hash) throw_different_rows(group, operation, tensors[i], rank);
      counts[i].push_back(theirs.count);
    }
  }
  return counts;
}

Splits exchange_splits(Communicator& group, std::string_view operation, const torch::Tensor& rows, const Splits& splits,
                       std::string_view name) {
  const auto ranks = static_cast<std::size_t>(group.size());
  std::vector<RowFacts> sent;
  for (const std::int64_t split : splits) sent.push_back({split, hash_of_row(rows)});
  std::vector<RowFacts> received(ranks);
  const std::vector<std::size_t> pairs(ranks, 2);
  group.alltoall(as_buffer(sent), pairs, as_buffer(received), pairs, {.name = exchange_name(name)});
  Splits counts;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (received[rank].hash != received[0].hash) throw_different_rows(group, operation, rows, rank);
    counts.push_back(received[rank].count);
  }
  return counts;
}

}  // namespace fedrun
