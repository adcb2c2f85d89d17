#include <fedrun/core/error.h>
#include <fedrun/train/device_stream.h>
#include <fedrun/train/optimizer_state_slice.h>
#include <fedrun/train/sharded_step.h>
#include <fedrun/train/tensor_buffer.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace fedrun {
namespace {

// Three arrays of this size, such as parameters, gradients and momentum, fit into a core's second-level cache.
constexpr std::size_t piece_elements = std::size_t{64} << 10;

void check_kind(torch::optim::Optimizer& optimizer) {
  if (slices_state_of(optimizer)) return;
  throw UsageError(
      "sharded: this optimizer may look at whole parameters, of which each rank has a part: use SGD, Adam, AdamW or "
      "RMSprop, or leave sharded off");
}

}  // namespace

ShardedStep::ShardedStep(Communicator& group, torch::optim::Optimizer& optimizer, GradientReducer& reducer)
    : group_(group), optimizer_(optimizer), reducer_(reducer) {
  check_kind(optimizer);
  std::unordered_map<const void*, std::size_t> option_groups;
  for (std::size_t i = 0; i < optimizer.param_groups().size(); ++i) {
    for (const torch::Tensor& parameter : optimizer.param_groups()[i].params()) {
      option_groups[parameter.unsafeGetTensorImpl()] = i;
    }
  }
  for (const NamedParameter& parameter : reducer.parameters()) {
    option_groups_.push_back(option_groups.at(parameter.tensor.unsafeGetTensorImpl()));
  }
}

void ShardedStep::prepare() {
  while (parameters_.size() < reducer_.bucket_count()) take_in(reducer_.bucket(parameters_.size()));
  for (const Piece& piece : pieces_) {
    piece.elements.mutable_grad() = reducer_.was_used(piece.parameter) ? piece.gradient : torch::Tensor();
  }
}

void ShardedStep::take_in(const GradientBucket& bucket) {
  const torch::NoGradGuard no_grad;
  const auto& memory =
      parameters_.emplace_back(std::make_shared<Memory>(allocate_on(bucket.device(), bucket.buffer.bytes(), group_)));
  for (const BucketSlot& slot : bucket.slots) {
    torch::Tensor tensor = reducer_.parameters()[slot.parameter].tensor;
    const torch::Tensor in_memory = tensor_like_in(memory, slot.first_element, tensor);
    in_memory.copy_(tensor);
    tensor.set_data(in_memory);
    cut(bucket, slot);
  }
}

// Hands the pieces of a parameter that belong to this rank to the optimizer in place of the parameter, with the state
// that it has for them.
void ShardedStep::cut(const GradientBucket& bucket, const BucketSlot& slot) {
  const torch::Tensor& tensor = reducer_.parameters()[slot.parameter].tensor;
  const std::shared_ptr<Memory>& memory = parameters_.back();
  const std::size_t first_own = bucket.first_of(group_.rank());
  const std::size_t end = std::min(slot.first_element + static_cast<std::size_t>(tensor.numel()),
                                   first_own + bucket.parts[static_cast<std::size_t>(group_.rank())]);
  std::unique_ptr<torch::optim::OptimizerParamState> whole_state;
  if (const auto known = optimizer_.state().find(tensor.unsafeGetTensorImpl()); known != optimizer_.state().end()) {
    whole_state = std::move(known->second);
    optimizer_.state().erase(known);
  }
  auto& stepped = optimizer_.param_groups()[option_groups_[slot.parameter]].params();
  std::erase_if(stepped, [&](const torch::Tensor& parameter) { return parameter.is_same(tensor); });
  const std::size_t longest = tensor.device().is_cpu() ? piece_elements : end;  // a GPU wants few launches
  for (std::size_t first = std::max(slot.first_element, first_own); first < end; first += longest) {
    const std::size_t elements = std::min(longest, end - first);
    const Piece& piece =
        pieces_.emplace_back(Piece{slot.parameter, tensor_in(memory, first, elements, tensor.options()),
                                   tensor_in(bucket.memory, first, elements, tensor.options())});
    stepped.push_back(piece.elements);
    if (whole_state) {
      optimizer_.state()[piece.elements.unsafeGetTensorImpl()] =
          slice_state(*whole_state, tensor, first - slot.first_element, elements);
    }
  }
}

bool ShardedStep::was_used(const GradientBucket& bucket) const {
  return std::ranges::any_of(bucket.slots, [&](const BucketSlot& slot) { return reducer_.was_used(slot.parameter); });
}

void ShardedStep::share() {
  struct Sharing {
    torch::Device device;
    std::unique_ptr<Work> work;
  };
  std::vector<Sharing> sharings;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const GradientBucket& bucket = reducer_.bucket(i);
    if (!was_used(bucket)) continue;
    const Buffer& gradients = bucket.buffer;
    const torch::Device device = bucket.device();
    auto* const whole = static_cast<std::byte*>(parameters_[i]->data());
    auto* const part = whole + bucket.first_of(group_.rank()) * size_of(gradients.type);
    sharings.push_back(
        {device, group_.allgather_async(
                     buffer_in(part, bucket.parts[static_cast<std::size_t>(group_.rank())], gradients.type, device),
                     buffer_in(whole, gradients.count, gradients.type, device), bucket.parts,
                     {.name = bucket.name + ", parameters"})});
    for (const BucketSlot& slot : bucket.slots) {
      // By this, autograd notices that what it has kept for backward was written to.
      reducer_.parameters()[slot.parameter].tensor.unsafeGetTensorImpl()->bump_version();
    }
  }
  for (const Sharing& sharing : sharings) wait_for_result(*sharing.work, sharing.device);
}

double ShardedStep::gradient_norm(double norm_type) const {
  const torch::NoGradGuard no_grad;
  const bool is_maximum = std::isinf(norm_type);
  double total = 0;
  for (const Piece& piece : pieces_) {
    if (!reducer_.was_used(piece.parameter)) continue;
    const auto norm = piece.gradient.norm(norm_type, torch::kFloat64).item<double>();
    if (!is_maximum) {
      total += std::pow(norm, norm_type);
    } else if (norm > total || std::isnan(norm)) {
      total = norm;
    }
  }
  group_.allreduce(std::span(&total, 1), {.op = is_maximum ? ReduceOp::max : ReduceOp::sum});
  return is_maximum ? total : std::pow(total, 1 / norm_type);
}

void ShardedStep::scale_gradients(double factor) const {
  const torch::NoGradGuard no_grad;
  for (const Piece& piece : pieces_) piece.gradient.mul_(factor);
}

}  // namespace fedrun
