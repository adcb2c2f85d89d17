// Reads arrays out of an HDF5 file, and says of what it cannot read where in the file it lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace fedrun::data {

// Use it from one thread: the library keeps its last error in one place.
//
// Everything here throws UsageError that names the file, the place in it, what is wrong, and the remedy.
class Hdf5File {
 public:
  // The remedy is what a user may do about a file that is damaged or of another kind.
  Hdf5File(const std::filesystem::path& path, const std::string& remedy);
  ~Hdf5File();
  Hdf5File(const Hdf5File&) = delete;
  Hdf5File& operator=(const Hdf5File&) = delete;

  // What lies in a group, in the order of names.
  std::vector<std::string> names_in(const std::string& group) const;

  // The array at a place such as "examples/f0000_14/pixels": rows of the given shape, as many as there are. Dimensions
  // of 1 do not count. Conversions are the library's; only numbers of another kind are refused.
  std::vector<std::uint8_t> bytes(const std::string& place, const std::vector<std::size_t>& row_shape) const;
  std::vector<std::int64_t> integers(const std::string& place, const std::vector<std::size_t>& row_shape) const;
  std::vector<float> floats(const std::string& place, const std::vector<std::size_t>& row_shape) const;

  [[noreturn]] void fail(const std::string& place, const std::string& problem) const;

 private:
  template <typename Value>
  std::vector<Value> read(const std::string& place, const std::vector<std::size_t>& row_shape) const;

  std::filesystem::path path_;
  std::string remedy_;
  std::int64_t file_ = -1;  // the library's hid_t, whose header is not for everybody
};

}  // namespace fedrun::data
