// Which network the hosts of a run talk over, so that Open MPI does not try bridges and tunnels that lead nowhere.
#pragma once

#include <fedrun/launcher/checks.h>
#include <fedrun/launcher/host_facts.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fedrun::launcher {

struct NetworkMember {
  std::string host;
  std::vector<InterfaceAddress> addresses;
  std::optional<Ipv4> reached_at;  // the address by which the others know it
};

struct NetworkChoice {
  // For Open MPI's btl_tcp_if_include and oob_tcp_if_include: a network such as 10.0.0.0/24, or names of interfaces.
  // Empty: it needs none, or is to find out by itself.
  std::string network;
  CheckRow row;
};

// Prefers the network by which the hosts are reached. A network is given by its addresses, because interfaces are
// called differently on different hosts. Addresses that several hosts have, as those of docker's bridges, lead nowhere.
NetworkChoice choose_network(const std::vector<NetworkMember>& members);

// Whether every host has one of the interfaces or networks that the user lists, such as "eth0,ib0" or "10.0.0.0/24".
NetworkChoice check_network(const std::vector<NetworkMember>& members, std::string_view list);

}  // namespace fedrun::launcher
