// How an object becomes bytes, and bytes an object again.
#pragma once

#include <torch/torch.h>

#include <cstring>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <vector>

namespace fedrun {

// Both throw UsageError that says why Torch cannot pickle, or unpickle, the value.
std::string pickled(const torch::IValue& value);
torch::IValue unpickled(const std::string& bytes);

std::string readable_type(const std::type_info& type);

template <typename T>
inline constexpr bool is_vector_of_numbers = false;
template <typename T>
inline constexpr bool is_vector_of_numbers<std::vector<T>> = std::is_arithmetic_v<T>;

template <typename Object>
std::string name_of_object_type() {
  return std::is_same_v<Object, std::string> ? "std::string" : readable_type(typeid(Object));
}

template <typename Object>
std::string bytes_of_object(const Object& object) {
  if constexpr (std::is_same_v<Object, std::string>) {
    return object;
  } else if constexpr (std::is_arithmetic_v<Object>) {
    return {reinterpret_cast<const char*>(&object), sizeof object};
  } else if constexpr (std::is_same_v<Object, std::vector<bool>>) {
    return {object.begin(), object.end()};  // it has no elements to point at
  } else if constexpr (is_vector_of_numbers<Object>) {
    return {reinterpret_cast<const char*>(object.data()), object.size() * sizeof(typename Object::value_type)};
  } else {
    static_assert(std::is_constructible_v<torch::IValue, const Object&>,
                  "pass a std::string, numbers, a std::vector of numbers, or what a torch::IValue can hold");
    return pickled(torch::IValue(object));
  }
}

template <typename Object>
Object object_of_bytes(const std::string& bytes) {
  if constexpr (std::is_same_v<Object, std::string>) {
    return bytes;
  } else if constexpr (std::is_arithmetic_v<Object>) {
    Object object{};
    std::memcpy(&object, bytes.data(), sizeof object);
    return object;
  } else if constexpr (std::is_same_v<Object, std::vector<bool>>) {
    return {bytes.begin(), bytes.end()};
  } else if constexpr (is_vector_of_numbers<Object>) {
    Object object(bytes.size() / sizeof(typename Object::value_type));
    if (!bytes.empty()) std::memcpy(object.data(), bytes.data(), bytes.size());
    return object;
  } else if constexpr (std::is_same_v<Object, torch::IValue>) {
    return unpickled(bytes);
  } else {
    return unpickled(bytes).template to<Object>();
  }
}

}  // namespace fedrun
