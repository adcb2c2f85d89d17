// Turns names and numbers into 64 bits that differ where they differ: for comparing, not for secrets.
#pragma once

#include <cstdint>
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

}  // namespace fedrun
