// Which parameters a DistributedOptimizer reduces, under which names and in which groups.
#pragma once

#include <fedrun/train/gradient_reducer.h>
#include <torch/torch.h>

#include <string>
#include <vector>

namespace fedrun {

struct DistributedOptimizerOptions;

// The optimizer's parameters in the order of named_parameters, with their groups. Throws UsageError where a parameter
// has no name or two, or where the groups make no sense.
std::vector<NamedParameter> name_parameters(const torch::optim::Optimizer& optimizer,
                                            const torch::OrderedDict<std::string, torch::Tensor>& named_parameters,
                                            const DistributedOptimizerOptions& options);

}  // namespace fedrun
