// What is known about a flag of fedrun: a row of the table in flag_table.h.
#pragma once

#include <fedrun/core/run_env.h>
#include <fedrun/launcher/options.h>

#include <string>
#include <string_view>
#include <vector>

namespace fedrun::launcher {

// One row tells all about a flag. No flag library reads what mpirun's users type: -np has one dash and two letters, and
// the flags end where the program begins.
struct Flag {
  const char* group;
  const char* names;               // the spellings that --help shows, separated by spaces
  const char* also = nullptr;      // further spellings, which horovodrun's or mpirun's users type
  const char* value = nullptr;     // what --help calls it, or the words that it takes, as in a|b; nullptr: takes none
  const char* help = nullptr;      // nullptr: the row of `variable` in run_variables() has it
  const char* variable = nullptr;  // the FEDRUN_* variable that the flag sets
  const char* subject = nullptr;  // flags with the same subject exclude each other; the command line's beats the file's
  const char* needs = nullptr;    // the flag without which this one would do nothing
  bool repeats = false;           // each time adds to the ones before
  bool asks = false;              // a question to fedrun, which belongs on the command line only
  std::string (*translate)(std::string_view value) = nullptr;         // into what `variable` takes
  void (*apply)(Options& options, std::string_view value) = nullptr;  // of a flag without a variable
};

// nullptr: there is no such flag.
const Flag* find_flag(std::string_view name);

std::vector<std::string_view> shown_names(const Flag& flag);
std::vector<std::string_view> all_names(const Flag& flag);

// Only for flags that set one.
const RunVariable& variable_of(const Flag& flag);

std::string help_of(const Flag& flag);

// The words that the flag's value is one of; empty when it takes other text.
std::vector<std::string_view> choices_of(const Flag& flag);

// Sets the flag's field or variable. Throws UsageError that begins with `name`, the spelling that the user chose.
void apply(const Flag& flag, std::string_view name, std::string_view value, Options& options);

}  // namespace fedrun::launcher
