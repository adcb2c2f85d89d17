#include <fedrun/core/error.h>
#include <fedrun/train/distributed_optimizer.h>
#include <fedrun/train/optimizer_parameters.h>
#include <fedrun/train/tensor_buffer.h>
#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>

namespace fedrun {
namespace {

// A tensor's handle may be copied; what it refers to tells parameters apart.
const void* identity_of(const torch::Tensor& tensor) { return tensor.unsafeGetTensorImpl(); }

std::unordered_map<const void*, std::string> unique_names(
    const torch::OrderedDict<std::string, torch::Tensor>& named_parameters) {
  std::unordered_map<const void*, std::string> names;
  for (const auto& item : named_parameters) {
    const auto [known, is_new] = names.emplace(identity_of(item.value()), item.key());
    if (!is_new) {
      throw UsageError(
          fmt::format("named_parameters lists one parameter twice, as '{}' and as '{}'", known->second, item.key()));
    }
  }
  return names;
}

std::unordered_set<const void*> optimized_parameters(const torch::optim::Optimizer& optimizer,
                                                     const std::unordered_map<const void*, std::string>& names) {
  std::unordered_set<const void*> result;
  for (std::size_t group = 0; group < optimizer.param_groups().size(); ++group) {
    const auto& parameters = optimizer.param_groups()[group].params();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!names.contains(identity_of(parameters[i]))) {
        throw UsageError(
            fmt::format("named_parameters has no name for parameter {} of the optimizer's group {}, {}: pass the "
                        "named_parameters() of every module that the optimizer trains",
                        i, group, describe_tensor("a", parameters[i])));
      }
      result.insert(identity_of(parameters[i]));
    }
  }
  return result;
}

void form_equal_groups(std::vector<NamedParameter>& parameters, int count) {
  if (count < 0 || static_cast<std::size_t>(count) > parameters.size()) {
    throw UsageError(fmt::format(
        "DistributedOptimizer: group_count {} must be between 0 (no groups) and {}, the number of parameters", count,
        parameters.size()));
  }
  const auto groups = static_cast<std::size_t>(count);
  for (std::size_t i = 0; i < parameters.size() && count > 0; ++i) {
    parameters[i].group = static_cast<int>(i * groups / parameters.size());
  }
}

void form_groups(std::vector<NamedParameter>& parameters, const std::vector<std::vector<torch::Tensor>>& groups) {
  std::unordered_map<const void*, NamedParameter*> known;
  for (NamedParameter& parameter : parameters) known[identity_of(parameter.tensor)] = &parameter;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    if (groups[group].empty()) {
      throw UsageError(fmt::format("DistributedOptimizer: group {} has no parameters: leave it out", group));
    }
    for (std::size_t i = 0; i < groups[group].size(); ++i) {
      const auto found = known.find(identity_of(groups[group][i]));
      if (found == known.end()) {
        throw UsageError(
            fmt::format("DistributedOptimizer: number {} of group {} is not a parameter of the optimizer", i, group));
      }
      NamedParameter& parameter = *found->second;
      if (parameter.group >= 0) {
        throw UsageError(fmt::format("DistributedOptimizer: parameter '{}' is in group {} and again in group {}",
                                     parameter.name, parameter.group, group));
      }
      parameter.group = static_cast<int>(group);
    }
  }
}

}  // namespace

std::vector<NamedParameter> name_parameters(const torch::optim::Optimizer& optimizer,
                                            const torch::OrderedDict<std::string, torch::Tensor>& named_parameters,
                                            const DistributedOptimizerOptions& options) {
  const auto wanted = optimized_parameters(optimizer, unique_names(named_parameters));
  std::vector<NamedParameter> result;
  for (const auto& item : named_parameters) {
    if (wanted.contains(identity_of(item.value()))) result.push_back({item.key(), item.value()});
  }
  if (options.group_count != 0 && !options.groups.empty()) {
    throw UsageError("DistributedOptimizer: give group_count or groups, not both");
  }
  form_equal_groups(result, options.group_count);
  form_groups(result, options.groups);
  return result;
}

}  // namespace fedrun
