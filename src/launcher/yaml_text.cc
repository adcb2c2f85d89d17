#include <fedrun/core/error.h>
#include <fedrun/launcher/yaml_text.h>
#include <fmt/format.h>

#include <string>
#include <vector>

namespace fedrun::launcher {
namespace {

std::string at(std::string_view file, const YAML::Mark& mark) {
  return mark.is_null() ? std::string(file) : fmt::format("{}:{}", file, mark.line + 1);
}

}  // namespace

YAML::Node parse_yaml(std::string_view text, std::string_view file) {
  // yaml-cpp 0.7 takes a quote that is never closed for complete if the text ends with a line break.
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.size() > 1) {
      throw UsageError(
          fmt::format("{}: a second document begins; write all of it as one", at(file, documents[1].Mark())));
    }
    return documents.empty() ? YAML::Node() : documents[0];
  } catch (const YAML::Exception& error) {
    throw UsageError(fmt::format("{}: this is not YAML: {}", at(file, error.mark), error.msg));
  }
}

int line_of(const YAML::Node& node) { return node.Mark().is_null() ? 1 : node.Mark().line + 1; }

void refuse_yaml(std::string_view file, const YAML::Node& node, std::string_view message) {
  throw UsageError(fmt::format("{}: {}", at(file, node.Mark()), message));
}

}  // namespace fedrun::launcher
