#include <fedrun/collectives/hash.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace fedrun {
namespace {

TEST(Hash, SeesEveryBitOfMemory) {
  for (const std::size_t size : {1U, 7U, 8U, 31U, 32U, 33U, 100U}) {
    std::vector<std::byte> memory(size);
    std::set<std::uint64_t> hashes = {hash_of(memory)};
    for (std::size_t bit = 0; bit < 8 * size; ++bit) {
      memory[bit / 8] ^= std::byte{1} << (bit % 8);
      EXPECT_TRUE(hashes.insert(hash_of(memory)).second) << "bit " << bit << " of " << size << " bytes";
      memory[bit / 8] ^= std::byte{1} << (bit % 8);
    }
  }
}

TEST(Hash, SeesHowMuchMemoryThereIs) {
  const std::vector<std::byte> zeros(200);
  std::set<std::uint64_t> hashes;
  for (std::size_t size = 0; size <= zeros.size(); ++size) {
    EXPECT_TRUE(hashes.insert(hash_of(std::span(zeros).first(size))).second) << size << " bytes";
  }
}

TEST(Hash, SeesTheOrder) {
  // Words that change their places, also within a lane.
  std::vector<std::byte> memory(96);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i / 8);
  std::set<std::uint64_t> hashes = {hash_of(memory)};
  for (std::size_t word = 8; word < memory.size(); word += 8) {
    std::vector<std::byte> swapped = memory;
    std::swap_ranges(swapped.begin(), swapped.begin() + 8, swapped.begin() + static_cast<std::ptrdiff_t>(word));
    EXPECT_TRUE(hashes.insert(hash_of(swapped)).second) << "word " << word / 8;
  }
}

TEST(Hash, DoesNotDependOnWhereMemoryLies) {
  std::vector<std::byte> memory(80);
  for (std::size_t offset = 0; offset < 8; ++offset) {
    const auto part = std::span(memory).subspan(offset, 70);
    for (std::size_t i = 0; i < part.size(); ++i) part[i] = static_cast<std::byte>(i);
    const std::vector<std::byte> copy(part.begin(), part.end());
    EXPECT_EQ(hash_of(std::span<const std::byte>(part)), hash_of(copy));
  }
}

}  // namespace
}  // namespace fedrun
