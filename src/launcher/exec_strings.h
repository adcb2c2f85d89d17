// Strings as exec takes them.
#pragma once

#include <string>
#include <vector>

namespace fedrun::launcher {

// Pointers into `strings`, ended by a null pointer. exec changes no character, whatever its signature says.
inline std::vector<char*> exec_strings(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace fedrun::launcher
