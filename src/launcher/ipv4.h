// IPv4 addresses and networks, as `ip` writes them and as Open MPI reads them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fedrun::launcher {

using Ipv4 = std::uint32_t;  // the first of the four numbers in the highest byte

std::optional<Ipv4> parse_ipv4(std::string_view text);
std::string to_string(Ipv4 address);
bool is_loopback(Ipv4 address);

struct Ipv4Network {
  Ipv4 first = 0;  // the address whose host part is 0
  int prefix = 32;

  bool contains(Ipv4 address) const;
  std::string text() const;  // "10.0.0.0/24"
  bool operator==(const Ipv4Network&) const = default;
};

// "10.0.0.7/24" names the network 10.0.0.0/24.
std::optional<Ipv4Network> parse_network(std::string_view text);
Ipv4Network network_of(Ipv4 address, int prefix);

}  // namespace fedrun::launcher
