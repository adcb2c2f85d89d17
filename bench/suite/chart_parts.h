// From rows to series, bars and cells, as all chapters need it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chapter.h"
#include "plot.h"

namespace fedrun::bench::suite {

// Two digits after the point for small numbers, none for large ones.
std::string cell(std::optional<double> value);
std::string percent_cell(std::optional<double> part);  // of 1

// A line for each value of `name`, through what the other two fields say.
std::vector<Series> lines(const Rows& rows, std::string_view name, std::string_view x, std::string_view y);

std::vector<double> all_x(const std::vector<Series>& series);
std::vector<double> all_y(const std::vector<Series>& series);

// The first row in which all of these fields have these values.
std::optional<Row> find(const Rows& rows, const std::vector<std::pair<std::string_view, std::string>>& fields);

// A bar for each value of `name` in each value of `category`.
BarPlot bars(const Rows& rows, std::string_view category, std::string_view name,
             const std::function<std::optional<double>(const Row&)>& value);

// The y field of `row` over that of the row that differs only in having `first` in the field `varied`.
std::optional<double> relative(const Rows& rows, const Row& row, std::string_view y, std::string_view varied,
                               const std::string& first, std::string_view same);

}  // namespace fedrun::bench::suite
