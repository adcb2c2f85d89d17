#include <fedrun/core/error.h>
#include <fedrun/core/parse.h>
#include <fmt/format.h>

namespace fedrun {

void refuse_integer(std::string_view text, long long smallest, long long largest) {
  throw UsageError(fmt::format("'{}' is not a whole number from {} to {}", text, smallest, largest));
}

void refuse_word(std::string_view text, const std::string& known_words) {
  throw UsageError(fmt::format("'{}' is not one of {}", text, known_words));
}

}  // namespace fedrun
