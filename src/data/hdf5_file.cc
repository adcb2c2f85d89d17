#include <fedrun/core/error.h>
#include <fedrun/data/hdf5_file.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hdf5.h>

#include <algorithm>
#include <iterator>
#include <type_traits>

namespace fedrun::data {
namespace {

static_assert(std::is_same_v<hid_t, std::int64_t>);

// No client of any data set has so many samples; a damaged file may say so, and must not take all memory.
constexpr hsize_t most_rows = 1 << 20;

// Whatever the library hands out has to be given back by the function for its kind.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  hid_t id() const { return id_; }
  bool is_valid() const { return id_ >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

// The library prints its errors unless told not to; a program may want that outside of this file.
class QuietErrors {
 public:
  QuietErrors() {
    H5Eget_auto2(H5E_DEFAULT, &print_, &argument_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~QuietErrors() { H5Eset_auto2(H5E_DEFAULT, print_, argument_); }
  QuietErrors(const QuietErrors&) = delete;
  QuietErrors& operator=(const QuietErrors&) = delete;

 private:
  H5E_auto2_t print_ = nullptr;
  void* argument_ = nullptr;
};

// What the library says first, which is the cause; the rest only tells through which functions it came.
std::string last_problem() {
  std::string text;
  const auto take_first = [](unsigned number, const H5E_error2_t* error, void* to) noexcept -> herr_t {
    if (number == 0 && error->desc != nullptr) *static_cast<std::string*>(to) = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, &text);
  return text.empty() ? "the library does not say why" : text;
}

std::string describe_type(hid_t type) {
  const std::size_t bits = 8 * H5Tget_size(type);
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return fmt::format("{}-bit {} integers", bits, H5Tget_sign(type) == H5T_SGN_NONE ? "unsigned" : "signed");
    case H5T_FLOAT:
      return fmt::format("{}-bit floating point numbers", bits);
    case H5T_STRING:
      return "text";
    default:
      return "no numbers";
  }
}

template <typename Value>
struct Kind;
template <>
struct Kind<std::uint8_t> {
  static constexpr const char* name = "8-bit unsigned integers";
  static hid_t memory_type() { return H5T_NATIVE_UINT8; }
  static bool takes(hid_t type) {
    return H5Tget_class(type) == H5T_INTEGER && H5Tget_size(type) == 1 && H5Tget_sign(type) == H5T_SGN_NONE;
  }
};
template <>
struct Kind<std::int64_t> {
  static constexpr const char* name = "integers";
  static hid_t memory_type() { return H5T_NATIVE_INT64; }
  static bool takes(hid_t type) { return H5Tget_class(type) == H5T_INTEGER; }
};
template <>
struct Kind<float> {
  static constexpr const char* name = "floating point numbers";
  static hid_t memory_type() { return H5T_NATIVE_FLOAT; }
  static bool takes(hid_t type) { return H5Tget_class(type) == H5T_FLOAT; }
};

bool are_rows_of(const std::vector<hsize_t>& dimensions, const std::vector<std::size_t>& row_shape) {
  if (dimensions.empty()) return false;
  const auto counts = [](auto dimension) { return dimension != 1; };
  std::vector<std::size_t> found;
  std::copy_if(dimensions.begin() + 1, dimensions.end(), std::back_inserter(found), counts);
  std::vector<std::size_t> wanted;
  std::copy_if(row_shape.begin(), row_shape.end(), std::back_inserter(wanted), counts);
  return found == wanted;
}

}  // namespace

Hdf5File::Hdf5File(const std::filesystem::path& path, const std::string& remedy) : path_(path), remedy_(remedy) {
  const QuietErrors quiet;
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  // Nobody writes these files, and network file systems without locks would refuse to open them.
  H5Pset_file_locking(access.id(), false, true);
  file_ = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id());
  if (file_ >= 0) return;
  throw UsageError(fmt::format("{} cannot be opened as HDF5: {}. {}", path.string(), last_problem(), remedy));
}

Hdf5File::~Hdf5File() { H5Fclose(file_); }

void Hdf5File::fail(const std::string& place, const std::string& problem) const {
  throw UsageError(fmt::format("{}, {}: {}. {}", path_.string(), place, problem, remedy_));
}

std::vector<std::string> Hdf5File::names_in(const std::string& group) const {
  const QuietErrors quiet;
  const Handle opened(H5Gopen2(file_, group.c_str(), H5P_DEFAULT), H5Gclose);
  if (!opened.is_valid()) fail(group, fmt::format("there is no such group ({})", last_problem()));
  std::vector<std::string> names;
  const auto take = [](hid_t, const char* name, const H5L_info_t*, void* to) noexcept -> herr_t {
    static_cast<std::vector<std::string>*>(to)->emplace_back(name);
    return 0;
  };
  if (H5Literate(opened.id(), H5_INDEX_NAME, H5_ITER_INC, nullptr, take, &names) < 0) {
    fail(group, fmt::format("its names cannot be read ({})", last_problem()));
  }
  return names;
}

template <typename Value>
std::vector<Value> Hdf5File::read(const std::string& place, const std::vector<std::size_t>& row_shape) const {
  const QuietErrors quiet;
  const Handle array(H5Dopen2(file_, place.c_str(), H5P_DEFAULT), H5Dclose);
  if (!array.is_valid()) fail(place, fmt::format("there is no such array ({})", last_problem()));
  const Handle type(H5Dget_type(array.id()), H5Tclose);
  if (!type.is_valid() || !Kind<Value>::takes(type.id())) {
    fail(place, fmt::format("an array of {}, not of {}", describe_type(type.id()), Kind<Value>::name));
  }
  const Handle space(H5Dget_space(array.id()), H5Sclose);
  std::vector<hsize_t> dimensions(static_cast<std::size_t>(std::max(0, H5Sget_simple_extent_ndims(space.id()))));
  H5Sget_simple_extent_dims(space.id(), dimensions.data(), nullptr);
  if (!are_rows_of(dimensions, row_shape)) {
    fail(place, fmt::format("an array of shape [{}], where [samples{}{}] was expected", fmt::join(dimensions, ", "),
                            row_shape.empty() ? "" : ", ", fmt::join(row_shape, ", ")));
  }
  if (dimensions[0] > most_rows) fail(place, fmt::format("{} samples, which is too many to be true", dimensions[0]));
  std::size_t count = 1;
  for (const hsize_t dimension : dimensions) count *= dimension;
  std::vector<Value> values(count);
  if (count == 0) return values;
  // The library reads zeros where nothing was ever written.
  if (H5Dget_storage_size(array.id()) == 0) fail(place, "the array has a shape, but was never written");
  if (H5Dread(array.id(), Kind<Value>::memory_type(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0) {
    fail(place, fmt::format("the array cannot be read ({})", last_problem()));
  }
  return values;
}

std::vector<std::uint8_t> Hdf5File::bytes(const std::string& place, const std::vector<std::size_t>& row_shape) const {
  return read<std::uint8_t>(place, row_shape);
}

std::vector<std::int64_t> Hdf5File::integers(const std::string& place,
                                             const std::vector<std::size_t>& row_shape) const {
  return read<std::int64_t>(place, row_shape);
}

std::vector<float> Hdf5File::floats(const std::string& place, const std::vector<std::size_t>& row_shape) const {
  return read<float>(place, row_shape);
}

}  // namespace fedrun::data
