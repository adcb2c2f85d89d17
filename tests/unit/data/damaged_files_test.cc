// Cuts and flips a valid file in every place: a reader of foreign files may refuse them, but never crash.
#include <fedrun/core/error.h>
#include <fedrun/core/keyed_random.h>
#include <fedrun/data/idx.h>
#include <gtest/gtest.h>

#include "idx_files.h"

namespace fedrun::data {
namespace {

enum class Outcome { success, usage_error };

// Anything else, such as std::bad_alloc, escapes and fails the test.
Outcome read(const std::filesystem::path& file, size_t& values_read) {
  try {
    values_read = read_idx(file, IdxContent::images).values.size();
    return Outcome::success;
  } catch (const UsageError&) {
    return Outcome::usage_error;
  }
}

class DamagedFile : public testing::TestWithParam<bool> {
 protected:
  Bytes valid() const {
    const Bytes plain = idx_images(2, 5, 4);
    return GetParam() ? gzip(plain) : plain;
  }

  Outcome read_bytes(const Bytes& bytes) { return read(directory_.write("damaged", bytes), values_read_); }

  TemporaryDirectory directory_;
  size_t values_read_ = 0;
};

TEST_P(DamagedFile, EveryShorterFileIsRefused) {
  const Bytes whole = valid();
  ASSERT_EQ(read_bytes(whole), Outcome::success);
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_EQ(read_bytes(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length))),
              Outcome::usage_error)
        << length;
  }
}

TEST_P(DamagedFile, EveryFlippedBitIsReadOrRefused) {
  const Bytes whole = valid();
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    Bytes damaged = whole;
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    // What is still accepted has the size of the original: any other size contradicts the length of the file.
    if (read_bytes(damaged) == Outcome::success) {
      EXPECT_EQ(values_read_, 40u) << bit;
    }
  }
}

TEST_P(DamagedFile, ManyRandomBytesAreReadOrRefused) {
  const Bytes whole = valid();
  for (std::uint64_t round = 0; round < 2000; ++round) {
    KeyedRandom random(1, 0, round);
    Bytes damaged = whole;
    damaged.resize(static_cast<size_t>(random.between(0, static_cast<int>(whole.size()) + 20)));
    for (int changes = random.between(1, 6); changes > 0 && !damaged.empty(); --changes) {
      const int place = random.between(0, static_cast<int>(damaged.size()) - 1);
      damaged[static_cast<size_t>(place)] = static_cast<std::uint8_t>(random.next());
    }
    read_bytes(damaged);
  }
}

INSTANTIATE_TEST_SUITE_P(PlainAndGzip, DamagedFile, testing::Bool(),
                         [](const auto& parameter) { return parameter.param ? "gzip" : "plain"; });

}  // namespace
}  // namespace fedrun::data
