// All rows as one table that spreadsheets and pandas read: a column for each field that any row has.
#pragma once

#include <string>
#include <string_view>

#include "rows.h"

namespace fedrun::bench::suite {

// Columns in the order in which their fields first appear; empty where a row lacks one.
std::string to_csv(const Rows& rows);

// Quoted where a comma, a quote or the end of a line is in it (RFC 4180).
std::string csv_field(std::string_view text);

}  // namespace fedrun::bench::suite
