#include <fedrun/core/error.h>
#include <fedrun/core/parse.h>
#include <fedrun/launcher/run_commands.h>
#include <fedrun/launcher/slurm.h>
#include <fedrun/launcher/split_list.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace fedrun::launcher {
namespace {

constexpr size_t most_nodes = 65536;
constexpr size_t longest_name = 253;  // DNS allows no more
constexpr int most_slots = 65536;

struct Variable {
  const char* name;
  const char* value;
};

// The first of the names that is set and not empty. Slurm keeps old names beside the new ones.
std::optional<Variable> find_variable(const RunEnv::Lookup& lookup, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* value = lookup(name);
    if (value != nullptr && *value != '\0') return Variable{name, value};
  }
  return std::nullopt;
}

std::optional<Variable> node_list(const RunEnv::Lookup& lookup) {
  return find_variable(lookup, {"SLURM_JOB_NODELIST", "SLURM_NODELIST"});
}

// Runs `read` on the variable's text, and names the variable where that fails.
template <typename Read>
auto read_variable(const Variable& variable, Read read) {
  try {
    return read(std::string_view(variable.value));
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}='{}' of this Slurm allocation: {}; give the hosts by -H, or pass --no-slurm",
                                 variable.name, variable.value, error.what()));
  }
}

// Commas inside brackets separate numbers, those outside separate names.
std::vector<std::string_view> split_outside_brackets(std::string_view list) {
  std::vector<std::string_view> parts;
  bool inside = false;
  size_t begin = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '[' || list[i] == ']') {
      if (inside == (list[i] == '[')) throw UsageError("the brackets do not match");
      inside = !inside;
    } else if (list[i] == ',' && !inside) {
      parts.push_back(list.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  if (inside) throw UsageError("the brackets do not match");
  parts.push_back(list.substr(begin));
  return parts;
}

// "01-03" → 01 02 03: as wide as the first is written.
void append_range(std::vector<std::string>& numbers, std::string_view range) {
  constexpr int largest = 999'999'999;
  const size_t dash = std::min(range.find('-'), range.size());
  const std::string_view first_text = range.substr(0, dash);
  const int first = parse_integer(first_text, 0, largest);
  const int last = dash == range.size() ? first : parse_integer(range.substr(dash + 1), 0, largest);
  if (last < first) throw UsageError(fmt::format("the range {} runs backwards", range));
  if (static_cast<size_t>(last - first) >= most_nodes - numbers.size()) {
    throw UsageError(fmt::format("there are more than {} nodes", most_nodes));
  }
  for (int number = first; number <= last; ++number) {
    numbers.push_back(fmt::format("{:0{}}", number, std::min(first_text.size(), longest_name)));
  }
}

// Each name followed by each ending.
std::vector<std::string> combine(const std::vector<std::string>& names, const std::vector<std::string>& endings) {
  if (names.size() * endings.size() > most_nodes)
    throw UsageError(fmt::format("there are more than {} nodes", most_nodes));
  std::vector<std::string> longer;
  for (const std::string& name : names) {
    for (const std::string& ending : endings) {
      if (name.size() + ending.size() > longest_name) throw UsageError("a name is too long");
      longer.push_back(name + ending);
    }
  }
  return longer;
}

// "gpu[1-2]x" → gpu1x gpu2x. The brackets are known to match.
std::vector<std::string> expand_name(std::string_view text) {
  std::vector<std::string> names = {""};
  while (!text.empty()) {
    const size_t open = std::min(text.find('['), text.size());
    names = combine(names, {std::string(text.substr(0, open))});
    if (open == text.size()) break;
    const size_t close = text.find(']');
    std::vector<std::string> numbers;
    for (const std::string_view range : split_list(text.substr(open + 1, close - open - 1), ',')) {
      append_range(numbers, range);
    }
    names = combine(names, numbers);
    text.remove_prefix(close + 1);
  }
  return names;
}

std::vector<int> read_slots(const RunEnv::Lookup& lookup, size_t nodes) {
  const auto as_counts = [&](std::string_view text) { return expand_counts(text, nodes); };
  const auto as_count = [](std::string_view text) { return parse_integer(text, 1, most_slots); };
  if (const auto tasks = find_variable(lookup, {"SLURM_TASKS_PER_NODE"})) return read_variable(*tasks, as_counts);
  if (const auto tasks = find_variable(lookup, {"SLURM_NTASKS_PER_NODE"})) {
    return std::vector<int>(nodes, read_variable(*tasks, as_count));
  }
  std::vector<int> cpus(nodes, 1);
  if (const auto per_node = find_variable(lookup, {"SLURM_JOB_CPUS_PER_NODE"})) {
    cpus = read_variable(*per_node, as_counts);
  } else if (const auto here = find_variable(lookup, {"SLURM_CPUS_ON_NODE"})) {
    cpus.assign(nodes, read_variable(*here, as_count));
  }
  const auto of_a_task = find_variable(lookup, {"SLURM_CPUS_PER_TASK"});
  const int divisor = of_a_task ? read_variable(*of_a_task, as_count) : 1;
  for (int& count : cpus) count = std::max(1, count / divisor);
  return cpus;
}

}  // namespace

bool in_slurm_allocation(const RunEnv::Lookup& lookup) {
  return find_variable(lookup, {"SLURM_JOB_ID", "SLURM_JOBID"}) && node_list(lookup);
}

std::vector<std::string> expand_node_list(std::string_view list) {
  std::vector<std::string> nodes;
  for (const std::string_view part : split_outside_brackets(list)) {
    for (const std::string& name : expand_name(part)) nodes.push_back(checked_host_name(name));
    if (nodes.size() > most_nodes) throw UsageError(fmt::format("there are more than {} nodes", most_nodes));
  }
  return nodes;
}

std::vector<int> expand_counts(std::string_view text, size_t nodes) {
  std::vector<int> counts;
  for (std::string_view part : split_list(text, ',')) {
    int times = 1;
    if (const size_t open = part.find("(x"); open != std::string_view::npos && part.ends_with(')')) {
      times = parse_integer(part.substr(open + 2, part.size() - open - 3), 1, static_cast<int>(most_nodes));
      part = part.substr(0, open);
    }
    const int count = parse_integer(part, 1, most_slots);
    if (counts.size() + static_cast<size_t>(times) > nodes) {
      throw UsageError(fmt::format("it has numbers for more than the {} nodes", nodes));
    }
    counts.insert(counts.end(), static_cast<size_t>(times), count);
  }
  if (counts.size() < nodes)
    throw UsageError(fmt::format("it has numbers for {} of the {} nodes", counts.size(), nodes));
  return counts;
}

std::optional<std::vector<std::string>> ask_scontrol(const std::string& list) {
  const CommandResult answer = run_commands({{{"scontrol", "show", "hostnames", list}}}, std::chrono::seconds(5))[0];
  if (!answer.succeeded()) return std::nullopt;
  std::vector<std::string> nodes;
  for (const std::string_view line : split_list(answer.output, '\n')) {
    if (!line.empty()) nodes.emplace_back(line);
  }
  return nodes;
}

std::vector<Host> slurm_hosts(const RunEnv::Lookup& lookup, const NodeListReader& reader) {
  const Variable list = node_list(lookup).value();
  const std::vector<std::string> names = read_variable(list, [&](std::string_view text) {
    // A list that begins with a dash would be an option to scontrol.
    const auto answer = text.starts_with('-') ? std::nullopt : reader(std::string(text));
    if (!answer || answer->empty()) return expand_node_list(text);
    for (const std::string& name : *answer) checked_host_name(name);
    return *answer;
  });
  const std::vector<int> slots = read_slots(lookup, names.size());
  std::vector<Host> hosts;
  for (size_t i = 0; i < names.size(); ++i) hosts.push_back({names[i], slots[i]});
  return hosts;
}

}  // namespace fedrun::launcher
