// "did you mean": finds the name that a misspelt one was probably meant to be.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace fedrun::launcher {

// How many letters must be changed, left out or put in.
int edit_distance(std::string_view one, std::string_view other);

// The nearest of `names`; nothing when even that differs in more than a third of the letters of `name`.
std::optional<std::string_view> nearest_name(std::string_view name, std::span<const std::string_view> names);

}  // namespace fedrun::launcher
