// Turns names, numbers and memory into 64 bits that differ where they differ: for comparing, not for secrets.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace fedrun {

// Mixes every bit of both into every bit of the result.
constexpr std::uint64_t hash_of(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9E3779B97F4A7C15U + b;
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93U;
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93U;
  return x ^ (x >> 32);
}

constexpr std::uint64_t hash_of(std::string_view text) {
  std::uint64_t x = text.size();
  for (const char c : text) x = hash_of(x, static_cast<unsigned char>(c));
  return x;
}

// About as fast as memory can be read: every fourth word of eight bytes belongs to the same lane, so that no step waits
// for the one before. Each step can be undone, so memory that differs in one word never has the same hash. A word is
// multiplied before it joins its lane: otherwise flipping its top bit would look like flipping one bit of the next.
inline std::uint64_t hash_of(std::span<const std::byte> memory) {
  std::array<std::uint64_t, 4> lanes = {1, 2, 3, 4};
  std::array<std::uint64_t, 4> words{};
  const auto take = [&](std::span<const std::byte> block) {
    std::memcpy(words.data(), block.data(), block.size());
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      lanes[i] = std::rotl(lanes[i] + words[i] * 0x9E3779B97F4A7C15U, 31) * 0xD6E8FEB86659FD93U;
    }
  };
  std::size_t first = 0;
  for (; memory.size() - first >= sizeof words; first += sizeof words) take(memory.subspan(first, sizeof words));
  words = {};
  if (first < memory.size()) take(memory.subspan(first));
  std::uint64_t x = memory.size();
  for (const std::uint64_t lane : lanes) x = hash_of(x, lane);
  return x;
}

}  // namespace fedrun
