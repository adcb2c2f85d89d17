#include <arpa/inet.h>
#include <fedrun/launcher/ipv4.h>
#include <fmt/format.h>

#include <charconv>

namespace fedrun::launcher {
namespace {

Ipv4 mask(int prefix) { return prefix == 0 ? 0 : ~Ipv4{0} << (32 - prefix); }

}  // namespace

std::optional<Ipv4> parse_ipv4(std::string_view text) {
  in_addr address = {};
  if (inet_pton(AF_INET, std::string(text).c_str(), &address) != 1) return std::nullopt;
  return ntohl(address.s_addr);
}

std::string to_string(Ipv4 address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 255, address >> 8 & 255, address & 255);
}

bool is_loopback(Ipv4 address) { return address >> 24 == 127; }

bool Ipv4Network::contains(Ipv4 address) const { return (address & mask(prefix)) == first; }

std::string Ipv4Network::text() const { return fmt::format("{}/{}", to_string(first), prefix); }

std::optional<Ipv4Network> parse_network(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::optional<Ipv4> address = parse_ipv4(text.substr(0, slash));
  const std::string_view digits = text.substr(slash + 1);
  int prefix = -1;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), prefix);
  const bool is_number = problem == std::errc() && end == digits.data() + digits.size();
  if (!address || !is_number || prefix < 0 || prefix > 32) return std::nullopt;
  return network_of(*address, prefix);
}

Ipv4Network network_of(Ipv4 address, int prefix) { return {address & mask(prefix), prefix}; }

}  // namespace fedrun::launcher
