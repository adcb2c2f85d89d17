#include <fedrun/collectives/hash.h>
#include <fedrun/core/error.h>
#include <fedrun/train/agreement.h>
#include <fedrun/train/byte_exchange.h>
#include <fmt/format.h>

#include <numeric>
#include <optional>

namespace fedrun {
namespace {

// What a rank brings: bytes, or the error that it met instead of making them.
struct Parcel {
  std::string bytes;
  std::optional<std::string> error;
};

Parcel made_by(const MakeBytes& make) {
  try {
    return {make(), std::nullopt};
  } catch (const std::exception& error) {
    return {{}, error.what()};
  } catch (...) {
    return {{}, "something was thrown that is no std::exception"};
  }
}

// What the ranks tell each other before any bytes move.
struct Announcement {
  std::int64_t bytes = 0;
  std::int64_t failed = 0;
  std::int64_t terms = 0;  // a hash
};
constexpr std::size_t announcement_numbers = 3;
static_assert(sizeof(Announcement) == announcement_numbers * sizeof(std::int64_t));

std::string step_name(std::string_view name, std::string_view step) {
  return name.empty() ? std::string() : fmt::format("{}.{}", name, step);
}

ConstBuffer buffer_of_text(const std::string& text) { return {text.data(), text.size(), DataType::u8}; }
Buffer buffer_of_text(std::string& text) { return {text.data(), text.size(), DataType::u8}; }

std::vector<std::string> gather_texts(Communicator& group, const std::string& mine,
                                      const std::vector<std::size_t>& sizes, std::string_view name) {
  std::string all(std::reduce(sizes.begin(), sizes.end()), '\0');
  group.allgather(buffer_of_text(mine), buffer_of_text(all), sizes, {.name = name});
  std::vector<std::string> texts;
  std::size_t first = 0;
  for (const std::size_t size : sizes) {
    texts.push_back(all.substr(first, size));
    first += size;
  }
  return texts;
}

// Called when at least one rank has failed; the first of them is the one whose words all ranks throw.
[[noreturn]] void throw_failure(Communicator& group, std::string_view operation, const Parcel& mine,
                                const std::vector<Announcement>& announced, std::string_view name) {
  const std::string words = mine.error.value_or("");
  const std::vector<std::string> texts =
      gather_texts(group, words, group.gather_counts(words.size()), step_name(name, "error"));
  std::size_t rank = 0;
  while (announced[rank].failed == 0) ++rank;
  throw UsageError(fmt::format("{}: rank {} failed: {}", operation, rank, texts[rank]));
}

// Tells every rank how many bytes each brings; throws on every rank where one has failed or the terms differ.
std::vector<std::size_t> announce(Communicator& group, std::string_view operation, const std::string& terms,
                                  const Parcel& mine, std::string_view name) {
  Announcement here{static_cast<std::int64_t>(mine.bytes.size()), mine.error ? 1 : 0,
                    static_cast<std::int64_t>(hash_of(terms))};
  const auto ranks = static_cast<std::size_t>(group.size());
  std::vector<Announcement> all(ranks);
  group.allgather({&here, announcement_numbers, DataType::i64},
                  {all.data(), announcement_numbers * ranks, DataType::i64},
                  std::vector<std::size_t>(ranks, announcement_numbers), {.name = step_name(name, "size")});
  bool is_failure = false;
  std::vector<std::size_t> sizes;
  for (const Announcement& other : all) {
    if (other.terms != all.front().terms) {
      check_agreement(group, "the calls", {terms}, "Call the same function with the same type and root on every rank.");
    }
    is_failure = is_failure || other.failed != 0;
    sizes.push_back(static_cast<std::size_t>(other.bytes));
  }
  if (is_failure) throw_failure(group, operation, mine, all, name);
  return sizes;
}

}  // namespace

std::string broadcast_bytes(Communicator& group, const ByteTerms& terms, const MakeBytes& make,
                            const BroadcastOptions& options) {
  if (options.root < 0 || options.root >= group.size()) {
    throw UsageError(fmt::format("{}: there is no rank {} to be the root in a group of {} ranks", terms.operation,
                                 options.root, group.size()));
  }
  Parcel parcel = group.rank() == options.root ? made_by(make) : Parcel{};
  const std::string call = fmt::format("{} of {} from root {}", terms.operation, terms.content, options.root);
  const std::vector<std::size_t> sizes = announce(group, terms.operation, call, parcel, options.name);
  parcel.bytes.resize(sizes[static_cast<std::size_t>(options.root)]);
  group.broadcast(buffer_of_text(parcel.bytes), {.root = options.root, .name = options.name});
  return std::move(parcel.bytes);
}

std::vector<std::string> allgather_bytes(Communicator& group, const ByteTerms& terms, const MakeBytes& make,
                                         const ExchangeOptions& options) {
  const Parcel parcel = made_by(make);
  const std::string call = fmt::format("{} of {}", terms.operation, terms.content);
  const std::vector<std::size_t> sizes = announce(group, terms.operation, call, parcel, options.name);
  return gather_texts(group, parcel.bytes, sizes, options.name);
}

void run_everywhere(Communicator& group, std::string_view operation, const std::function<void()>& action) {
  const Parcel outcome = made_by([&] {
    action();
    return std::string();
  });
  announce(group, operation, std::string(operation), outcome, {});
}

}  // namespace fedrun
