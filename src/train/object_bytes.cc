#include <c10/util/Type.h>
#include <fedrun/core/error.h>
#include <fedrun/train/object_bytes.h>
#include <fmt/format.h>

namespace fedrun {

std::string pickled(const torch::IValue& value) {
  try {
    const std::vector<char> bytes = torch::pickle_save(value);
    return {bytes.begin(), bytes.end()};
  } catch (const c10::Error& error) {
    throw UsageError(
        fmt::format("Torch cannot pickle a value of type {}: {}", value.tagKind(), error.what_without_backtrace()));
  }
}

torch::IValue unpickled(const std::string& bytes) {
  try {
    return torch::pickle_load({bytes.begin(), bytes.end()});
  } catch (const c10::Error& error) {
    throw UsageError(
        fmt::format("Torch cannot unpickle what it has pickled: {}. Send the tensors and numbers that the object "
                    "consists of, in a c10::Dict, a c10::List or a tuple.",
                    error.what_without_backtrace()));
  }
}

std::string readable_type(const std::type_info& type) { return c10::demangle(type.name()); }

}  // namespace fedrun
