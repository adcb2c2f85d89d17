#include <fedrun/core/error.h>
#include <fedrun/launcher/gpu_mapping.h>
#include <fedrun/launcher/rank_environment.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace fedrun::launcher {
namespace {

class Variables {
 public:
  void set(PassedVariable variable) {
    const auto known = find(variable.name);
    if (known == list_.end()) {
      list_.push_back(std::move(variable));
    } else if (variable.value) {
      known->value = std::move(variable.value);
    }
  }

  const char* value_of(const char* name, const RunEnv::Lookup& lookup) {
    const auto known = find(name);
    return known != list_.end() && known->value ? known->value->c_str() : lookup(name);
  }

  std::vector<PassedVariable> take() && { return std::move(list_); }

 private:
  std::vector<PassedVariable>::iterator find(std::string_view name) {
    return std::find_if(list_.begin(), list_.end(), [&](const PassedVariable& known) { return known.name == name; });
  }

  std::vector<PassedVariable> list_;
};

void require_name(std::string_view name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  if (name.empty() || !plain || std::isdigit(static_cast<unsigned char>(name[0]))) {
    throw UsageError(
        fmt::format("-x: '{}' is no name for an environment variable; write -x NAME or -x NAME=VALUE", name));
  }
}

PassedVariable parse_pass(const std::string& text, const RunEnv::Lookup& lookup) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  require_name(name);
  if (equals != std::string::npos) return {name, text.substr(equals + 1)};
  if (lookup(name.c_str()) == nullptr) {
    throw UsageError(fmt::format("-x {}: the variable is not set here; set it, or write -x {}=VALUE", name, name));
  }
  return {name, std::nullopt};
}

// NCCL looks for interfaces by itself unless it is told their names; it knows no networks such as 10.0.0.0/8.
void tell_nccl_of_interfaces(const std::string& names_and_networks, Variables& variables) {
  if (names_and_networks.find('/') != std::string::npos) return;
  variables.set({"NCCL_SOCKET_IFNAME", '=' + names_and_networks});  // '=': exactly these, not what begins like them
}

}  // namespace

std::vector<PassedVariable> rank_environment(const Options& options, const Placement& placement, int terminal_columns,
                                             const RunEnv::Lookup& lookup, const std::vector<int>& gpus) {
  Variables variables;
  const auto pass_if_set = [&](const char* name) {
    if (lookup(name) != nullptr) variables.set({name, std::nullopt});
  };
  for (const RunVariable& variable : run_variables()) pass_if_set(variable.name);
  // The shell that ssh starts on another host reads other start-up files than the one the user types in.
  if (!placement.on_this_machine()) {
    pass_if_set("PATH");
    pass_if_set("LD_LIBRARY_PATH");
  }
  // One from our own environment belongs to a run that we are a rank of; empty is as good as unset.
  if (!gpus.empty() || lookup("FEDRUN_GPU_OF_RANK") != nullptr) variables.set({"FEDRUN_GPU_OF_RANK", gpu_list(gpus)});
  if (options.network_interfaces && lookup("NCCL_SOCKET_IFNAME") == nullptr) {
    tell_nccl_of_interfaces(*options.network_interfaces, variables);
  }
  for (const auto& [name, value] : options.settings) variables.set({name, value});
  for (const std::string& text : options.pass) variables.set(parse_pass(text, lookup));
  // mpirun gives each rank a pseudo-terminal, so a rank cannot find out by itself.
  variables.set({"FEDRUN_TERMINAL_COLUMNS", fmt::format("{}", terminal_columns)});

  RunEnv::from([&](const char* name) { return variables.value_of(name, lookup); });
  return std::move(variables).take();
}

}  // namespace fedrun::launcher
