#include <fedrun/core/error.h>
#include <fedrun/train/convert_sync_batch_norm.h>
#include <fedrun/train/sync_batch_norm.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fedrun {
namespace {

using torch::nn::AnyModule;
using torch::nn::Module;
using torch::nn::SequentialImpl;

template <typename BatchNorm>
std::shared_ptr<SyncBatchNormImpl> replacement_if(const Module& module) {
  const auto* layer = module.as<BatchNorm>();
  if (layer == nullptr) return nullptr;
  const BatchNormTensors tensors{layer->weight, layer->bias, layer->running_mean, layer->running_var,
                                 layer->num_batches_tracked};
  auto replacement = std::make_shared<SyncBatchNormImpl>(layer->options, tensors);
  replacement->train(layer->is_training());
  return replacement;
}

// Nothing for modules of other types.
std::shared_ptr<SyncBatchNormImpl> make_replacement(const Module& module) {
  if (auto made = replacement_if<torch::nn::BatchNorm1d>(module)) return made;
  if (auto made = replacement_if<torch::nn::BatchNorm2d>(module)) return made;
  return replacement_if<torch::nn::BatchNorm3d>(module);
}

bool has_part(SequentialImpl* sequence, const Module& child) {
  return sequence != nullptr && std::any_of(sequence->begin(), sequence->end(),
                                            [&](const AnyModule& part) { return part.ptr().get() == &child; });
}

// Collects what there is to do, so that an error leaves the model as it was.
class Conversion {
 public:
  explicit Conversion(Module& module) {
    if (make_replacement(module)) unreachable_.push_back("the module itself");
    visit_children(module, "");
  }

  const std::vector<std::string>& unreachable() const { return unreachable_; }

  void carry_out(Communicator& group) {
    for (const Place& place : places_) {
      place.sequence->replace_module(place.key, place.layer);
      for (AnyModule& part : *place.sequence) {
        if (part.ptr() == place.child) part = AnyModule(place.layer);
      }
    }
    for (const auto& [path, layer] : layers_) layer->set_group(group, "SyncBatchNorm " + path);
  }

 private:
  struct Place {
    SequentialImpl* sequence;
    std::string key;
    std::shared_ptr<Module> child;
    std::shared_ptr<SyncBatchNormImpl> layer;
  };

  void visit_children(Module& parent, const std::string& prefix) {
    for (const auto& child : parent.named_children()) visit(parent, child.key(), child.value(), prefix + child.key());
  }

  void visit(Module& parent, const std::string& key, const std::shared_ptr<Module>& child, const std::string& path) {
    if (auto synced = std::dynamic_pointer_cast<SyncBatchNormImpl>(child)) layers_.emplace_back(path, synced);
    std::shared_ptr<SyncBatchNormImpl> replacement = make_replacement(*child);
    if (!replacement) return visit_children(*child, path + ".");
    auto* sequence = dynamic_cast<SequentialImpl*>(&parent);
    if (!has_part(sequence, *child)) return unreachable_.push_back(path);
    // A layer that occurs twice must be one layer afterwards, too.
    const auto [known, is_new] = replacements_.try_emplace(child.get(), replacement);
    if (is_new) layers_.emplace_back(path, replacement);
    places_.push_back({sequence, key, child, known->second});
  }

  std::vector<Place> places_;
  std::vector<std::pair<std::string, std::shared_ptr<SyncBatchNormImpl>>> layers_;
  std::map<const Module*, std::shared_ptr<SyncBatchNormImpl>> replacements_;
  std::vector<std::string> unreachable_;
};

}  // namespace

void convert_sync_batch_norm(Module& module, Communicator& group) {
  Conversion conversion(module);
  if (!conversion.unreachable().empty()) {
    throw UsageError(fmt::format(
        "convert_sync_batch_norm: cannot replace {}, because only layers inside a torch::nn::Sequential can "
        "be: declare these members as fedrun::SyncBatchNorm, which needs no group before this call, or put "
        "them into a Sequential",
        fmt::join(conversion.unreachable(), ", ")));
  }
  conversion.carry_out(group);
}

}  // namespace fedrun
