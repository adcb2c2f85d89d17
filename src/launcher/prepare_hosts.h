// What fedrun does about the hosts before it starts mpirun on them, and all that `fedrun check` does.
#pragma once

#include <fedrun/core/run_env.h>
#include <fedrun/launcher/options.h>
#include <fedrun/launcher/preflight.h>
#include <fedrun/launcher/remote_shell.h>

#include <string>
#include <vector>

namespace fedrun::launcher {

// The way to other hosts that flags and OMPI_MCA_plm_rsh_agent ask for.
RemoteShell remote_shell(const Options& options, const RunEnv::Lookup& lookup);

// Asks the hosts anew, whatever is remembered of them. No hosts: this machine. Throws UsageError for --sync.
PreflightResult check_hosts(const Options& options, const std::vector<Host>& hosts, const RunEnv::Lookup& lookup);

// Copies what --sync names, then checks the hosts. Returns the network for Open MPI's btl_tcp_if_include and
// oob_tcp_if_include; empty: leave them alone. Throws BackendError with what is wrong on which host, and remedies.
std::string prepare_hosts(const Options& options, const std::vector<Host>& hosts, const RunEnv::Lookup& lookup);

}  // namespace fedrun::launcher
