#include <fedrun/core/error.h>
#include <fedrun/models/resnet.h>
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

namespace fedrun::models {
namespace {

torch::nn::Conv2d convolution(std::int64_t channels_in, std::int64_t channels_out, std::int64_t kernel,
                              std::int64_t stride) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(channels_in, channels_out, kernel)
                               .stride(stride)
                               .padding(kernel / 2)
                               .bias(false));  // a norm follows and has one
}

torch::nn::ReLU relu() { return torch::nn::ReLU(torch::nn::ReLUOptions().inplace(true)); }

void append_norm(ChainImpl& chain, std::string name, Norm norm, std::int64_t channels) {
  if (norm == Norm::batch) {
    chain.push_back(std::move(name), torch::nn::BatchNorm2d(channels));
  } else {
    chain.push_back(std::move(name), torch::nn::GroupNorm(2, channels));
  }
}

struct BlockShape {
  std::int64_t channels_in;
  std::int64_t width;  // channels of the 3×3 convolutions
  std::int64_t stride;
  bool is_bottleneck;
  Norm norm;

  std::int64_t channels_out() const { return is_bottleneck ? 4 * width : width; }
};

// A chain whose input is added to its output; where the shapes differ, a 1×1 convolution maps one onto the other.
class ResidualBlockImpl : public ChainImpl {
 public:
  ResidualBlockImpl() = default;
  explicit ResidualBlockImpl(const BlockShape& shape) : norm_(shape.norm) {
    if (shape.is_bottleneck) {
      append("1", convolution(shape.channels_in, shape.width, 1, 1), shape.width);
      push_back("relu1", relu());
      append("2", convolution(shape.width, shape.width, 3, shape.stride), shape.width);
      push_back("relu2", relu());
      append("3", convolution(shape.width, shape.channels_out(), 1, 1), shape.channels_out());
    } else {
      append("1", convolution(shape.channels_in, shape.width, 3, shape.stride), shape.width);
      push_back("relu1", relu());
      append("2", convolution(shape.width, shape.width, 3, 1), shape.width);
    }
    if (shape.stride != 1 || shape.channels_in != shape.channels_out()) {
      shortcut_ =
          register_module("downsample", Chain(convolution(shape.channels_in, shape.channels_out(), 1, shape.stride)));
      append_norm(*shortcut_, "1", shape.norm, shape.channels_out());
    }
  }

  torch::Tensor forward(const torch::Tensor& input) {
    const torch::Tensor residual = ChainImpl::forward(input);
    return (residual + (shortcut_.is_empty() ? input : shortcut_->forward(input))).relu_();
  }

  std::shared_ptr<Module> clone(const std::optional<torch::Device>& device = std::nullopt) const override {
    auto copy = std::make_shared<ResidualBlockImpl>();
    copy->append_clones(*this, device);
    if (!shortcut_.is_empty()) {
      copy->shortcut_ =
          copy->register_module("downsample", std::static_pointer_cast<ChainImpl>(shortcut_->clone(device)));
    }
    return copy;
  }

 private:
  void append(const std::string& number, const torch::nn::Conv2d& convolution, std::int64_t channels) {
    push_back("conv" + number, convolution);
    append_norm(*this, "bn" + number, norm_, channels);
  }

  Norm norm_ = Norm::batch;
  Chain shortcut_{nullptr};
};

struct Layout {
  std::vector<int> blocks;  // of each stage
  std::int64_t width;       // of the stem and the first stage
  bool is_bottleneck;
};

Layout layout_of(int depth) {
  if (depth == 18) return {{2, 2, 2, 2}, 64, false};
  if (depth == 50) return {{3, 4, 6, 3}, 64, true};
  if (depth == 56) return {{6, 6, 6}, 16, true};
  throw UsageError(fmt::format("ResNet: there is none of depth {} here: choose 18, 50 or 56", depth));
}

void initialise(torch::nn::Module& model) {
  for (const auto& module : model.modules(/*include_self=*/false)) {
    if (auto* convolution = module->as<torch::nn::Conv2d>()) {
      torch::nn::init::kaiming_normal_(convolution->weight, 0, torch::kFanOut, torch::kReLU);
    }
  }
}

}  // namespace

ResNetImpl::ResNetImpl(const ResNetOptions& options) {
  const Layout layout = layout_of(options.depth);
  if (options.classes < 1) throw UsageError(fmt::format("ResNet: {} classes: give 1 or more", options.classes));

  const bool is_small = options.stem == Stem::cifar;
  push_back("conv1", is_small ? convolution(3, layout.width, 3, 1) : convolution(3, layout.width, 7, 2));
  append_norm(*this, "bn1", options.norm, layout.width);
  push_back("relu", relu());
  if (!is_small) push_back("maxpool", torch::nn::MaxPool2d(torch::nn::MaxPool2dOptions(3).stride(2).padding(1)));

  BlockShape shape{.channels_in = layout.width,
                   .width = layout.width,
                   .stride = 1,
                   .is_bottleneck = layout.is_bottleneck,
                   .norm = options.norm};
  for (std::size_t stage = 0; stage < layout.blocks.size(); ++stage) {
    Chain layer;
    for (int block = 0; block < layout.blocks[stage]; ++block) {
      layer->push_back(std::make_shared<ResidualBlockImpl>(shape));
      shape.channels_in = shape.channels_out();
      shape.stride = 1;
    }
    push_back(fmt::format("layer{}", stage + 1), layer);
    shape.width *= 2;
    shape.stride = 2;
  }

  push_back("avgpool", torch::nn::AdaptiveAvgPool2d(1));
  push_back("flatten", torch::nn::Flatten());
  push_back("fc", torch::nn::Linear(shape.channels_in, options.classes));
  initialise(*this);
}

std::shared_ptr<torch::nn::Module> ResNetImpl::clone(const std::optional<torch::Device>& device) const {
  const std::shared_ptr<ResNetImpl> copy(new ResNetImpl(Empty{}));
  copy->append_clones(*this, device);
  return copy;
}

}  // namespace fedrun::models
