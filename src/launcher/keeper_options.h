// What fedrun tells the process around each rank, on the command line that mpirun starts it with.
#pragma once

#include <fedrun/launcher/binding.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fedrun::launcher {

enum class Debugger { gdbserver, gdb };

struct KeeperOptions {
  Binding binding = Binding::none;
  std::optional<int> debug_rank;
  Debugger debugger = Debugger::gdbserver;
  bool framed = false;               // send the rank's output in frames; otherwise become the program
  std::vector<std::string> program;  // name and arguments

  bool operator==(const KeeperOptions&) const = default;
};

// The word after fedrun's own name that makes it a keeper.
constexpr const char* keeper_command = "keep-rank";

// The command line without fedrun's own name, and back.
std::vector<std::string> to_arguments(const KeeperOptions& options);
KeeperOptions parse_keeper_options(std::span<const std::string> arguments);

}  // namespace fedrun::launcher
