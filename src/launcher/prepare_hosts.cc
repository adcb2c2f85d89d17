#include <fedrun/core/error.h>
#include <fedrun/launcher/check_table.h>
#include <fedrun/launcher/flag_values.h>
#include <fedrun/launcher/prepare_hosts.h>
#include <fedrun/launcher/sync.h>
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <optional>

namespace fedrun::launcher {
namespace {

namespace fs = std::filesystem;

std::string value_of(const char* name, const RunEnv::Lookup& lookup) {
  const char* value = lookup(name);
  return value != nullptr ? value : "";
}

bool wants_gpus(const Options& options, const RunEnv::Lookup& lookup) {
  std::string device = value_of("FEDRUN_DEVICE", lookup);
  for (const auto& [name, value] : options.settings) {
    if (name == "FEDRUN_DEVICE") device = value;
  }
  return device == "cuda";
}

// By the flag, or as Open MPI's users are used to say it.
std::optional<std::string> wanted_network(const Options& options, const RunEnv::Lookup& lookup) {
  constexpr const char* name = "OMPI_MCA_btl_tcp_if_include";
  if (options.network_interfaces || lookup(name) == nullptr) return options.network_interfaces;
  try {
    return network_interfaces_value(lookup(name));
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", name, error.what()));
  }
}

PreflightRequest request_for(const Options& options, const std::vector<Host>& hosts, const RunEnv::Lookup& lookup) {
  return {.hosts = hosts,
          .shell = remote_shell(options, lookup),
          .program = options.program,
          .fedrun = fs::read_symlink("/proc/self/exe"),
          .network_interfaces = wanted_network(options, lookup),
          .gpus_expected = wants_gpus(options, lookup),
          .cache_directory = host_cache_directory(lookup)};
}

void sync(const Options& options, const PreflightRequest& request) {
  sync_to_hosts({.paths = options.sync,
                 .hosts = request.hosts,
                 .shell = request.shell,
                 .program = request.program,
                 .fedrun = request.fedrun,
                 .say = [](std::string_view text) { fmt::print(stderr, "fedrun: {}\n", text); }});
}

}  // namespace

RemoteShell remote_shell(const Options& options, const RunEnv::Lookup& lookup) {
  const std::string path = value_of("PATH", lookup);
  return {.agent = choose_agent(value_of("OMPI_MCA_plm_rsh_agent", lookup), path),
          .port = options.ssh_port,
          .identity_file = options.ssh_identity_file};
}

PreflightResult check_hosts(const Options& options, const std::vector<Host>& hosts, const RunEnv::Lookup& lookup) {
  if (!options.sync.empty()) throw UsageError("check copies nothing: leave --sync out, or start the run with it");
  return preflight(request_for(options, hosts, lookup));
}

std::string prepare_hosts(const Options& options, const std::vector<Host>& hosts, const RunEnv::Lookup& lookup) {
  PreflightRequest request = request_for(options, hosts, lookup);
  // What was just copied is asked for again: rsync has said that it arrived, not that it can run there.
  request.use_cache = options.use_cache && options.sync.empty();
  if (!options.sync.empty()) sync(options, request);
  const PreflightResult result = preflight(request);
  if (!result.passed) {
    throw BackendError(
        fmt::format("nothing was started, because a host is not ready:\n{}('fedrun check' with the same "
                    "hosts and program shows all checks)",
                    check_failures(result)));
  }
  if (options.verbose) {
    fmt::print(stderr, "fedrun: the hosts {}{}\n",
               result.remembered ? "passed the checks a short while ago" : "have passed the checks",
               result.network.empty() ? "" : fmt::format("; network {}", result.network));
  }
  return result.network;
}

}  // namespace fedrun::launcher
