#include <fedrun/launcher/shell_words.h>
#include <fedrun/launcher/ssh_failure.h>
#include <fmt/format.h>

#include <cstring>

namespace fedrun::launcher {
namespace {

// The words that say most usually come last.
std::string last_line(std::string_view text) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  return std::string(text.substr(text.rfind('\n') + 1));
}

std::string try_it(const Host& host, const RemoteShell& shell) {
  return fmt::format("try: {}", shell.by_hand(host, "true"));
}

std::string at_port(const RemoteShell& shell) { return shell.port ? fmt::format(" at port {}", *shell.port) : ""; }

// As ssh writes a host into its known_hosts.
std::string known_as(const Host& host, const RemoteShell& shell) {
  return shell.port && *shell.port != 22 ? fmt::format("[{}]:{}", host.name, *shell.port) : host.name;
}

}  // namespace

Explanation explain_ssh_failure(const CommandResult& result, const Host& host, const RemoteShell& shell,
                                std::chrono::seconds limit) {
  const auto said = [&](std::string_view words) { return result.errors.find(words) != std::string::npos; };
  const std::string try_by_hand = try_it(host, shell);
  if (result.start_error != 0) {
    return {fmt::format("{} cannot be started here: {}", shell.words()[0], std::strerror(result.start_error)),
            shell.is_ssh() ? "install it: the Debian package is openssh-client"
                           : "correct OMPI_MCA_plm_rsh_agent, or unset it"};
  }
  if (said("Could not resolve hostname")) {
    return {"the name is not known here", fmt::format("check the spelling, or add the name to DNS or /etc/hosts; {}",
                                                      "try: getent hosts " + shell_quote(host.name))};
  }
  if (said("REMOTE HOST IDENTIFICATION HAS CHANGED")) {
    return {"its host key has changed since ssh saw it last",
            fmt::format("if it was installed anew: ssh-keygen -R {}, then accept the new key by: {}",
                        shell_quote(known_as(host, shell)), shell.by_hand(host, "true"))};
  }
  if (said("Host key verification failed")) {
    return {"ssh does not know its host key yet",
            fmt::format("accept the key once by: {}", shell.by_hand(host, "true"))};
  }
  if (said("Permission denied")) {
    const bool by_password = said("password") || said("keyboard-interactive");
    return {by_password ? "it wants a password" : "it does not accept our key",
            fmt::format("{}{}; {}", shell.identity_file ? "check --ssh-identity-file, or " : "",
                        "bring the key there by: " + shell.copy_key(host), try_by_hand)};
  }
  if (said("Connection refused")) {
    return {fmt::format("no ssh server listens there{}", at_port(shell)),
            fmt::format("start it, or name its port by --ssh-port; {}", try_by_hand)};
  }
  if (result.late || said("timed out") || said("Connection timed out during banner exchange")) {
    return {fmt::format("no answer within {} s{}", limit.count(), at_port(shell)),
            fmt::format("is it running, and does a firewall let ssh through? {}", try_by_hand)};
  }
  if (said("No route to host") || said("Network is unreachable")) {
    return {fmt::format("no host answers at this address ({})", last_line(result.errors)),
            fmt::format("is it running, and is the address right? {}", try_by_hand)};
  }
  if (result.exit_code == 127 || said("sh: not found")) {
    return {"its login shell finds no sh: " + last_line(result.errors),
            fmt::format("fedrun needs a POSIX sh on the PATH there; {}", shell.by_hand(host, "command -v sh"))};
  }
  if (result.succeeded()) {
    return {"the check did not run to its end there",
            fmt::format("does its login shell run commands given to ssh? try: {}", shell.by_hand(host, "echo hello"))};
  }
  const std::string last = last_line(result.errors);
  return {fmt::format("{} failed{}{}", shell.words()[0],
                      last.empty() ? fmt::format(" with code {}", result.exit_code) : ": ", last),
          try_by_hand};
}

}  // namespace fedrun::launcher
