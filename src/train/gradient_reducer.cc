#include <fedrun/core/error.h>
#include <fedrun/train/gradient_reducer.h>
#include <fedrun/train/tensor_buffer.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

namespace fedrun {

// Where a parameter's gradient lies, as a tensor of the parameter's shape and strides.
struct GradientReducer::Slot {
  torch::Tensor gradient;
  std::size_t bucket = 0;
  unsigned hook = 0;
  bool arrived = false;  // in this window
};

struct GradientReducer::LiveBucket {
  std::shared_ptr<Memory> memory;  // shared with the gradients, which users may keep longer than the optimizer
  Buffer buffer;
  std::vector<std::size_t> parameters;
  std::size_t missing = 0;  // gradients that have not arrived in this window
  std::unique_ptr<Work> reduction;
};

// Called by autograd when a parameter's gradient is complete.
class GradientReducer::GradientArrived final : public torch::autograd::PostAccumulateGradHook {
 public:
  GradientArrived(GradientReducer& reducer, std::size_t parameter) : reducer_(reducer), parameter_(parameter) {}
  void operator()(const torch::Tensor&) override { reducer_.gradient_arrived(parameter_); }

 private:
  GradientReducer& reducer_;
  std::size_t parameter_;
};

namespace {

// A gradient in the parameter's own layout; autograd adopts it as .grad only if the strides match.
torch::Tensor gradient_in(const std::shared_ptr<Memory>& memory, std::size_t offset_bytes,
                          const torch::Tensor& parameter) {
  const bool keeps_strides = parameter.is_non_overlapping_and_dense();
  const std::vector<int64_t> strides =
      keeps_strides ? parameter.strides().vec() : torch::empty(parameter.sizes(), torch::kMeta).strides().vec();
  // Made from memory, not as a view of a bucket tensor, and handed out by detach(): Torch's zero_grad() detaches
  // gradients in place, which it refuses for views.
  return torch::from_blob(
      static_cast<std::byte*>(memory->data()) + offset_bytes, parameter.sizes(), strides, [memory](void*) {},
      torch::TensorOptions().dtype(parameter.scalar_type()));
}

}  // namespace

GradientReducer::GradientReducer(Communicator& group, std::vector<NamedParameter> parameters, ReduceOp op,
                                 const BucketSizes& sizes)
    : group_(group), parameters_(std::move(parameters)), op_(op), slots_(parameters_.size()) {
  std::vector<PlannedParameter> planned;
  for (const auto& [name, tensor] : parameters_) {
    if (torch::autograd::impl::post_acc_grad_hooks(tensor) != nullptr) {
      throw UsageError(fmt::format("parameter '{}' already belongs to another DistributedOptimizer", name));
    }
    planned.push_back({buffer_of(tensor.is_contiguous() ? tensor : tensor.contiguous(), name).count,
                       data_type_of_tensor(tensor, name)});
  }
  for (const Bucket& bucket : plan_buckets(planned, sizes)) {
    LiveBucket& live = buckets_.emplace_back();
    live.memory = std::make_shared<Memory>(group_.allocate(bucket.elements * size_of(bucket.type)));
    live.buffer = {live.memory->data(), bucket.elements, bucket.type};
    live.missing = bucket.slots.size();
    for (const BucketSlot& place : bucket.slots) {
      live.parameters.push_back(place.parameter);
      Slot& slot = slots_[place.parameter];
      slot.bucket = buckets_.size() - 1;
      slot.gradient =
          gradient_in(live.memory, place.first_element * size_of(bucket.type), parameters_[place.parameter].tensor);
    }
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const torch::Tensor& tensor = parameters_[i].tensor;
    slots_[i].hook =
        tensor.register_hook([this, i](const torch::Tensor& gradient) { return move_into_bucket(i, gradient); });
    torch::autograd::impl::set_post_acc_grad_hooks(tensor, std::make_unique<GradientArrived>(*this, i));
  }
}

GradientReducer::~GradientReducer() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].tensor.remove_hook(slots_[i].hook);
    torch::autograd::impl::set_post_acc_grad_hooks(parameters_[i].tensor, nullptr);
  }
}

// With no .grad yet, the fresh gradient is copied into the bucket and autograd adopts that as .grad: one copy, no
// zeroing, no addition. Otherwise .grad lies in the bucket already and autograd adds to it.
torch::Tensor GradientReducer::move_into_bucket(std::size_t parameter, const torch::Tensor& gradient) {
  Slot& slot = slots_[parameter];
  if (slot.arrived) {
    throw UsageError(
        fmt::format("parameter '{}' received a second gradient before step(): every backward is reduced at once, "
                    "so call step() (or synchronize()) after each backward()",
                    parameters_[parameter].name));
  }
  if (parameters_[parameter].tensor.grad().defined() || gradient.is_sparse()) return gradient;
  const torch::NoGradGuard no_grad;
  slot.gradient.copy_(gradient);
  return slot.gradient.detach();  // a fresh handle: autograd adopts only what nobody else refers to
}

void GradientReducer::gradient_arrived(std::size_t parameter) {
  Slot& slot = slots_[parameter];
  torch::Tensor& gradient = parameters_[parameter].tensor.mutable_grad();
  if (gradient.is_sparse()) {
    throw UsageError(fmt::format("parameter '{}' has a sparse gradient, which cannot be reduced: use sparse(false)",
                                 parameters_[parameter].name));
  }
  // Not adopted when autograd cloned it (create_graph) or the user put a gradient of their own in its place.
  if (gradient.data_ptr() != slot.gradient.data_ptr()) {
    const torch::NoGradGuard no_grad;
    slot.gradient.copy_(gradient);
    gradient = slot.gradient.detach();
  }
  slot.arrived = true;
  window_open_ = true;
  --buckets_[slot.bucket].missing;
  launch_complete_buckets();
}

void GradientReducer::launch_complete_buckets() {
  while (next_bucket_ < buckets_.size() && buckets_[next_bucket_].missing == 0) launch(buckets_[next_bucket_++]);
}

void GradientReducer::launch(LiveBucket& bucket) {
  bucket.reduction = group_.allreduce_async(bucket.buffer, {.op = op_});
}

void GradientReducer::synchronize() {
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    Slot& slot = slots_[i];
    torch::Tensor& gradient = parameters_[i].tensor.mutable_grad();
    if (!slot.arrived && !gradient.defined()) {
      slot.gradient.zero_();
      gradient = slot.gradient.detach();
    }
    slot.arrived = false;
  }
  for (; next_bucket_ < buckets_.size(); ++next_bucket_) launch(buckets_[next_bucket_]);
  for (LiveBucket& bucket : buckets_) {
    bucket.reduction->wait();
    bucket.reduction.reset();
    bucket.missing = bucket.parameters.size();
  }
  next_bucket_ = 0;
  window_open_ = false;
}

}  // namespace fedrun
