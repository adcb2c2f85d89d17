// Where the user wants the ranks: hosts from the flags, from the Slurm allocation, or this machine.
#pragma once

#include <fedrun/core/run_env.h>
#include <fedrun/launcher/hosts.h>
#include <fedrun/launcher/options.h>
#include <fedrun/launcher/slurm.h>

#include <vector>

namespace fedrun::launcher {

enum class HostSource { this_machine, list, file, slurm };

struct RequestedHosts {
  HostSource source = HostSource::this_machine;
  std::vector<Host> hosts;  // empty: this machine

  bool operator==(const RequestedHosts&) const = default;
};

// -H and --hostfile win over the allocation, and --no-slurm ignores it. Throws UsageError.
RequestedHosts requested_hosts(const Options& options, const RunEnv::Lookup& lookup,
                               const NodeListReader& reader = ask_scontrol);

}  // namespace fedrun::launcher
