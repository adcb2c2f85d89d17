#include <fedrun/core/error.h>
#include <fedrun/models/resnet.h>
#include <fmt/format.h>

#include <array>
#include <string>

namespace fedrun::models {
namespace {

torch::nn::Conv2d convolution(std::int64_t channels_in, std::int64_t channels_out, std::int64_t kernel,
                              std::int64_t stride) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(channels_in, channels_out, kernel)
                               .stride(stride)
                               .padding(kernel / 2)
                               .bias(false));  // BatchNorm follows and has one
}

torch::nn::ReLU relu() { return torch::nn::ReLU(torch::nn::ReLUOptions().inplace(true)); }

struct BlockShape {
  std::int64_t channels_in;
  std::int64_t width;  // channels of the 3×3 convolutions
  std::int64_t stride;
  bool is_bottleneck;

  std::int64_t channels_out() const { return is_bottleneck ? 4 * width : width; }
};

// A chain whose input is added to its output; where the shapes differ, a 1×1 convolution maps one onto the other.
class ResidualBlockImpl : public ChainImpl {
 public:
  ResidualBlockImpl() = default;
  explicit ResidualBlockImpl(const BlockShape& shape) {
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
          register_module("downsample", Chain(convolution(shape.channels_in, shape.channels_out(), 1, shape.stride),
                                              torch::nn::BatchNorm2d(shape.channels_out())));
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
    push_back("bn" + number, torch::nn::BatchNorm2d(channels));
  }

  Chain shortcut_{nullptr};
};

// How many blocks each of the four stages has.
std::array<int, 4> blocks_of(int depth) {
  if (depth == 18) return {2, 2, 2, 2};
  if (depth == 50) return {3, 4, 6, 3};
  throw UsageError(fmt::format("ResNet: there is none of depth {} here: choose 18 or 50", depth));
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
  const std::array<int, 4> blocks = blocks_of(options.depth);
  if (options.classes < 1) throw UsageError(fmt::format("ResNet: {} classes: give 1 or more", options.classes));

  const bool is_small = options.stem == Stem::cifar;
  push_back("conv1", is_small ? convolution(3, 64, 3, 1) : convolution(3, 64, 7, 2));
  push_back("bn1", torch::nn::BatchNorm2d(64));
  push_back("relu", relu());
  if (!is_small) push_back("maxpool", torch::nn::MaxPool2d(torch::nn::MaxPool2dOptions(3).stride(2).padding(1)));

  BlockShape shape{.channels_in = 64, .width = 64, .stride = 1, .is_bottleneck = options.depth == 50};
  for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
    Chain layer;
    for (int block = 0; block < blocks[stage]; ++block) {
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
