// The rows that the benchmarks have written, and how to pick some of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "step.h"

namespace fedrun::bench::suite {

using Rows = std::vector<Row>;

// The lines of what a benchmark has printed that are JSON objects, with what the step knows besides in front.
Rows rows_in(std::string_view output, const Step& step);

// Of a row; nothing where it has no such field.
std::optional<double> number(const Row& row, std::string_view field);
std::string text(const Row& row, std::string_view field);  // numbers as they are written

// Those whose field is this.
Rows where(const Rows& rows, std::string_view field, std::string_view value);
Rows where(const Rows& rows, Section section);
// Those that have the field.
Rows with(const Rows& rows, std::string_view field);

// The values of a field, each once, in the order of the rows.
std::vector<std::string> values(const Rows& rows, std::string_view field);

}  // namespace fedrun::bench::suite
