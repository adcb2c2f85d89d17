// Which of the hosts are the machine that fedrun runs on, whatever they are called.
#pragma once

#include <fedrun/launcher/hosts.h>
#include <fedrun/launcher/ipv4.h>

#include <chrono>
#include <vector>

namespace fedrun::launcher {

// The IPv4 addresses of this machine, loopback included.
std::vector<Ipv4> own_addresses();

// For each host whether it is this machine: by its name, or because its address is one of ours. A name that the name
// service does not resolve within `limit` is that of another machine.
std::vector<bool> find_local_hosts(const std::vector<Host>& hosts, std::chrono::milliseconds limit);

}  // namespace fedrun::launcher
