// YAML with errors as fedrun words them: file, line, and what is expected.
#pragma once

#include <yaml-cpp/yaml.h>

#include <string_view>

namespace fedrun::launcher {

// `file` is only for messages. A null node when the text is empty. Throws UsageError.
YAML::Node parse_yaml(std::string_view text, std::string_view file);

int line_of(const YAML::Node& node);

// Throws UsageError "file:line: message".
[[noreturn]] void refuse_yaml(std::string_view file, const YAML::Node& node, std::string_view message);

}  // namespace fedrun::launcher
