// How fedrun reaches another host: by ssh, or by what the user has told Open MPI to use instead.
#pragma once

#include <fedrun/launcher/hosts.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fedrun::launcher {

struct RemoteShell {
  std::string agent = "ssh";     // program and arguments, as in OMPI_MCA_plm_rsh_agent
  std::optional<int> port = {};  // these two are for ssh only
  std::optional<std::string> identity_file = {};
  std::chrono::seconds connect_limit{10};

  // The agent's program is ssh, whose options and messages fedrun knows.
  bool is_ssh() const;

  // Agent and options: what rsync's -e takes. ssh asks no questions and gives up after connect_limit.
  std::vector<std::string> words() const;

  // The command that runs `remote` on a host, whose login shell reads it: fixed text of ours, never a user's.
  // Throws UsageError for a host that ssh would take for an option.
  std::vector<std::string> command(const Host& host, std::string_view remote) const;

  // What people type to see for themselves, such as "ssh -p 2222 node2 true".
  std::string by_hand(const Host& host, std::string_view remote) const;

  // The same port and key for Open MPI: names and values of its parameters. A question about a password would wait for
  // ever, because mpirun gives ssh no terminal, so none is asked. Throws UsageError for the name of a key with blanks,
  // at which Open MPI would split it.
  std::vector<std::pair<std::string, std::string>> open_mpi_parameters() const;

  // The remedy for a host that wants a password: ssh-copy-id with the same options.
  std::string copy_key(const Host& host) const;
};

// The first of several agents, separated by " : ", that is installed here; Open MPI chooses like that.
std::string choose_agent(std::string_view agents, std::string_view search_path);

}  // namespace fedrun::launcher
