// Asks all hosts of a run for their facts at once, in bounded time.
#pragma once

#include <fedrun/launcher/host_facts.h>
#include <fedrun/launcher/host_probe.h>
#include <fedrun/launcher/remote_shell.h>
#include <fedrun/launcher/ssh_failure.h>

#include <chrono>
#include <optional>
#include <vector>

namespace fedrun::launcher {

struct SurveyedHost {
  Host host;
  bool is_here = false;                     // the machine that fedrun runs on
  HostFacts facts = {};                     // when it was reached
  std::optional<Explanation> problem = {};  // why it was not
};

struct Survey {
  HostFacts here;                   // this machine, also when it is not one of the hosts
  std::vector<SurveyedHost> hosts;  // in the order in which they were given
};

// Hosts that do not answer within `limit` are given up. Throws BackendError when this machine itself cannot be asked.
Survey survey_hosts(const std::vector<Host>& hosts, const RemoteShell& shell, const ProbeQuestions& questions,
                    std::chrono::seconds limit);

}  // namespace fedrun::launcher
