#include <fedrun/core/error.h>
#include <fedrun/train/agreement.h>
#include <fedrun/train/byte_exchange.h>
#include <fedrun/train/object_bytes.h>
#include <fedrun/train/optimizer_state.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <type_traits>
#include <utility>

namespace fedrun {
namespace {

using torch::optim::Optimizer;

constexpr const char* operation = "broadcast_optimizer_state";

std::vector<std::string> describe_optimizer(const Optimizer& optimizer, int root) {
  std::vector<std::string> lines = {fmt::format("{} with {} parameter groups, from root {}",
                                                readable_type(typeid(optimizer)), optimizer.param_groups().size(),
                                                root)};
  for (std::size_t group = 0; group < optimizer.param_groups().size(); ++group) {
    const std::vector<torch::Tensor>& parameters = optimizer.param_groups()[group].params();
    lines.push_back(fmt::format("group {} with {} parameters", group, parameters.size()));
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      lines.push_back(fmt::format("parameter {} of group {}, {}[{}]", i, group,
                                  torch::toString(parameters[i].scalar_type()),
                                  fmt::join(parameters[i].sizes(), ", ")));
    }
  }
  return lines;
}

// Torch's errors carry a backtrace, which helps nobody on another rank.
template <typename Action>
auto without_backtrace(Action action) {
  try {
    return action();
  } catch (const c10::Error& error) {
    throw UsageError(error.what_without_backtrace());
  }
}

// save() leaves out the defaults, which decide about the options of groups that are added later.
void write_defaults(torch::serialize::OutputArchive& archive, const Optimizer& optimizer) {
  torch::serialize::OutputArchive defaults(archive.compilation_unit());
  try {
    optimizer.defaults().serialize(defaults);
  } catch (const c10::Error&) {
    return;  // a user's own options need not offer it; only save() and load() are asked of an optimizer
  }
  archive.write("defaults", defaults);
}

// LBFGS keeps scratch space among its state, which it fills anew at each step. Some of it is undefined, and Torch
// cannot save undefined tensors: this takes it out while the optimizer is saved.
class WithoutScratch {
 public:
  explicit WithoutScratch(const Optimizer& optimizer) {
    for (const auto& [parameter, state] : optimizer.state()) {
      auto* const lbfgs = dynamic_cast<torch::optim::LBFGSParamState*>(state.get());
      if (lbfgs != nullptr) taken_.emplace_back(lbfgs, std::exchange(lbfgs->al(), std::nullopt));
    }
  }
  ~WithoutScratch() {
    for (auto& [lbfgs, scratch] : taken_) lbfgs->al() = std::move(scratch);
  }
  WithoutScratch(const WithoutScratch&) = delete;
  WithoutScratch& operator=(const WithoutScratch&) = delete;

 private:
  std::vector<std::pair<torch::optim::LBFGSParamState*, std::optional<std::vector<torch::Tensor>>>> taken_;
};

std::string saved(const Optimizer& optimizer) {
  const WithoutScratch without_scratch(optimizer);
  torch::serialize::OutputArchive archive;
  torch::serialize::OutputArchive own(archive.compilation_unit());
  optimizer.save(own);
  archive.write("optimizer", own);
  write_defaults(archive, optimizer);
  std::string bytes;
  archive.save_to([&](const void* data, std::size_t size) {
    bytes.append(static_cast<const char*>(data), size);
    return size;
  });
  return bytes;
}

// load() overwrites, and so would leave state that only this rank has.
void load_in_place_of_state(torch::serialize::InputArchive& archive, Optimizer& optimizer) {
  std::remove_reference_t<decltype(optimizer.state())> previous;
  std::swap(previous, optimizer.state());
  try {
    optimizer.load(archive);
  } catch (...) {
    std::swap(previous, optimizer.state());
    throw;
  }
}

// Where the state belongs: the root's GPU is not this rank's, and may not even be there.
torch::Device device_of(const Optimizer& optimizer) {
  std::optional<torch::Device> device;
  for (const auto& group : optimizer.param_groups()) {
    for (const torch::Tensor& parameter : group.params()) {
      if (device && *device != parameter.device()) {
        throw UsageError(fmt::format("the optimizer has parameters on {} and on {}: use one optimizer for each device",
                                     device->str(), parameter.device().str()));
      }
      device = parameter.device();
    }
  }
  return device.value_or(torch::kCPU);
}

void load(const std::string& bytes, Optimizer& optimizer, bool is_root) {
  torch::serialize::InputArchive archive;
  archive.load_from(bytes.data(), bytes.size(), device_of(optimizer));
  torch::serialize::InputArchive own;
  archive.read("optimizer", own);
  if (own.keys().empty()) {
    throw UsageError(fmt::format("{} saves nothing: override its save() and load()", readable_type(typeid(optimizer))));
  }
  if (is_root) return;
  load_in_place_of_state(own, optimizer);
  torch::serialize::InputArchive defaults;
  if (archive.try_read("defaults", defaults)) optimizer.defaults().serialize(defaults);
}

}  // namespace

void broadcast_optimizer_state(Communicator& group, Optimizer& optimizer, const BroadcastOptions& options) {
  check_agreement(group, "broadcast_optimizer_state: the optimizers", describe_optimizer(optimizer, options.root),
                  "Build the same optimizer for the same model on every rank.");
  const std::string bytes = broadcast_bytes(
      group, {operation, "an optimizer"}, [&] { return without_backtrace([&] { return saved(optimizer); }); }, options);
  run_everywhere(group, operation,
                 [&] { without_backtrace([&] { load(bytes, optimizer, group.rank() == options.root); }); });
}

void broadcast_optimizer_state(Communicator& group, DistributedOptimizer& optimizer, const BroadcastOptions& options) {
  if (optimizer.has_part_of_state()) {
    throw UsageError(
        "broadcast_optimizer_state: this optimizer is sharded and has stepped, so that each rank has the state of "
        "other elements: call it before the first step");
  }
  broadcast_optimizer_state(group, optimizer.inner(), options);
}

}  // namespace fedrun
