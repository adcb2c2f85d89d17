#include <fedrun/core/error.h>
#include <fedrun/launcher/host_survey.h>
#include <fedrun/launcher/local_hosts.h>
#include <fedrun/launcher/run_commands.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace fedrun::launcher {
namespace {

// A name server that answers does so at once; one that does not must leave time for ssh.
constexpr std::chrono::milliseconds name_limit{2000};

HostFacts facts_of(const CommandResult& result) {
  HostFacts facts = parse_probe(result.output, result.last_output_at);
  if (!result.succeeded()) facts.complete = false;
  return facts;
}

HostFacts facts_of_this_machine(const CommandResult& result) {
  HostFacts facts = facts_of(result);
  if (facts.complete) return facts;
  throw BackendError(fmt::format("this machine cannot be checked: sh {}",
                                 result.start_error != 0 ? std::strerror(result.start_error)
                                 : result.late           ? "takes too long; is a file system not answering?"
                                                         : fmt::format("ended with code {}", result.exit_code)));
}

}  // namespace

Survey survey_hosts(const std::vector<Host>& hosts, const RemoteShell& shell, const ProbeQuestions& questions,
                    std::chrono::seconds limit) {
  const std::vector<bool> is_here = find_local_hosts(hosts, std::min<std::chrono::milliseconds>(name_limit, limit));
  const std::string script = probe_script(questions);
  RemoteShell impatient = shell;  // ssh's own words about a host that does not answer come before ours
  impatient.connect_limit = std::max(std::chrono::seconds(1), limit - std::chrono::seconds(3));
  std::vector<Command> commands = {{{"sh", "-s"}, script}};
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (!is_here[i]) commands.push_back({impatient.command(hosts[i], "sh -s"), script});
  }
  const std::vector<CommandResult> results = run_commands(commands, limit);

  Survey survey;
  survey.here = facts_of_this_machine(results[0]);
  size_t next = 1;
  for (size_t i = 0; i < hosts.size(); ++i) {
    SurveyedHost& host = survey.hosts.emplace_back(SurveyedHost{.host = hosts[i], .is_here = is_here[i]});
    if (host.is_here) {
      host.facts = survey.here;
      continue;
    }
    const CommandResult& result = results[next++];
    host.facts = facts_of(result);
    if (!host.facts.complete) host.problem = explain_ssh_failure(result, hosts[i], shell, limit);
  }
  return survey;
}

}  // namespace fedrun::launcher
