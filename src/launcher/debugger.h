// The command that starts a rank under a debugger, and how to reach it.
#pragma once

#include <fedrun/launcher/keeper_options.h>

#include <string>
#include <vector>

namespace fedrun::launcher {

constexpr int first_debugger_port = 5678;  // of rank 0; the others follow

// What this host has for --debug-with gdb.
struct DebuggerWindow {
  bool xterm = false;  // and a display to open it on
  bool tmux = false;
};

// Throws UsageError when there is no window to put gdb into.
std::vector<std::string> under_debugger(Debugger debugger, int rank, const std::vector<std::string>& program,
                                        DebuggerWindow window);

// "gdb -ex 'target remote node2:5679' ./train", to be typed by the user
std::string how_to_attach(Debugger debugger, int rank, const std::string& host, const std::string& program);

}  // namespace fedrun::launcher
