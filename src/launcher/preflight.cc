#include <fedrun/core/version.h>
#include <fedrun/launcher/host_cache.h>
#include <fedrun/launcher/host_survey.h>
#include <fedrun/launcher/local_hosts.h>
#include <fedrun/launcher/network_choice.h>
#include <fedrun/launcher/preflight.h>
#include <fedrun/launcher/program.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>

namespace fedrun::launcher {
namespace {

namespace fs = std::filesystem;

constexpr const char* this_machine = "localhost";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::vector<Host> hosts_or_this_machine(const PreflightRequest& request) {
  return request.hosts.empty() ? std::vector<Host>{{this_machine, 1}} : request.hosts;
}

std::string program_of(const PreflightRequest& request) { return request.program.empty() ? "" : request.program[0]; }

// Changes whenever the file is written; reading hundreds of megabytes for each launch would take longer than the check.
std::string identity_of_file(const std::string& path) {
  struct stat file = {};
  if (path.empty() || stat(path.c_str(), &file) != 0) return "none";
  return fmt::format("{}:{}:{}:{}.{}:{}.{}", file.st_dev, file.st_ino, file.st_size, file.st_mtim.tv_sec,
                     file.st_mtim.tv_nsec, file.st_ctim.tv_sec, file.st_ctim.tv_nsec);
}

// Everything that the outcome depends on and that can be seen from here.
std::string cache_key(const PreflightRequest& request) {
  const Surroundings& surroundings = request.surroundings;
  std::string key = fmt::format("fedrun {}\n", version);
  for (const Host& host : request.hosts) key += fmt::format("host {}:{}\n", host.name, host.slots);
  for (const std::string& word : request.shell.words()) key += fmt::format("shell {}\n", word);
  for (const Ipv4 address : own_addresses()) key += fmt::format("address {}\n", to_string(address));
  const std::string program = find_program(program_of(request), surroundings.search_path).value_or("");
  key += fmt::format("program {} {}\n", program_of(request), identity_of_file(program));
  key += fmt::format("launcher {} {}\n", request.fedrun, identity_of_file(request.fedrun));
  key += fmt::format("network {}\n", request.network_interfaces.value_or(""));
  key += fmt::format("gpus {}\n", request.gpus_expected);
  key += fmt::format("directory {}\npath {}\nlibraries {}\n", surroundings.directory, surroundings.search_path,
                     surroundings.library_path);
  return key;
}

// Files and versions are compared with those of this machine; a program that only the hosts have, with the first one's.
Expectations expectations(const PreflightRequest& request, const Survey& survey) {
  Expectations expected{.directory = request.surroundings.directory,
                        .program = program_of(request),
                        .gpus = request.gpus_expected,
                        .original = survey.here};
  if (survey.here.program.state == FileState::executable) return expected;
  const auto first = std::find_if(survey.hosts.begin(), survey.hosts.end(), [](const SurveyedHost& host) {
    return host.facts.program.state == FileState::executable;
  });
  if (first == survey.hosts.end()) return expected;
  expected.original.program = first->facts.program;
  expected.original.libraries = first->facts.libraries;
  expected.original.machine = first->facts.machine;
  expected.original_place = "on " + first->host.name;
  return expected;
}

CheckRow reached_row(const SurveyedHost& host, const RemoteShell& shell) {
  const std::string check = shell.is_ssh() ? "ssh" : "access";
  if (host.problem) return {host.host.name, check, Verdict::failed, host.problem->what, host.problem->remedy};
  if (host.is_here) return {host.host.name, check, Verdict::ok, "not needed: this machine"};
  const std::string at = host.facts.reached_at ? " at " + to_string(*host.facts.reached_at) : "";
  return {host.host.name, check, Verdict::ok, fmt::format("reached {}{}", host.facts.name, at)};
}

void append_duplicates(const Survey& survey, std::vector<CheckRow>& rows) {
  for (auto host = survey.hosts.begin(); host != survey.hosts.end(); ++host) {
    if (host->problem) continue;
    const auto twin = std::find_if(survey.hosts.begin(), host, [&](const SurveyedHost& other) {
      return !other.problem && other.facts.name == host->facts.name;
    });
    if (twin == host) continue;
    const bool same_machine = twin->facts.addresses == host->facts.addresses;
    rows.push_back({host->host.name, "name", Verdict::warning,
                    same_machine ? fmt::format("the same machine as {}", twin->host.name)
                                 : fmt::format("calls itself {}, as {} does", host->facts.name, twin->host.name),
                    same_machine ? fmt::format("list it once, with {} slots", twin->host.slots + host->host.slots)
                                 : "give each host a name of its own: Open MPI tells them apart by it"});
  }
}

// This machine takes part even when no rank runs on it: mpirun does.
NetworkChoice network(const PreflightRequest& request, const Survey& survey) {
  std::vector<NetworkMember> members;
  bool here_is_host = false;
  for (const SurveyedHost& host : survey.hosts) {
    if (host.problem) continue;
    here_is_host |= host.is_here;
    members.push_back({host.host.name, host.facts.addresses, host.facts.reached_at});
  }
  if (!here_is_host) members.push_back({"here", survey.here.addresses, std::nullopt});
  // By the address that the other side saw.
  for (NetworkMember& member : members) {
    const auto is_own = [&](const std::optional<Ipv4>& address) {
      return std::any_of(member.addresses.begin(), member.addresses.end(),
                         [&](const InterfaceAddress& own) { return own.address == address; });
    };
    if (member.addresses != survey.here.addresses) continue;
    for (const SurveyedHost& host : survey.hosts) {
      if (!host.is_here && is_own(host.facts.reached_from)) member.reached_at = host.facts.reached_from;
    }
  }
  return request.network_interfaces ? check_network(members, *request.network_interfaces) : choose_network(members);
}

}  // namespace

Surroundings Surroundings::of_this_process() {
  char directory[PATH_MAX] = {};
  return {.directory = getcwd(directory, sizeof directory) != nullptr ? directory : "/",
          .search_path = std::getenv("PATH") != nullptr ? variable("PATH") : "/bin:/usr/bin",  // execvp's own default
          .library_path = variable("LD_LIBRARY_PATH")};
}

PreflightResult preflight(const PreflightRequest& request) {
  const HostCache cache(request.cache_directory);
  const std::string key = cache_key(request);
  if (request.use_cache) {
    if (const auto network = cache.find(key, std::chrono::system_clock::now())) {
      return {.rows = {}, .passed = true, .remembered = true, .network = *network};
    }
  }
  const Surroundings& surroundings = request.surroundings;
  const Survey survey = survey_hosts(hosts_or_this_machine(request), request.shell,
                                     {.directory = surroundings.directory,
                                      .program = program_of(request),
                                      .fedrun = request.fedrun,
                                      .search_path = surroundings.search_path,
                                      .library_path = surroundings.library_path},
                                     request.limit);
  const Expectations expected = expectations(request, survey);
  PreflightResult result;
  for (const SurveyedHost& host : survey.hosts) {
    result.rows.push_back(reached_row(host, request.shell));
    if (host.problem) continue;
    const std::vector<CheckRow> rows = judge_host(host.host, host.facts, host.is_here, expected);
    result.rows.insert(result.rows.end(), rows.begin(), rows.end());
  }
  append_duplicates(survey, result.rows);
  const NetworkChoice choice = network(request, survey);
  result.rows.push_back(choice.row);
  result.network = choice.network;
  result.passed = std::none_of(result.rows.begin(), result.rows.end(),
                               [](const CheckRow& row) { return row.verdict == Verdict::failed; });
  if (result.passed) cache.remember(key, result.network, std::chrono::system_clock::now());
  return result;
}

fs::path host_cache_directory(const RunEnv::Lookup& lookup) {
  const char* cache = lookup("XDG_CACHE_HOME");
  if (cache != nullptr && fs::path(cache).is_absolute()) return fs::path(cache) / "fedrun" / "hosts";
  const char* home = lookup("HOME");
  return home != nullptr && fs::path(home).is_absolute() ? fs::path(home) / ".cache" / "fedrun" / "hosts" : fs::path();
}

}  // namespace fedrun::launcher
