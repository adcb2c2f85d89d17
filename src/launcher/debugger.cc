#include <fedrun/core/error.h>
#include <fedrun/launcher/debugger.h>
#include <fedrun/launcher/shell_words.h>
#include <fmt/format.h>

#include <iterator>

namespace fedrun::launcher {
namespace {

std::string tmux_socket(int rank) { return fmt::format("fedrun-rank-{}", rank); }

// A server of its own for the rank, because one that runs already has another environment. It is a daemon, so somebody
// has to wait for it, and to end it with the run.
constexpr const char* run_in_tmux =
    R"(socket=$1; shift
trap 'tmux -L "$socket" kill-server 2> /dev/null; exit 1' TERM INT HUP
tmux -L "$socket" new-session -d "$@" || exit 1
while tmux -L "$socket" has-session 2> /dev/null; do sleep 0.2; done)";

std::vector<std::string> prepend(std::vector<std::string> front, const std::vector<std::string>& program) {
  front.insert(front.end(), program.begin(), program.end());
  return front;
}

}  // namespace

std::vector<std::string> under_debugger(Debugger debugger, int rank, const std::vector<std::string>& program,
                                        DebuggerWindow window) {
  if (debugger == Debugger::gdbserver) {
    return prepend({"gdbserver", "--once", fmt::format(":{}", first_debugger_port + rank)}, program);
  }
  if (window.xterm) return prepend({"xterm", "-T", fmt::format("rank {}", rank), "-e", "gdb", "--args"}, program);
  if (window.tmux) return prepend({"sh", "-c", run_in_tmux, "sh", tmux_socket(rank), "gdb", "--args"}, program);
  throw UsageError(
      "--debug-with gdb takes an xterm with a DISPLAY, or tmux, on the rank's host: install tmux there, or "
      "use --debug-with gdbserver");
}

std::string how_to_attach(Debugger debugger, int rank, const std::string& host, const std::string& program) {
  if (debugger == Debugger::gdb) {
    return fmt::format("on {}: its own xterm window, or: tmux -L {} attach", host, tmux_socket(rank));
  }
  const std::string target = fmt::format("target remote {}:{}", host, first_debugger_port + rank);
  return fmt::format("gdb -ex {} {}", shell_quote(target), shell_quote(program));
}

}  // namespace fedrun::launcher
