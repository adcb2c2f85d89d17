#include <fedrun/core/error.h>
#include <fedrun/launcher/program.h>
#include <fedrun/launcher/remote_shell.h>
#include <fedrun/launcher/shell_words.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

namespace fedrun::launcher {
namespace {

std::vector<std::string> split_at_blanks(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

void append(std::vector<std::string>& words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
}

// Where to, in the options that ssh and ssh-copy-id share.
std::vector<std::string> port_and_key(const RemoteShell& shell) {
  std::vector<std::string> words;
  if (shell.port) append(words, {"-p", fmt::format("{}", *shell.port)});
  if (shell.identity_file) append(words, {"-i", *shell.identity_file});
  return words;
}

std::string_view trim(std::string_view text) {
  const size_t first = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

}  // namespace

bool RemoteShell::is_ssh() const {
  const std::vector<std::string> parts = split_at_blanks(agent);
  return !parts.empty() && (parts[0] == "ssh" || parts[0].ends_with("/ssh"));
}

std::vector<std::string> RemoteShell::words() const {
  std::vector<std::string> words = split_at_blanks(agent);
  if (words.empty()) throw UsageError("the agent for reaching other hosts is empty: unset OMPI_MCA_plm_rsh_agent");
  if (!is_ssh()) return words;
  append(words, {"-o", "BatchMode=yes", "-o", fmt::format("ConnectTimeout={}", connect_limit.count())});
  append(words, port_and_key(*this));
  return words;
}

std::vector<std::string> RemoteShell::command(const Host& host, std::string_view remote) const {
  if (host.name.empty() || host.name[0] == '-') throw UsageError(fmt::format("'{}' is no host name", host.name));
  std::vector<std::string> command = words();
  append(command, {host.name, std::string(remote)});
  return command;
}

std::string RemoteShell::by_hand(const Host& host, std::string_view remote) const {
  std::vector<std::string> words = split_at_blanks(agent);
  if (is_ssh()) append(words, port_and_key(*this));
  words.push_back(host.name);
  // A second shell reads it there, so quotes must survive the first one.
  const bool has_quotes = remote.find_first_of("'\"\\$;&|<>()") != std::string_view::npos;
  return fmt::format("{} {}", shell_line(words), has_quotes ? shell_quote(remote) : std::string(remote));
}

std::vector<std::pair<std::string, std::string>> RemoteShell::open_mpi_parameters() const {
  if (!is_ssh()) return {};
  std::vector<std::string> options = port_and_key(*this);
  append(options, {"-o", "BatchMode=yes"});
  if (identity_file && split_at_blanks(*identity_file).size() != 1) {
    throw UsageError(
        fmt::format("--ssh-identity-file '{}': Open MPI does not take a name with blanks; rename it, or "
                    "name it in ~/.ssh/config",
                    *identity_file));
  }
  return {{"plm_rsh_args", fmt::format("{}", fmt::join(options, " "))}};
}

std::string RemoteShell::copy_key(const Host& host) const {
  std::vector<std::string> words = {"ssh-copy-id"};
  append(words, port_and_key(*this));
  words.push_back(host.name);
  return shell_line(words);
}

std::string choose_agent(std::string_view agents, std::string_view search_path) {
  std::string_view first;
  while (!agents.empty()) {
    const size_t end = std::min(agents.find(':'), agents.size());
    const std::string_view agent = trim(agents.substr(0, end));
    agents.remove_prefix(std::min(end + 1, agents.size()));
    if (agent.empty()) continue;
    if (!find_problem(split_at_blanks(agent)[0], search_path)) return std::string(agent);
    if (first.empty()) first = agent;
  }
  return first.empty() ? "ssh" : std::string(first);
}

}  // namespace fedrun::launcher
