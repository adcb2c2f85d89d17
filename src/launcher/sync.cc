#include <fedrun/core/error.h>
#include <fedrun/launcher/host_survey.h>
#include <fedrun/launcher/program.h>
#include <fedrun/launcher/run_commands.h>
#include <fedrun/launcher/shell_words.h>
#include <fedrun/launcher/sync.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace fedrun::launcher {
namespace {

namespace fs = std::filesystem;

// A path, and where it leads if it is a link: both are needed there. Missing ends of links are left out.
void add_path(std::vector<std::string>& paths, const fs::path& path) {
  const auto add = [&](const std::string& text) {
    if (std::find(paths.begin(), paths.end(), text) == paths.end()) paths.push_back(text);
  };
  add(path.string());
  std::error_code problem;
  const fs::path end = fs::is_symlink(path, problem) ? fs::canonical(path, problem) : path;
  if (!problem) add(end.string());
}

std::string absolute(const std::string& path, const std::string& directory) {
  std::string normal = (fs::path(directory) / path).lexically_normal().string();
  if (normal.size() > 1 && normal.ends_with('/')) normal.pop_back();  // to rsync it would mean: the content only
  return normal;
}

std::vector<std::string> requested_paths(const SyncRequest& request) {
  std::vector<std::string> paths;
  for (const std::string& path : request.paths) {
    const std::string full = absolute(path, request.surroundings.directory);
    std::error_code ignored;
    if (path.empty() || !fs::exists(fs::symlink_status(full, ignored))) {
      throw UsageError(fmt::format("--sync: {} does not exist", path.empty() ? "''" : full));
    }
    if (full == "/") throw UsageError("--sync: this would copy the whole machine; name a folder");
    add_path(paths, full);
  }
  return paths;
}

bool is_same_there(const FileFacts& file, const std::vector<FileFacts>& there) {
  return std::any_of(there.begin(), there.end(), [&](const FileFacts& other) {
    return other.path == file.path && other.state == FileState::executable && file.same_content(other);
  });
}

std::vector<std::string> missing_or_different(const std::vector<FileFacts>& here, const std::vector<FileFacts>& there,
                                              const std::string& directory) {
  std::vector<std::string> paths;
  for (const FileFacts& file : here) {
    const std::string full = absolute(file.path, directory);
    const bool is_there = file.state != FileState::executable || is_same_there(file, there);
    if (!is_there && !is_system_file(full)) add_path(paths, full);
  }
  return paths;
}

// The options, and why:
//   --archive              links, permissions and times stay as they are
//   --relative             the whole path is made there, and several paths go in one connection
//   --no-implied-dirs      folders on the way to a path keep their owner and permissions there
//   -s                     no shell there reads the paths
std::vector<std::string> rsync_command(const RemoteShell& shell, const Host& host,
                                       const std::vector<std::string>& paths) {
  std::vector<std::string> words = {
      "rsync", "--archive", "--relative", "--no-implied-dirs", "-s", "--rsh", rsync_shell(shell.words()), "--"};
  words.insert(words.end(), paths.begin(), paths.end());
  words.push_back(host.name + ":/");
  return words;
}

// The end of a message, without its line breaks.
std::string last_lines(std::string_view text) {
  constexpr int most_lines = 3;
  std::string lines;
  for (int i = 0; i < most_lines && !text.empty(); ++i) {
    if (text.ends_with('\n')) text.remove_suffix(1);
    const size_t begin = text.rfind('\n') + 1;
    lines = fmt::format("{}{}{}", text.substr(begin), lines.empty() ? "" : "; ", lines);
    text = text.substr(0, begin);
  }
  return lines;
}

std::string rsync_problem(const CommandResult& result, const Host& host, const RemoteShell& shell) {
  if (result.start_error != 0) {
    return fmt::format("rsync cannot be started here: {}; install the Debian package rsync",
                       std::strerror(result.start_error));
  }
  std::string problem =
      fmt::format("{}: rsync failed (code {}): {}", host.name, result.exit_code, last_lines(result.errors));
  if (result.errors.find("is your shell clean") != std::string::npos) {
    problem += fmt::format("; its shell prints something when ssh runs a command: {} must print nothing",
                           shell.by_hand(host, "true"));
  }
  return problem;
}

[[noreturn]] void fail(const std::vector<std::string>& problems) {
  throw BackendError(fmt::format("--sync: {}", fmt::join(problems, "\n  ")));
}

void require_success(const std::vector<CommandResult>& results, const std::vector<SurveyedHost>& hosts,
                     const std::function<std::string(const CommandResult&, const Host&)>& explain) {
  std::vector<std::string> problems;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].succeeded()) problems.push_back(explain(results[i], hosts[i].host));
  }
  if (!problems.empty()) fail(problems);
}

class Sync {
 public:
  explicit Sync(const SyncRequest& request) : request_(request) {}

  // The libraries come second, because a host knows what it lacks when it has the program.
  void run() {
    const std::vector<std::string> requested = requested_paths(request_);
    const Survey before = survey();
    const std::vector<SurveyedHost> hosts = targets(before);
    make_directory(hosts);
    copy(hosts, [&](const SurveyedHost& host) {
      std::vector<std::string> paths = requested;
      for (const std::string& path : missing_or_different({before.here.program, before.here.fedrun},
                                                          {host.facts.program, host.facts.fedrun}, directory())) {
        add_path(paths, path);
      }
      return paths;
    });
    const auto is_own = [](const FileFacts& library) { return !is_system_file(library.path); };
    if (std::none_of(before.here.libraries.begin(), before.here.libraries.end(), is_own)) return;
    const Survey after = survey();
    copy(targets(after), [&](const SurveyedHost& host) {
      return missing_or_different(after.here.libraries, host.facts.libraries, directory());
    });
  }

 private:
  const std::string& directory() const { return request_.surroundings.directory; }

  Survey survey() const {
    return survey_hosts(request_.hosts, request_.shell,
                        {.directory = directory(),
                         .program = request_.program.empty() ? "" : request_.program[0],
                         .fedrun = request_.fedrun,
                         .search_path = request_.surroundings.search_path,
                         .library_path = request_.surroundings.library_path},
                        request_.limit);
  }

  // Hosts to copy to, all reachable and with rsync; otherwise nothing is copied to any of them.
  std::vector<SurveyedHost> targets(const Survey& survey) const {
    std::vector<SurveyedHost> hosts;
    std::vector<std::string> problems;
    for (const SurveyedHost& host : survey.hosts) {
      if (host.is_here) continue;
      hosts.push_back(host);
      if (host.problem) {
        problems.push_back(fmt::format("{}: {}; {}", host.host.name, host.problem->what, host.problem->remedy));
      } else if (!host.facts.has_rsync) {
        problems.push_back(fmt::format("{}: there is no rsync; install the Debian package rsync there, and try: {}",
                                       host.host.name, request_.shell.by_hand(host.host, "rsync --version")));
      }
    }
    if (!problems.empty()) fail(problems);
    return hosts;
  }

  // The ranks start in the working directory; it may hold nothing that is copied.
  void make_directory(const std::vector<SurveyedHost>& hosts) const {
    std::vector<SurveyedHost> without;
    std::vector<Command> commands;
    for (const SurveyedHost& host : hosts) {
      if (host.facts.has_directory) continue;
      without.push_back(host);
      commands.push_back(
          {request_.shell.command(host.host, "sh -s"), fmt::format("mkdir -p -- {}\n", shell_quote(directory()))});
    }
    require_success(run_commands(commands, request_.limit), without,
                    [&](const CommandResult& result, const Host& host) {
                      return fmt::format("{}: cannot make the working directory {}: {}", host.name, directory(),
                                         last_lines(result.errors));
                    });
  }

  void copy(const std::vector<SurveyedHost>& hosts,
            const std::function<std::vector<std::string>(const SurveyedHost&)>& paths_for) const {
    std::vector<SurveyedHost> receivers;
    std::vector<Command> commands;
    for (const SurveyedHost& host : hosts) {
      const std::vector<std::string> paths = paths_for(host);
      if (paths.empty()) continue;
      request_.say(fmt::format("copying {} to {}", fmt::join(paths, ", "), host.host.name));
      receivers.push_back(host);
      commands.push_back({rsync_command(request_.shell, host.host, paths)});
    }
    require_success(
        run_commands(commands, std::nullopt), receivers,
        [&](const CommandResult& result, const Host& host) { return rsync_problem(result, host, request_.shell); });
  }

  const SyncRequest& request_;
};

}  // namespace

std::string rsync_shell(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    line += line.empty() ? "'" : " '";
    for (const char c : word) line += c == '\'' ? "''" : std::string(1, c);
    line += "'";
  }
  return line;
}

bool is_system_file(std::string_view path) {
  constexpr std::array<std::string_view, 7> folders = {"/lib/",       "/lib32/", "/lib64/",  "/usr/lib/",
                                                       "/usr/lib64/", "/bin/",   "/usr/bin/"};
  return std::any_of(folders.begin(), folders.end(), [&](std::string_view folder) { return path.starts_with(folder); });
}

void sync_to_hosts(const SyncRequest& request) { Sync(request).run(); }

}  // namespace fedrun::launcher
