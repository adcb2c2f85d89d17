// The checksum of TensorFlow's record files: CRC-32 with Castagnoli's polynomial.
#pragma once

#include <cstdint>
#include <string_view>

namespace fedrun {

std::uint32_t crc32c(std::string_view bytes);

}  // namespace fedrun
