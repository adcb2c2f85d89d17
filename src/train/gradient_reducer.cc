#include <fedrun/collectives/device_kernels.h>
#include <fedrun/core/error.h>
#include <fedrun/train/device_stream.h>
#include <fedrun/train/gradient_reducer.h>
#include <fedrun/train/sparse_gradient.h>
#include <fedrun/train/stopwatch.h>
#include <fedrun/train/tensor_buffer.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <span>

namespace fedrun {
namespace {

// What the ranks tell each other about a parameter; the greatest counts.
enum Use : std::uint8_t { unused, dense, sparse };

std::string name_of(std::string_view reducer, std::size_t index, const std::vector<BucketSlot>& slots,
                    const std::vector<NamedParameter>& parameters) {
  const std::string& first = parameters[slots.front().parameter].name;
  const std::string others = slots.size() == 1 ? "" : fmt::format(" and {} more", slots.size() - 1);
  return fmt::format("{}, bucket {}: {}{}", reducer, index, first, others);
}

bool lie_alike(const torch::Tensor& one, const torch::Tensor& other) {
  return one.strides() == other.strides() && one.is_non_overlapping_and_dense() && one.dtype() == other.dtype() &&
         one.device() == other.device();
}

// torch::autograd::grad() calls hooks as well, but its gradients are the caller's, and do not become .grad.
bool is_for_accumulation(const torch::Tensor& parameter) {
  const auto* const nodes = torch::autograd::get_current_graph_task_exec_info();
  if (nodes == nullptr || nodes->empty()) return true;  // a plain backward()
  const auto node = nodes->find(torch::autograd::impl::grad_accumulator(parameter).get());
  return node != nodes->end() && node->second.needed_;
}

// memcpy goes past the caches where the gradient is larger than they are, which Torch's copy does not.
void copy_elements(const torch::Tensor& from, const torch::Tensor& to) {
  if (lie_alike(from, to)) {
    std::memcpy(to.data_ptr(), from.const_data_ptr(), to.nbytes());
  } else {
    to.copy_(from);
  }
}

}  // namespace

// Where a parameter's gradient lies, once that has been decided.
struct GradientReducer::Slot {
  torch::Tensor gradient;
  std::size_t bucket = 0;
  unsigned hook = 0;
  int passes = 0;             // gradients that have arrived in this window, without those that are only added up
  bool touched = false;       // a gradient has arrived in this window
  bool holds_window = false;  // of a widened one: its place has something of this window already
};

struct GradientReducer::LiveBucket {
  GradientBucket contents;
  StreamSet streams{};      // on which the gradients of this window were made
  std::size_t missing = 0;  // parameters that still wait for a gradient in this window
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

GradientReducer::GradientReducer(Communicator& group, std::vector<NamedParameter> parameters,
                                 const GradientReducerOptions& options)
    : group_(group),
      parameters_(std::move(parameters)),
      options_(options),
      name_(fmt::format("optimizer {}", group.next_number())),
      slots_(parameters_.size()),
      used_(parameters_.size(), unused) {
  for (const auto& [name, tensor, _] : parameters_) {
    if (torch::autograd::impl::post_acc_grad_hooks(tensor) != nullptr) {
      throw UsageError(fmt::format("parameter '{}' already belongs to another DistributedOptimizer", name));
    }
    check_device(group, tensor, name);
    data_type_of_tensor(tensor, name);
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const torch::Tensor& tensor = parameters_[i].tensor;
    const bool is_frozen = !tensor.requires_grad();
    if (is_frozen) tensor.requires_grad_(true);  // else Torch accepts no hooks
    slots_[i].hook =
        tensor.register_hook([this, i](const torch::Tensor& gradient) { return move_into_bucket(i, gradient); });
    torch::autograd::impl::set_post_acc_grad_hooks(tensor, std::make_unique<GradientArrived>(*this, i));
    if (is_frozen) tensor.requires_grad_(false);
  }
}

GradientReducer::~GradientReducer() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].tensor.remove_hook(slots_[i].hook);
    torch::autograd::impl::set_post_acc_grad_hooks(parameters_[i].tensor, nullptr);
  }
}

bool GradientReducer::is_widened(std::size_t parameter) const {
  const torch::ScalarType type = parameters_[parameter].tensor.scalar_type();
  return options_.widens && (type == torch::kFloat16 || type == torch::kBFloat16);
}

torch::Tensor GradientReducer::widened_gradient(std::size_t parameter) const {
  return was_used(parameter) ? slots_[parameter].gradient : torch::Tensor();
}

// A gradient of 16 bits leaves .grad() for its place in the bucket as soon as it is complete, so that the next pass is
// added to it there.
void GradientReducer::widen(std::size_t parameter) {
  Slot& slot = slots_[parameter];
  torch::Tensor& gradient = parameters_[parameter].tensor.mutable_grad();
  buckets_[slot.bucket]->streams.gather_into_current(gradient.device());
  if (slot.holds_window) {
    slot.gradient.add_(gradient);
  } else {
    slot.gradient.copy_(gradient);
  }
  slot.holds_window = true;
  gradient.reset();
}

std::size_t GradientReducer::bucket_count() const { return buckets_.size(); }

const GradientBucket& GradientReducer::bucket(std::size_t index) const { return buckets_[index]->contents; }

// With no .grad yet, the fresh gradient is copied into the bucket and autograd adopts that as .grad: one copy, no
// zeroing, no addition. Otherwise .grad lies in the bucket already and autograd adds to it. On a GPU, where each copy
// would be a launch, it stays where it is until all of the bucket is copied at once.
torch::Tensor GradientReducer::move_into_bucket(std::size_t parameter, const torch::Tensor& gradient) {
  if (!is_for_accumulation(parameters_[parameter].tensor)) return gradient;
  const std::lock_guard lock(mutex_);
  Slot& slot = slots_[parameter];
  if (slot.passes == options_.passes) {
    throw UsageError(
        fmt::format("parameter '{}' received gradient number {} before step(), but {} backward pass{} per step: call "
                    "step() (or synchronize()) in between, or set backward_passes_per_step",
                    parameters_[parameter].name, options_.passes + 1, options_.passes,
                    options_.passes == 1 ? " is reduced" : "es are reduced"));
  }
  if (!slot.gradient.defined() || parameters_[parameter].tensor.grad().defined() || gradient.is_sparse() ||
      !slot.gradient.device().is_cpu() || is_widened(parameter)) {
    return gradient;
  }
  const torch::NoGradGuard no_grad;
  copy_elements(gradient, slot.gradient);
  return slot.gradient.detach();  // a fresh handle: autograd adopts only what nobody else refers to
}

void GradientReducer::gradient_arrived(std::size_t parameter) {
  const std::lock_guard lock(mutex_);
  Slot& slot = slots_[parameter];
  torch::Tensor& gradient = parameters_[parameter].tensor.mutable_grad();
  const torch::NoGradGuard no_grad;
  slot.touched = true;
  if (gradient.is_sparse() && (slot.gradient.defined() || options_.sparse_as_dense || is_widened(parameter))) {
    gradient = gradient.to_dense();
  }
  if (!slot.gradient.defined()) {
    if (std::ranges::find(arrivals_, parameter) == arrivals_.end()) arrivals_.push_back(parameter);
  } else if (is_widened(parameter)) {
    widen(parameter);
    buckets_[slot.bucket]->streams.add_current(slot.gradient.device());
  } else if (!gradient.device().is_cpu()) {
    buckets_[slot.bucket]->streams.add_current(gradient.device());
  }
  if (!is_reducing_) return;
  passes_ = std::max(passes_, ++slot.passes);
  if (!slot.gradient.defined() || slot.passes < options_.passes) return;
  --buckets_[slot.bucket]->missing;
  launch_complete_buckets();
}

void GradientReducer::launch_complete_buckets() {
  const Stopwatch stopwatch(communication_seconds_);
  while (next_bucket_ < buckets_.size() && buckets_[next_bucket_]->missing == 0) launch(*buckets_[next_bucket_++]);
}

// What lies on a GPU outside of the bucket is copied into it, in one launch where it lies alike.
void GradientReducer::pack_on_device(LiveBucket& bucket) {
  const torch::Device device = bucket.contents.device();
  const c10::DeviceGuard guard(device);  // this thread may never have used it
  bucket.streams.gather_into_current(device);
  std::vector<CopyPiece> pieces;
  std::vector<torch::Tensor> copied;
  for (const BucketSlot& place : bucket.contents.slots) {
    torch::Tensor& gradient = parameters_[place.parameter].tensor.mutable_grad();
    const torch::Tensor& in_bucket = slots_[place.parameter].gradient;
    if (!gradient.defined() || gradient.data_ptr() == in_bucket.data_ptr()) continue;
    if (lie_alike(gradient, in_bucket)) {
      pieces.push_back({gradient.const_data_ptr(), in_bucket.data_ptr(), static_cast<std::uint64_t>(gradient.numel())});
    } else {
      in_bucket.copy_(gradient);
    }
    copied.push_back(std::exchange(gradient, in_bucket.detach()));
  }
  const DataType type = bucket.contents.buffer.type;
  copy_on_device(pieces, {type, type}, handle_of(current_stream(device)));
  for (const torch::Tensor& gradient : copied) keep_for_current_stream(gradient);
}

// Autograd has not adopted the place in the bucket when the gradient was sparse or when it cloned it (create_graph). Or
// the user has made one by other means than backward(), such as zeros for an empty batch, which counts like any other.
void GradientReducer::take_in_stray_gradient(std::size_t parameter) {
  Slot& slot = slots_[parameter];
  if (!lies_elsewhere(parameter)) return;
  torch::Tensor& gradient = parameters_[parameter].tensor.mutable_grad();
  slot.touched = true;
  if (is_widened(parameter)) {
    widen(parameter);
  } else if (gradient.device().is_cpu()) {  // on a GPU, all of the bucket is copied at once
    slot.gradient.copy_(gradient);
    gradient = slot.gradient.detach();
  }
}

bool GradientReducer::lies_elsewhere(std::size_t parameter) const {
  const Slot& slot = slots_[parameter];
  const torch::Tensor& gradient = parameters_[parameter].tensor.grad();
  if (!gradient.defined() || gradient.is_sparse()) return false;
  return !slot.gradient.defined() || gradient.data_ptr() != slot.gradient.data_ptr();
}

void GradientReducer::launch(LiveBucket& bucket) {
  const torch::Device device = bucket.contents.device();
  for (const BucketSlot& place : bucket.contents.slots) take_in_stray_gradient(place.parameter);
  if (!device.is_cpu()) {
    pack_on_device(bucket);
    bucket.contents.buffer.stream = handle_of(current_stream(device));
  }
  for (const BucketSlot& place : bucket.contents.slots) {
    if (!has_gradient(place.parameter)) slots_[place.parameter].gradient.zero_();
  }
  const ReduceOptions reduction{.op = options_.op,
                                .prescale = 1 / options_.predivide,
                                .postscale = options_.predivide * scale_of_passes(),
                                .name = bucket.contents.name};
  bucket.reduction = options_.to_parts ? options_.compression->reduce_to_parts(group_, bucket.contents, reduction)
                                       : options_.compression->reduce(group_, bucket.contents, reduction);
}

bool GradientReducer::has_gradient(std::size_t parameter) const {
  return slots_[parameter].holds_window || parameters_[parameter].tensor.grad().defined();
}

void GradientReducer::synchronize() {
  const torch::NoGradGuard no_grad;
  const Stopwatch stopwatch(communication_seconds_);
  try {
    reduce_window();
  } catch (...) {
    close_window();
    throw;
  }
  close_window();
}

void GradientReducer::finish_alone() {
  const torch::NoGradGuard no_grad;
  if (options_.averages_passes && passes_ > 0) {
    for (const NamedParameter& parameter : parameters_) {
      if (parameter.tensor.grad().defined()) parameter.tensor.grad().div_(passes_);
    }
  }
  close_window();
}

void GradientReducer::reduce_window() {
  complete_partial_mean();
  for (; next_bucket_ < buckets_.size(); ++next_bucket_) launch(*buckets_[next_bucket_]);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const torch::Tensor& gradient = parameters_[i].tensor.grad();
    const bool is_used = (slots_[i].touched && has_gradient(i)) || lies_elsewhere(i);
    used_[i] = !is_used ? unused : gradient.defined() && gradient.is_sparse() ? sparse : dense;
  }
  group_.allreduce(used_, {.op = ReduceOp::max, .name = name_ + ", use of parameters"});

  std::vector<std::size_t> without_place;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (used_[i] == dense && !slots_[i].gradient.defined()) without_place.push_back(i);
  }
  if (!without_place.empty()) place(without_place);
  reduce_sparse();
  wait_for_all();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    torch::Tensor& gradient = parameters_[i].tensor.mutable_grad();
    if (used_[i] == dense && !gradient.defined() && !is_widened(i)) gradient = slots_[i].gradient.detach();
  }
}

// Buckets divide by the number of passes that a window should have; where it is cut short, this makes up for it.
void GradientReducer::complete_partial_mean() {
  if (!options_.averages_passes || passes_ == 0 || passes_ == options_.passes) return;
  const double factor = static_cast<double>(options_.passes) / passes_;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const torch::Tensor& gradient = parameters_[i].tensor.grad();
    if (gradient.defined()) gradient.mul_(factor);
    if (slots_[i].holds_window) slots_[i].gradient.mul_(factor);
  }
}

// As rank 0 saw them arrive; then those that it did not see, last to first. By a reduction, which ranks that have
// joined can answer.
std::vector<std::size_t> GradientReducer::order_of_arrival(std::vector<std::size_t> parameters) {
  constexpr std::int64_t never = std::numeric_limits<std::int32_t>::max();
  std::vector<std::int64_t> times(parameters_.size(), never);
  if (group_.rank() == 0) {
    for (std::size_t i = 0; i < arrivals_.size(); ++i) times[arrivals_[i]] = static_cast<std::int64_t>(i);
  }
  group_.allreduce(times, {.op = ReduceOp::min, .name = name_ + ", order of arrival"});
  std::ranges::reverse(parameters);
  std::ranges::stable_sort(parameters, {}, [&](std::size_t parameter) { return times[parameter]; });
  return parameters;
}

bool GradientReducer::all_ranks_take_part() {
  std::int64_t taking_part = 1;
  group_.allreduce(std::span(&taking_part, 1), {.op = ReduceOp::sum, .name = name_ + ", ranks with data"});
  return taking_part == group_.size();
}

void GradientReducer::place(const std::vector<std::size_t>& parameters) {
  std::vector<PlannedParameter> planned;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& [name, tensor, group] = parameters_[i];
    const DataType type = is_widened(i) ? DataType::f32 : data_type_of_tensor(tensor, name);
    planned.push_back(
        {static_cast<std::size_t>(tensor.numel()), type, group, tensor.device().is_cpu() ? Device::cpu : Device::cuda});
  }
  // Allocating takes all ranks. While some have joined, ordinary memory must do; agree_on_places() drops it afterwards.
  const Allocation allocation = all_ranks_take_part() ? Allocation::by_group : Allocation::alone;
  const std::size_t first_new = buckets_.size();
  for (const Bucket& bucket : plan_buckets(planned, order_of_arrival(parameters), options_.buckets)) {
    const std::size_t bytes = bucket.elements * size_of(bucket.type);
    GradientBucket& contents = buckets_.emplace_back(std::make_unique<LiveBucket>())->contents;
    contents.index = buckets_.size() - 1;
    contents.name = name_of(name_, contents.index, bucket.slots, parameters_);
    const torch::Device device = parameters_[bucket.slots.front().parameter].tensor.device();
    contents.memory = std::make_shared<Memory>(allocate_on(device, bytes, group_, allocation));
    contents.buffer = buffer_in(contents.memory->data(), bucket.elements, bucket.type, device);
    contents.slots = bucket.slots;
    contents.parts = parts_of(bucket.elements, group_.size());
    for (const BucketSlot& slot : bucket.slots) {
      torch::Tensor& gradient = parameters_[slot.parameter].tensor.mutable_grad();
      const torch::Tensor in_bucket = tensor_like_in(contents.memory, slot.first_element,
                                                     parameters_[slot.parameter].tensor, scalar_type_of(bucket.type));
      contents.gradients.push_back(in_bucket);
      slots_[slot.parameter].gradient = in_bucket;
      slots_[slot.parameter].bucket = contents.index;
      if (gradient.defined() && is_widened(slot.parameter)) {
        widen(slot.parameter);
      } else if (gradient.defined()) {
        in_bucket.copy_(gradient);
        keep_for_current_stream(gradient);
        gradient = in_bucket.detach();
      }
    }
  }
  // When all are there: memory cannot be allocated while a GPU's operation is being launched.
  for (std::size_t i = first_new; i < buckets_.size(); ++i) launch(*buckets_[i]);
  arrivals_.clear();
}

void GradientReducer::reduce_sparse() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (used_[i] != sparse) continue;
    auto& [name, tensor, group] = parameters_[i];
    const std::string operation = fmt::format("{}, sparse {}", name_, name);
    tensor.mutable_grad() = reduce_sparse_gradient(group_, slots_[i].touched ? tensor.grad() : torch::Tensor(), tensor,
                                                   {.op = options_.op, .scale = scale_of_passes(), .name = operation});
  }
}

void GradientReducer::wait_for_all() {
  std::exception_ptr first;
  for (const auto& bucket : buckets_) {
    try {
      wait_for_result(*bucket->reduction, bucket->contents.device());
    } catch (const Error&) {
      if (!first) first = std::current_exception();  // the others still have to end before their memory is used again
    }
  }
  if (first) std::rethrow_exception(first);
}

void GradientReducer::close_window() {
  for (const auto& bucket : buckets_) {
    bucket->reduction.reset();
    bucket->missing = bucket->contents.slots.size();
  }
  for (Slot& slot : slots_) {
    slot.passes = 0;
    slot.touched = false;
    slot.holds_window = false;
  }
  next_bucket_ = 0;
  passes_ = 0;
}

bool GradientReducer::has_unreduced() const { return std::ranges::any_of(slots_, &Slot::touched); }

void GradientReducer::drop_unreduced() {
  for (Slot& slot : slots_) slot.touched = slot.holds_window = false;
}

void GradientReducer::agree_on_places() {
  // Places are only ever added, so equal numbers are equal places.
  std::vector<std::int64_t> fewest_and_most = {static_cast<std::int64_t>(buckets_.size()),
                                               -static_cast<std::int64_t>(buckets_.size())};
  group_.allreduce(fewest_and_most, {.op = ReduceOp::min, .name = name_ + ", number of buckets"});
  if (fewest_and_most[0] == -fewest_and_most[1]) return;
  for (Slot& slot : slots_) slot.gradient.reset();
  buckets_.clear();
}

}  // namespace fedrun
