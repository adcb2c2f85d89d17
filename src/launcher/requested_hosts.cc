#include <fedrun/launcher/requested_hosts.h>

namespace fedrun::launcher {

RequestedHosts requested_hosts(const Options& options, const RunEnv::Lookup& lookup, const NodeListReader& reader) {
  if (options.hosts) return {HostSource::list, parse_hosts(*options.hosts, options.slots_per_host)};
  if (options.hostfile) return {HostSource::file, read_hostfile(*options.hostfile, options.slots_per_host)};
  if (options.use_slurm && in_slurm_allocation(lookup)) return {HostSource::slurm, slurm_hosts(lookup, reader)};
  return {};
}

}  // namespace fedrun::launcher
