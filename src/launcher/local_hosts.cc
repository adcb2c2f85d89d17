#include <fedrun/launcher/local_hosts.h>
#include <fedrun/launcher/run_commands.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>

namespace fedrun::launcher {

std::vector<Ipv4> own_addresses() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  std::vector<Ipv4> addresses;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    addresses.push_back(ntohl(reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr.s_addr));
  }
  return addresses;
}

std::vector<bool> find_local_hosts(const std::vector<Host>& hosts, std::chrono::milliseconds limit) {
  const std::vector<Ipv4> own = own_addresses();
  const auto is_own = [&](Ipv4 address) {
    return is_loopback(address) || std::find(own.begin(), own.end(), address) != own.end();
  };
  std::vector<bool> local(hosts.size());
  std::vector<Command> questions;
  std::vector<size_t> asked;
  for (size_t i = 0; i < hosts.size(); ++i) {
    const std::optional<Ipv4> address = parse_ipv4(hosts[i].name);
    local[i] = is_this_machine(hosts[i]) || (address && is_own(*address));
    if (local[i] || address) continue;
    // getaddrinfo would wait for a name server as long as that likes.
    questions.push_back({{"getent", "ahostsv4", "--", hosts[i].name}});
    asked.push_back(i);
  }
  const std::vector<CommandResult> answers = run_commands(questions, limit);
  for (size_t i = 0; i < answers.size(); ++i) {
    std::istringstream first_line(answers[i].output);
    std::string word;
    first_line >> word;
    const std::optional<Ipv4> address = parse_ipv4(word);
    local[asked[i]] = address && is_own(*address);
  }
  return local;
}

}  // namespace fedrun::launcher
