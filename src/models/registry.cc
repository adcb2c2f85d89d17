#include <fedrun/core/error.h>
#include <fedrun/models/convnet.h>
#include <fedrun/models/federated_models.h>
#include <fedrun/models/mlp.h>
#include <fedrun/models/registry.h>
#include <fedrun/models/resnet.h>
#include <fedrun/models/rnn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <numeric>

namespace fedrun::models {
namespace {

using torch::nn::AnyModule;

using Shape = std::vector<std::int64_t>;

struct Entry {
  std::string name;
  Shape sample_shape;
  std::int64_t classes;
  AnyModule (*make)(const Shape& sample_shape, std::int64_t classes);
  bool takes_any_shape = false;
};

std::int64_t element_count(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

AnyModule make_lr(const Shape& shape, std::int64_t classes) {
  return AnyModule(make_logistic_regression(element_count(shape), classes));
}

AnyModule make_mlp(const Shape& shape, std::int64_t classes) {
  return AnyModule(Mlp(MlpOptions{.sizes = {element_count(shape), 4096, 4096, classes}}));
}

template <Chain (*make)(std::int64_t classes)>
AnyModule make_chain(const Shape&, std::int64_t classes) {
  return AnyModule(make(classes));
}

template <typename Module>
AnyModule make_module(const Shape&, std::int64_t classes) {
  return AnyModule(Module(classes));
}

template <int depth, Stem stem, Norm norm = Norm::batch>
AnyModule make_resnet(const Shape&, std::int64_t classes) {
  return AnyModule(ResNet(ResNetOptions{.depth = depth, .stem = stem, .norm = norm, .classes = classes}));
}

// A model of your own is one line here.
const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = {
      {"convnet", {1, 28, 28}, 10, make_module<ConvNet>},
      {"mlp", {1, 28, 28}, 10, make_mlp, true},
      {"lr", {1, 28, 28}, 10, make_lr, true},
      {"cnn", {1, 28, 28}, 10, make_chain<make_mcmahan_cnn>},
      {"cnn_dropout", {1, 28, 28}, 10, make_chain<make_dropout_cnn>},
      {"simple_cnn", {1, 28, 28}, 10, make_chain<make_simple_cnn>},
      {"mobilenet", {3, 32, 32}, 10, make_chain<make_mobilenet>},
      {"rnn", {80}, 90, make_module<CharacterRnn>},
      {"resnet18", {3, 32, 32}, 10, make_resnet<18, Stem::cifar>},
      {"resnet18_gn", {3, 24, 24}, 100, make_resnet<18, Stem::imagenet, Norm::group>},
      {"resnet50", {3, 32, 32}, 10, make_resnet<50, Stem::cifar>},
      {"resnet56", {3, 32, 32}, 10, make_resnet<56, Stem::cifar>},
      {"resnet18_imagenet", {3, 224, 224}, 1000, make_resnet<18, Stem::imagenet>},
      {"resnet50_imagenet", {3, 224, 224}, 1000, make_resnet<50, Stem::imagenet>},
  };
  return all;
}

// Networks that end in a global pooling take images of any height and width, the others those that they were made for.
void check_shape(const Entry& entry, const Shape& shape) {
  const bool pools = entry.sample_shape.size() == 3 && entry.sample_shape.front() == 3;
  const bool fits = entry.takes_any_shape || shape == entry.sample_shape ||
                    (pools && shape.size() == 3 && shape.front() == entry.sample_shape.front());
  if (fits) return;
  throw UsageError(fmt::format("model {} takes samples of {}, not of {}: choose another model or data set", entry.name,
                               fmt::join(entry.sample_shape, " × "), fmt::join(shape, " × ")));
}

}  // namespace

Model make_model(std::string_view name, const ModelOptions& options) {
  for (const Entry& entry : entries()) {
    if (entry.name != name) continue;
    const std::int64_t classes = options.classes.value_or(entry.classes);
    if (classes < 1) throw UsageError(fmt::format("model {}: {} classes: give 1 or more", name, classes));
    const Shape sample_shape = options.sample_shape.value_or(entry.sample_shape);
    check_shape(entry, sample_shape);
    return {entry.make(sample_shape, classes), sample_shape, classes};
  }
  throw UsageError(fmt::format("there is no model '{}': choose one of {}", name, fmt::join(model_names(), ", ")));
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Entry& entry : entries()) names.push_back(entry.name);
  return names;
}

}  // namespace fedrun::models
