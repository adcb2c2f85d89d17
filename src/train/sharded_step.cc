#include <fedrun/core/error.h>
#include <fedrun/train/optimizer_state_slice.h>
#include <fedrun/train/sharded_step.h>
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
    auto& parameters = optimizer.param_groups()[i].params();
    for (const torch::Tensor& parameter : parameters) option_groups[parameter.unsafeGetTensorImpl()] = i;
    parameters.clear();
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
  Shared& shared = parameters_.emplace_back();
  shared.memory = std::make_shared<Memory>(group_.allocate(bucket.buffer.bytes()));
  shared.buffer = {shared.memory->data(), bucket.buffer.count, bucket.buffer.type};
  const Buffer& whole = shared.buffer;
  shared.part = {static_cast<std::byte*>(whole.data) + bucket.first_of(group_.rank()) * size_of(whole.type),
                 bucket.part_of(group_.rank()).count, whole.type};
  for (const BucketSlot& slot : bucket.slots) {
    torch::Tensor tensor = reducer_.parameters()[slot.parameter].tensor;
    const torch::Tensor in_memory = tensor_like_in(shared.memory, slot.first_element, tensor);
    in_memory.copy_(tensor);
    tensor.set_data(in_memory);
    cut(bucket, slot);
  }
}

// Hands the pieces of a parameter that belong to this rank to the optimizer, with the state that it has for them.
void ShardedStep::cut(const GradientBucket& bucket, const BucketSlot& slot) {
  const torch::Tensor& tensor = reducer_.parameters()[slot.parameter].tensor;
  const Shared& shared = parameters_.back();
  const std::size_t first_own = bucket.first_of(group_.rank());
  const std::size_t end =
      std::min(slot.first_element + static_cast<std::size_t>(tensor.numel()), first_own + shared.part.count);
  const auto known = optimizer_.state().find(tensor.unsafeGetTensorImpl());
  auto& stepped = optimizer_.param_groups()[option_groups_[slot.parameter]].params();
  for (std::size_t first = std::max(slot.first_element, first_own); first < end; first += piece_elements) {
    const std::size_t elements = std::min(piece_elements, end - first);
    const Piece& piece =
        pieces_.emplace_back(Piece{slot.parameter, tensor_in(shared.memory, first, elements, tensor.scalar_type()),
                                   tensor_in(bucket.memory, first, elements, tensor.scalar_type())});
    stepped.push_back(piece.elements);
    if (known != optimizer_.state().end()) {
      optimizer_.state()[piece.elements.unsafeGetTensorImpl()] =
          slice_state(*known->second, tensor, first - slot.first_element, elements);
    }
  }
  optimizer_.state().erase(tensor.unsafeGetTensorImpl());
}

bool ShardedStep::was_used(const GradientBucket& bucket) const {
  return std::ranges::any_of(bucket.slots, [&](const BucketSlot& slot) { return reducer_.was_used(slot.parameter); });
}

void ShardedStep::share() {
  std::vector<std::unique_ptr<Work>> works;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const GradientBucket& bucket = reducer_.bucket(i);
    if (!was_used(bucket)) continue;
    works.push_back(group_.allgather_async(parameters_[i].part, parameters_[i].buffer, bucket.parts,
                                           {.name = bucket.name + ", parameters"}));
    for (const BucketSlot& slot : bucket.slots) {
      // By this, autograd notices that what it has kept for backward was written to.
      reducer_.parameters()[slot.parameter].tensor.unsafeGetTensorImpl()->bump_version();
    }
  }
  for (const auto& work : works) work->wait();
}

double ShardedStep::gradient_norm(double norm_type) const {
  const torch::NoGradGuard no_grad;
  const bool is_maximum = std::isinf(norm_type);
  double total = 0;
  for (const Piece& piece : pieces_) {
    if (!reducer_.was_used(piece.parameter)) continue;
    const auto norm = piece.gradient.norm(norm_type, torch::kFloat64).item<double>();
    total = is_maximum ? std::max(total, norm) : total + std::pow(norm, norm_type);
  }
  group_.allreduce(std::span(&total, 1), {.op = is_maximum ? ReduceOp::max : ReduceOp::sum});
  return is_maximum ? total : std::pow(total, 1 / norm_type);
}

void ShardedStep::scale_gradients(double factor) const {
  const torch::NoGradGuard no_grad;
  for (const Piece& piece : pieces_) piece.gradient.mul_(factor);
}

}  // namespace fedrun
