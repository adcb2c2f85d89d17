// Brings the program along to hosts that do not share a file system with this machine.
#pragma once

#include <fedrun/launcher/preflight.h>
#include <fedrun/launcher/remote_shell.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fedrun::launcher {

struct SyncRequest {
  std::vector<std::string> paths;  // files or folders; absolute, or relative to the working directory
  std::vector<Host> hosts;
  RemoteShell shell = {};
  std::vector<std::string> program = {};  // what will run; goes along even when it lies in none of the paths
  std::string fedrun = {};                // path of this fedrun; empty: the ranks do not need it
  std::chrono::seconds limit{15};         // for reaching the hosts; copying takes as long as it takes
  Surroundings surroundings = Surroundings::of_this_process();
  std::function<void(std::string_view)> say = [](std::string_view) {};  // hears what is copied to where
};

// Copies by rsync to the same absolute paths on every host but this machine, to all at once. With the paths go, where
// they are missing or different: the program, fedrun itself, the shared libraries of both that are not the system's,
// and the working directory (not its content). Nothing is deleted anywhere.
// Throws UsageError for a path that does not exist, BackendError that names each host that did not work, and a remedy.
void sync_to_hosts(const SyncRequest& request);

// What follows is for the tests.

// As rsync's -e reads it: words that keep their blanks and quotes.
std::string rsync_shell(const std::vector<std::string>& words);

// One of the system's own files, which come by its packages.
bool is_system_file(std::string_view path);

}  // namespace fedrun::launcher
