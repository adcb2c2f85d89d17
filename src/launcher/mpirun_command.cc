#include <fedrun/launcher/mpirun_command.h>
#include <fedrun/launcher/shell_words.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace fedrun::launcher {
namespace {

void append(std::vector<std::string>& list, std::initializer_list<std::string> more) { list.insert(list.end(), more); }

void append_mca(std::vector<std::string>& arguments, const Launch& launch, const std::string& name,
                const std::string& value) {
  if (!launch.mca_parameters.contains(name)) append(arguments, {"--mca", name, value});
}

// The host of each rank.
std::string host_list(const Placement& placement) {
  std::string list;
  for (const RankPlace& place : ranks_in_order(placement)) list += (list.empty() ? "" : ",") + place.host;
  return list;
}

bool is_full_domain_name(const Host& host) {
  const bool has_letter =
      std::any_of(host.name.begin(), host.name.end(), [](unsigned char c) { return std::isalpha(c); });
  return has_letter && host.name.find('.') != std::string::npos;
}

void append_placement(std::vector<std::string>& arguments, const Launch& launch) {
  const Placement& placement = launch.placement;
  append(arguments, {"-np", fmt::format("{}", placement.ranks)});
  if (placement.hosts.empty()) {
    // A permission, not a request: mpirun counts physical cores as slots, and this machine takes any number of ranks.
    append(arguments, {"--oversubscribe"});
  } else {
    // Given slots instead, mpirun would begin with the host that it runs on, wherever that stands among the others.
    append(arguments, {"--host", host_list(placement), "--map-by", "seq"});
  }
  // mpirun's default binds a rank to one core, and all its compute threads with it; without binding, the kernel spreads
  // them over the cores that the thread budget counts. It also works in containers that forbid binding.
  append(arguments, {"--bind-to", "none"});
}

void append_remote_start(std::vector<std::string>& arguments, const Launch& launch) {
  if (launch.ignores_slurm) {  // mpirun would take only hosts of the allocation
    append_mca(arguments, launch, "plm", "rsh");
    append_mca(arguments, launch, "ras", "^slurm");
  }
  if (launch.placement.on_this_machine()) return;
  // mpirun would cut node1.example.org down to node1, and ssh might not find that.
  const std::vector<Host>& hosts = launch.placement.hosts;
  if (std::any_of(hosts.begin(), hosts.end(), is_full_domain_name)) {
    append_mca(arguments, launch, "orte_keep_fqdn_hostnames", "1");
  }
  if (launch.hosts_from_slurm) return;
  for (const auto& [name, value] : launch.remote_parameters) append_mca(arguments, launch, name, value);
}

void append_transports(std::vector<std::string>& arguments, const Launch& launch) {
  // Ranks of one host need no network. Not asking every network driver for devices starts 2 ranks in 190 ms instead of
  // 360 ms, and spares warnings on machines without such devices. With more hosts the choice is Open MPI's, because
  // only it knows their networks. (Only excluding drivers, as in btl=^openib, replaces the exclusions in Debian's
  // configuration file, and start-up takes 1.5 s.)
  if (launch.placement.on_one_host()) {
    append_mca(arguments, launch, "pml", "ob1");
    append_mca(arguments, launch, "btl", "self,vader,tcp");
  }
  if (!launch.network.empty()) {
    append_mca(arguments, launch, "btl_tcp_if_include", launch.network);
    append_mca(arguments, launch, "oob_tcp_if_include", launch.network);
  }
  // A rank that spins while it waits keeps a core from the rank that it waits for, or from a compute thread. Reducing
  // 100 kB among 2 ranks on 2 busy cores takes 0.05 ms when they yield and 0.2 to 20 ms when they spin; 4 ranks: 0.2 ms
  // and 60 ms.
  append_mca(arguments, launch, "mpi_yield_when_idle", "1");
}

}  // namespace

MpirunCommand make_mpirun_command(const Launch& launch) {
  MpirunCommand command;
  command.arguments = {"mpirun"};
  if (launch.as_root) append(command.arguments, {"--allow-run-as-root"});
  append_placement(command.arguments, launch);
  append_remote_start(command.arguments, launch);
  append_transports(command.arguments, launch);
  command.arguments.insert(command.arguments.end(), launch.mpi_arguments.begin(), launch.mpi_arguments.end());
  for (const PassedVariable& variable : launch.variables) {
    // The value travels in the environment, because mpirun takes -x NAME=VALUE apart and may misread it.
    if (variable.value) command.environment.emplace_back(variable.name, *variable.value);
    append(command.arguments, {"-x", variable.name});
  }
  command.arguments.push_back(launch.fedrun);
  for (std::string& word : to_arguments(launch.keeper)) command.arguments.push_back(std::move(word));
  return command;
}

std::string to_shell(const MpirunCommand& command) {
  std::string line;
  for (const auto& [name, value] : command.environment) line += fmt::format("{}={} ", name, shell_quote(value));
  for (const std::string& argument : command.arguments) {
    line += fmt::format("{}{}", &argument == command.arguments.data() ? "" : " ", shell_quote(argument));
  }
  return line;
}

}  // namespace fedrun::launcher
