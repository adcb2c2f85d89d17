#include <ATen/MemoryOverlap.h>
#include <fedrun/core/error.h>
#include <fedrun/train/agreement.h>
#include <fedrun/train/broadcast.h>
#include <fedrun/train/tensor_buffer.h>
#include <fmt/format.h>

#include <cstring>

namespace fedrun {
namespace {

// Tensors of at least this size travel alone, from where they lie; copying smaller ones costs less than a broadcast.
constexpr std::size_t large_bytes = std::size_t{256} << 10;
// A parcel holds small tensors, one after the other; one that has this size is sent while the next is packed.
constexpr std::size_t parcel_bytes = std::size_t{4} << 20;

std::size_t bytes_of(const torch::Tensor& tensor) { return static_cast<std::size_t>(tensor.nbytes()); }

struct Parcel {
  std::vector<torch::Tensor> tensors;  // contiguous
  std::vector<std::byte> bytes;
};

// The user's tensor, and its elements in one piece: the same memory where that is contiguous, otherwise a copy.
struct Target {
  torch::Tensor tensor;
  torch::Tensor contiguous;
};

Target check_target(const std::string& name, const torch::Tensor& tensor) {
  torch::Tensor contiguous = pack(tensor, fmt::format("broadcast of '{}'", name));
  if (at::has_internal_overlap(tensor) == at::MemOverlap::Yes) {
    throw UsageError(
        fmt::format("broadcast: elements of tensor '{}' share memory, as expand() makes them: pass a clone()", name));
  }
  return {tensor, std::move(contiguous)};
}

// Sends everything asynchronously, then puts it in its place.
class Shipment {
 public:
  Shipment(Communicator& group, const BroadcastOptions& options) : group_(group), options_(options) {}

  void add(const Target& target) {
    targets_.push_back(target);
    const torch::Tensor& contiguous = target.contiguous;
    if (bytes_of(contiguous) >= large_bytes) {
      start({contiguous.data_ptr(), bytes_of(contiguous), DataType::u8});
    } else {
      open_.tensors.push_back(contiguous);
      open_bytes_ += bytes_of(contiguous);
      if (open_bytes_ >= parcel_bytes) send_parcel();
    }
  }

  void finish() {
    if (open_bytes_ > 0) send_parcel();
    for (const std::unique_ptr<Work>& work : works_) work->wait();
    if (group_.rank() == options_.root) return;
    for (const Parcel& parcel : parcels_) {
      std::size_t first = 0;
      for (const torch::Tensor& tensor : parcel.tensors) {
        if (bytes_of(tensor) > 0) std::memcpy(tensor.data_ptr(), parcel.bytes.data() + first, bytes_of(tensor));
        first += bytes_of(tensor);
      }
    }
    for (const auto& [tensor, contiguous] : targets_) {
      if (!contiguous.is_alias_of(tensor)) {
        tensor.copy_(contiguous);
      } else if (!tensor.is_inference()) {
        tensor.unsafeGetTensorImpl()->bump_version();  // by this, autograd notices writes to what it has kept
      }
    }
  }

 private:
  void send_parcel() {
    Parcel& parcel = parcels_.emplace_back(std::move(open_));
    parcel.bytes.reserve(open_bytes_);
    if (group_.rank() == options_.root) {
      for (const torch::Tensor& tensor : parcel.tensors) {
        const auto* data = static_cast<const std::byte*>(tensor.const_data_ptr());
        parcel.bytes.insert(parcel.bytes.end(), data, data + bytes_of(tensor));
      }
    }
    parcel.bytes.resize(open_bytes_);
    start({parcel.bytes.data(), parcel.bytes.size(), DataType::u8});
    open_ = {};
    open_bytes_ = 0;
  }

  void start(Buffer bytes) {
    const std::string name = options_.name.empty() ? "" : fmt::format("{}.{}", options_.name, works_.size());
    works_.push_back(group_.broadcast_async(bytes, {.root = options_.root, .name = name}));
  }

  Communicator& group_;
  BroadcastOptions options_;
  std::vector<Target> targets_;
  Parcel open_;
  std::size_t open_bytes_ = 0;
  std::vector<Parcel> parcels_;               // the operations hold addresses of the bytes, which moving keeps
  std::vector<std::unique_ptr<Work>> works_;  // last: their destructors may wait for what uses the above
};

}  // namespace

void broadcast_tensors(Communicator& group, const NamedTensors& tensors, const BroadcastOptions& options) {
  const torch::NoGradGuard no_grad;
  std::vector<Target> targets;
  std::vector<std::string> descriptions;
  for (const auto& [name, tensor] : tensors) {
    targets.push_back(check_target(name, tensor));
    descriptions.push_back(describe_tensor(name, tensor));
  }
  check_agreement(group, "broadcast: the tensors", descriptions);

  Shipment shipment(group, options);
  for (const Target& target : targets) shipment.add(target);
  shipment.finish();
}

void broadcast_parameters(Communicator& group, const torch::nn::Module& module, const BroadcastOptions& options) {
  NamedTensors tensors;
  for (const auto& parameter : module.named_parameters()) tensors.emplace_back(parameter.key(), parameter.value());
  for (const auto& buffer : module.named_buffers()) tensors.emplace_back(buffer.key(), buffer.value());
  broadcast_tensors(group, tensors, options);
}

}  // namespace fedrun
