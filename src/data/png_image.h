// Decodes PNG files of any colour type to RGB bytes, in the order in which an ImageSet keeps them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace fedrun::data {

struct PngSize {
  std::size_t rows = 0;
  std::size_t columns = 0;
};

// Adds 3 × rows × columns bytes: all of red, of green, of blue. Grey becomes three equal channels, a palette its
// colours, 16 bits their upper 8, and transparency is dropped, as image loaders for training do. Throws UsageError that
// names the file when it cannot be opened, is no PNG, is damaged or of another size; the pixels are then as they were.
void append_png(const std::filesystem::path& path, const PngSize& size, std::vector<std::uint8_t>& pixels);

}  // namespace fedrun::data
