#include <fedrun/core/error.h>
#include <fedrun/train/safetensors.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace fedrun {
namespace {

std::string_view type_name(const std::string& name, torch::ScalarType type) {
  constexpr std::array<std::pair<torch::ScalarType, std::string_view>, 9> names = {{{torch::kFloat32, "F32"},
                                                                                    {torch::kFloat64, "F64"},
                                                                                    {torch::kFloat16, "F16"},
                                                                                    {torch::kBFloat16, "BF16"},
                                                                                    {torch::kInt64, "I64"},
                                                                                    {torch::kInt32, "I32"},
                                                                                    {torch::kInt8, "I8"},
                                                                                    {torch::kUInt8, "U8"},
                                                                                    {torch::kBool, "BOOL"}}};
  for (const auto& [known, written] : names) {
    if (known == type) return written;
  }
  throw UsageError(
      fmt::format("tensor '{}' has type {}, which safetensors files do not hold", name, torch::toString(type)));
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

// {"name": {"dtype": …, "shape": […], "data_offsets": [first, end]}, …}, filled up with blanks so that the data that
// follows is aligned.
std::string header_of(const NamedTensors& tensors) {
  std::set<std::string> names;
  std::string header = "{";
  std::int64_t first = 0;
  for (const auto& [name, tensor] : tensors) {
    if (!names.insert(name).second) throw UsageError(fmt::format("tensor '{}' is to be written twice", name));
    const std::int64_t end = first + tensor.numel() * static_cast<std::int64_t>(tensor.element_size());
    header +=
        fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", names.size() > 1 ? "," : "",
                    quoted(name), type_name(name, tensor.scalar_type()), fmt::join(tensor.sizes(), ","), first, end);
    first = end;
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return header;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors) {
  const std::string header = header_of(tensors);
  std::filesystem::path unfinished = path;
  unfinished += ".part";
  std::ofstream file(unfinished, std::ios::binary);
  for (int shift = 0; shift < 64; shift += 8) file.put(static_cast<char>(header.size() >> shift & 0xff));
  file << header;
  for (const auto& [name, tensor] : tensors) {
    const torch::Tensor values = tensor.detach().cpu().contiguous();
    file.write(static_cast<const char*>(values.const_data_ptr()), static_cast<std::streamsize>(values.nbytes()));
  }
  file.close();
  std::error_code problem;
  if (file) std::filesystem::rename(unfinished, path, problem);
  if (!file || problem) throw BackendError(fmt::format("cannot write the weights to {}", path.string()));
}

void write_safetensors(const std::filesystem::path& path, const torch::nn::Module& module) {
  NamedTensors tensors;
  for (const auto& parameter : module.named_parameters()) tensors.emplace_back(parameter.key(), parameter.value());
  for (const auto& buffer : module.named_buffers()) tensors.emplace_back(buffer.key(), buffer.value());
  write_safetensors(path, tensors);
}

}  // namespace fedrun
