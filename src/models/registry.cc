#include <fedrun/core/error.h>
#include <fedrun/models/convnet.h>
#include <fedrun/models/mlp.h>
#include <fedrun/models/registry.h>
#include <fedrun/models/resnet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fedrun::models {
namespace {

using torch::nn::AnyModule;

struct Entry {
  std::string name;
  std::vector<std::int64_t> sample_shape;
  std::int64_t classes;
  AnyModule (*make)(std::int64_t classes);
};

AnyModule make_mlp(std::int64_t classes) { return AnyModule(Mlp(MlpOptions{.sizes = {784, 4096, 4096, classes}})); }

template <int depth, Stem stem>
AnyModule make_resnet(std::int64_t classes) {
  return AnyModule(ResNet(ResNetOptions{.depth = depth, .stem = stem, .classes = classes}));
}

// A model of your own is one line here.
const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = {
      {"convnet", {1, 28, 28}, 10, [](std::int64_t classes) { return AnyModule(ConvNet(classes)); }},
      {"mlp", {1, 28, 28}, 10, make_mlp},
      {"resnet18", {3, 32, 32}, 10, make_resnet<18, Stem::cifar>},
      {"resnet50", {3, 32, 32}, 10, make_resnet<50, Stem::cifar>},
      {"resnet18_imagenet", {3, 224, 224}, 1000, make_resnet<18, Stem::imagenet>},
      {"resnet50_imagenet", {3, 224, 224}, 1000, make_resnet<50, Stem::imagenet>},
  };
  return all;
}

}  // namespace

Model make_model(std::string_view name, const ModelOptions& options) {
  for (const Entry& entry : entries()) {
    if (entry.name != name) continue;
    const std::int64_t classes = options.classes.value_or(entry.classes);
    if (classes < 1) throw UsageError(fmt::format("model {}: {} classes: give 1 or more", name, classes));
    return {entry.make(classes), entry.sample_shape, classes};
  }
  throw UsageError(fmt::format("there is no model '{}': choose one of {}", name, fmt::join(model_names(), ", ")));
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Entry& entry : entries()) names.push_back(entry.name);
  return names;
}

}  // namespace fedrun::models
