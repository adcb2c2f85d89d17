// Reads the values of flags that are neither numbers nor words of a list. Each function throws UsageError; the caller
// puts the flag's name before it.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace fedrun::launcher {

// Not empty; whether it exists is asked where it is used.
std::string path_value(std::string_view text);
std::string name_value(std::string_view text);

std::chrono::seconds seconds_value(std::string_view text, int most);

// Names and IPv4 networks, separated by commas: "eth0,10.0.0.0/8".
std::string network_interfaces_value(std::string_view text);

// Also understands horovodrun's names for levels, in any case.
std::string log_level_value(std::string_view text);

// Splits as a shell splits words, with its quotes and backslashes, but without ever replacing or executing anything.
std::vector<std::string> split_words(std::string_view text);

// Splits `text` and appends it. Refuses what fedrun itself must know (ranks, hosts, a second program), and characters
// that are harmless here but which the shell on another host, to which mpirun hands them on, would read.
void append_mpi_arguments(std::vector<std::string>& arguments, std::string_view text);

}  // namespace fedrun::launcher
