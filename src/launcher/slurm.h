// The hosts and slots of the Slurm allocation that fedrun was started in.
#pragma once

#include <fedrun/core/run_env.h>
#include <fedrun/launcher/hosts.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fedrun::launcher {

bool in_slurm_allocation(const RunEnv::Lookup& lookup);

// "node[01-03,7],gpu[1-2]x,login" → node01 node02 node03 node7 gpu1x gpu2x login. Throws UsageError.
std::vector<std::string> expand_node_list(std::string_view list);

// "2(x3),1" → 2 2 2 1, at most `nodes` numbers. Throws UsageError.
std::vector<int> expand_counts(std::string_view text, size_t nodes);

// The names that a node list stands for; nothing when it cannot be told.
using NodeListReader = std::function<std::optional<std::vector<std::string>>(const std::string& list)>;

// By `scontrol show hostnames`, which knows every form of list; nothing when there is no scontrol or no answer soon.
std::optional<std::vector<std::string>> ask_scontrol(const std::string& list);

// Only inside an allocation. `reader` is asked first, then expand_node_list. Slots are the tasks of each node, or its
// CPUs divided by those of a task. Throws UsageError that names the variable.
std::vector<Host> slurm_hosts(const RunEnv::Lookup& lookup, const NodeListReader& reader);

}  // namespace fedrun::launcher
