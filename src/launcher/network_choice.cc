#include <fedrun/launcher/network_choice.h>
#include <fedrun/launcher/split_list.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <tuple>

namespace fedrun::launcher {
namespace {

constexpr const char* all_hosts = "all";
constexpr const char* check_name = "network";

// Made by container and virtualisation software, for what runs inside one host.
bool is_inside_one_host(std::string_view interface) {
  constexpr std::array<std::string_view, 9> beginnings = {"docker", "br-",    "virbr", "veth",    "vnet",
                                                          "cni",    "podman", "lxc",   "flannel."};
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return interface.starts_with(beginning); });
}

std::string describe(const InterfaceAddress& address) {
  return fmt::format("{}{}{}{}", address.interface, address.interface.empty() ? "" : " ", to_string(address.address),
                     address.network ? fmt::format("/{}", address.network->prefix) : "");
}

std::string describe(const NetworkMember& member) {
  std::vector<std::string> texts;
  for (const InterfaceAddress& address : member.addresses) {
    if (!is_loopback(address.address)) texts.push_back(describe(address));
  }
  return fmt::format("{}: {}", member.host, texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", ")));
}

std::string addresses_of_all(const std::vector<NetworkMember>& members) {
  std::vector<std::string> texts;
  for (const NetworkMember& member : members) texts.push_back(describe(member));
  return fmt::format("{}", fmt::join(texts, "; "));
}

// A machine that is listed under two names counts once; else its addresses would seem to be on several hosts.
std::vector<NetworkMember> distinct(const std::vector<NetworkMember>& members) {
  std::vector<NetworkMember> machines;
  for (const NetworkMember& member : members) {
    const auto same = std::find_if(machines.begin(), machines.end(),
                                   [&](const NetworkMember& known) { return known.addresses == member.addresses; });
    if (same == machines.end()) machines.push_back(member);
  }
  return machines;
}

// Leaves the addresses at which others can reach a machine.
void remove_useless_addresses(std::vector<NetworkMember>& machines) {
  const std::vector<NetworkMember> all = machines;
  const auto is_elsewhere = [&](const NetworkMember& owner, Ipv4 address) {
    return std::any_of(all.begin(), all.end(), [&](const NetworkMember& other) {
      return other.host != owner.host &&
             std::any_of(other.addresses.begin(), other.addresses.end(),
                         [&](const InterfaceAddress& theirs) { return theirs.address == address; });
    });
  };
  for (NetworkMember& machine : machines) {
    std::erase_if(machine.addresses, [&](const InterfaceAddress& own) {
      return is_loopback(own.address) || is_elsewhere(machine, own.address);
    });
  }
}

const InterfaceAddress* address_in(const NetworkMember& machine, const Ipv4Network& network) {
  const auto found = std::find_if(machine.addresses.begin(), machine.addresses.end(),
                                  [&](const InterfaceAddress& own) { return network.contains(own.address); });
  return found == machine.addresses.end() ? nullptr : &*found;
}

// How good a network is; the greater, the better.
using Merit = std::tuple<int, int, int>;

Merit merit(const Ipv4Network& network, const std::vector<NetworkMember>& machines) {
  int reached = 0;
  int real = 0;
  for (const NetworkMember& machine : machines) {
    reached += machine.reached_at && network.contains(*machine.reached_at);
    real += !is_inside_one_host(address_in(machine, network)->interface);
  }
  return {reached, real, network.prefix};
}

std::optional<Ipv4Network> best_common_network(const std::vector<NetworkMember>& machines) {
  std::optional<Ipv4Network> best;
  for (const NetworkMember& machine : machines) {
    for (const InterfaceAddress& address : machine.addresses) {
      const std::optional<Ipv4Network>& network = address.network;
      const bool is_common = network && std::all_of(machines.begin(), machines.end(), [&](const NetworkMember& other) {
                               return address_in(other, *network) != nullptr;
                             });
      if (is_common && (!best || merit(*network, machines) > merit(*best, machines))) best = network;
    }
  }
  return best;
}

// The interfaces by which the hosts are reached; empty when one is reached at an address that it does not have.
std::vector<std::string> interfaces_reached(const std::vector<NetworkMember>& machines) {
  std::vector<std::string> names;
  for (const NetworkMember& machine : machines) {
    const auto own =
        std::find_if(machine.addresses.begin(), machine.addresses.end(),
                     [&](const InterfaceAddress& address) { return address.address == machine.reached_at; });
    if (own == machine.addresses.end() || own->interface.empty()) return {};
    if (std::find(names.begin(), names.end(), own->interface) == names.end()) names.push_back(own->interface);
  }
  return names;
}

CheckRow shared_row(const Ipv4Network& network, const std::vector<NetworkMember>& machines) {
  std::vector<std::string> texts;
  for (const NetworkMember& machine : machines) {
    texts.push_back(fmt::format("{} {}", machine.host, describe(*address_in(machine, network))));
  }
  return {all_hosts, check_name, Verdict::ok, fmt::format("{} ({})", network.text(), fmt::join(texts, ", "))};
}

bool has_item(const NetworkMember& member, std::string_view item) {
  const std::optional<Ipv4Network> network = parse_network(item);
  return std::any_of(member.addresses.begin(), member.addresses.end(), [&](const InterfaceAddress& own) {
    return network ? network->contains(own.address) : own.interface == item;
  });
}

}  // namespace

NetworkChoice choose_network(const std::vector<NetworkMember>& members) {
  std::vector<NetworkMember> machines = distinct(members);
  if (machines.size() <= 1) return {"", {all_hosts, check_name, Verdict::ok, "not needed: all is on one machine"}};
  remove_useless_addresses(machines);
  if (const auto network = best_common_network(machines)) return {network->text(), shared_row(*network, machines)};

  // Not in one network, yet reached at addresses of their own: a router connects them, or, as in some clouds, each
  // address is a network of its own.
  const std::vector<std::string> interfaces = interfaces_reached(machines);
  if (interfaces.size() == 1) {
    return {interfaces[0],
            {all_hosts, check_name, Verdict::ok,
             fmt::format("interface {}, through a router ({})", interfaces[0], addresses_of_all(machines))}};
  }
  if (!interfaces.empty()) {
    return {"",
            {all_hosts, check_name, Verdict::warning,
             fmt::format("not in one network; Open MPI tries all addresses ({})", addresses_of_all(members)),
             fmt::format("if the ranks do not find each other: --network-interfaces {}", fmt::join(interfaces, ","))}};
  }
  return {"",
          {all_hosts, check_name, Verdict::failed,
           fmt::format("the hosts have no network in common ({})", addresses_of_all(members)),
           "if one can be reached from the others all the same, name the interfaces: --network-interfaces eth0,eth1"}};
}

NetworkChoice check_network(const std::vector<NetworkMember>& members, std::string_view list) {
  const std::vector<std::string_view> items = split_list(list, ',');
  std::vector<std::string> without;
  for (const NetworkMember& member : members) {
    const bool has_one =
        std::any_of(items.begin(), items.end(), [&](std::string_view item) { return has_item(member, item); });
    if (!has_one) without.push_back(describe(member));
  }
  if (without.empty()) {
    return {std::string(list), {all_hosts, check_name, Verdict::ok, fmt::format("{}, as you asked", list)}};
  }
  return {std::string(list),
          {all_hosts, check_name, Verdict::failed,
           fmt::format("--network-interfaces {} fits no address of {}", list, fmt::join(without, "; ")),
           "add the interfaces of these hosts, or leave it out: fedrun looks for a network that all have"}};
}

}  // namespace fedrun::launcher
