#include <fedrun/collectives/hash.h>
#include <fedrun/core/error.h>
#include <fedrun/train/byte_exchange.h>
#include <fedrun/train/meter.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace fedrun {
namespace {

// Names with the length in front of each, so that no two lists have the same text.
std::string text_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += fmt::format("{}:{}", name.size(), name);
  return text;
}

std::vector<std::string> names_in(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const std::size_t colon = text.find(':');
    const std::size_t size = std::stoull(std::string(text.substr(0, colon)));
    names.emplace_back(text.substr(colon + 1, size));
    text.remove_prefix(colon + 1 + size);
  }
  return names;
}

std::string list_of(std::string_view text) { return fmt::format("'{}'", fmt::join(names_in(text), "', '")); }

}  // namespace

void Meter::add(std::string_view name, double value, double samples) {
  if (!std::isfinite(samples) || samples < 0) {
    throw UsageError(
        fmt::format("Meter: '{}' cannot have {} samples: give a finite number that is not negative", name, samples));
  }
  const auto known = sums_.find(name);
  Sums& sums = known != sums_.end() ? known->second : sums_[std::string(name)];
  if (std::isfinite(value)) {
    sums.weighted_values += value * samples;
    sums.samples += samples;
  } else {
    sums.samples_not_finite += samples;
  }
}

double Meter::mean(std::string_view name) const {
  const Sums& sums = sums_of(name);
  return sums.samples > 0 ? sums.weighted_values / sums.samples : std::numeric_limits<double>::quiet_NaN();
}

double Meter::samples(std::string_view name) const { return sums_of(name).samples; }

double Meter::samples_not_finite(std::string_view name) const { return sums_of(name).samples_not_finite; }

std::vector<std::string> Meter::names() const {
  std::vector<std::string> names;
  for (const auto& [name, sums] : sums_) names.push_back(name);
  return names;
}

Meter Meter::over_ranks(Communicator& group) const {
  Meter all = with_names_of_all(group);
  std::vector<double> numbers;
  for (const auto& [name, sums] : all.sums_) {
    numbers.insert(numbers.end(), {sums.weighted_values, sums.samples, sums.samples_not_finite});
  }
  group.allreduce(numbers, {.op = ReduceOp::sum});
  auto next = numbers.begin();
  for (auto& [name, sums] : all.sums_) {
    sums = {next[0], next[1], next[2]};
    next += 3;
  }
  return all;
}

void Meter::reset() {
  for (auto& [name, sums] : sums_) sums = {};
}

const Meter::Sums& Meter::sums_of(std::string_view name) const {
  const auto known = sums_.find(name);
  if (known == sums_.end()) {
    const std::string others = sums_.empty() ? "" : ", only to " + list_of(text_of(names()));
    throw UsageError(fmt::format("Meter: nothing was added to '{}'{}", name, others));
  }
  return known->second;
}

// This meter, or one of the others' names without samples if this one is empty.
Meter Meter::with_names_of_all(Communicator& group) const {
  const std::string mine = text_of(names());
  const auto digest = static_cast<std::int64_t>(hash_of(mine));
  const auto ranks = static_cast<std::size_t>(group.size());
  std::vector<std::int64_t> digests(ranks);
  group.allgather(as_const_buffer(std::span(&digest, 1)), as_buffer(digests), std::vector<std::size_t>(ranks, 1));
  if (std::ranges::all_of(digests, [&](std::int64_t other) { return other == digest; })) return *this;

  const std::vector<std::string> texts = allgather_bytes(group, {"Meter", "names"}, [&] { return mine; });
  std::size_t reference = 0;
  while (texts[reference].empty()) ++reference;
  for (std::size_t rank = reference + 1; rank < texts.size(); ++rank) {
    if (texts[rank].empty() || texts[rank] == texts[reference]) continue;
    throw MismatchError(
        fmt::format("Meter: the names differ between ranks: rank {} has {}, rank {} has {}. Add to the same names on "
                    "every rank, with 0 samples where there are none.",
                    reference, list_of(texts[reference]), rank, list_of(texts[rank])));
  }
  Meter result = *this;
  for (const std::string& name : names_in(texts[reference])) result.sums_.try_emplace(name);
  return result;
}

}  // namespace fedrun
