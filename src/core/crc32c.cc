#include <fedrun/core/crc32c.h>

#include <array>

namespace fedrun {
namespace {

constexpr std::uint32_t reversed_polynomial = 0x82f63b78;

// What the eight bits of a byte do to the checksum.
constexpr std::array<std::uint32_t, 256> table = [] {
  std::array<std::uint32_t, 256> values{};
  for (std::uint32_t byte = 0; byte < values.size(); ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? reversed_polynomial : 0);
    values[byte] = value;
  }
  return values;
}();

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t value = 0xffffffff;
  for (const char byte : bytes) value = (value >> 8) ^ table[(value ^ static_cast<std::uint8_t>(byte)) & 0xff];
  return ~value;
}

}  // namespace fedrun
