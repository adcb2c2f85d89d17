#include <ATen/MemoryOverlap.h>
#include <fedrun/core/error.h>
#include <fedrun/train/agreement.h>
#include <fedrun/train/broadcast.h>
#include <fedrun/train/device_stream.h>
#include <fedrun/train/tensor_buffer.h>
#include <fmt/format.h>

#include <array>

namespace fedrun {
namespace {

// Tensors of at least this size travel alone, from where they lie; copying smaller ones costs less than a broadcast.
constexpr std::size_t large_bytes = std::size_t{256} << 10;
// A parcel holds small tensors, one after the other; one that has this size is sent while the next is packed.
constexpr std::size_t parcel_bytes = std::size_t{4} << 20;

std::size_t bytes_of(const torch::Tensor& tensor) { return static_cast<std::size_t>(tensor.nbytes()); }

// Small tensors of one device, and their bytes in one piece.
struct Parcel {
  std::vector<torch::Tensor> tensors;  // contiguous
  torch::Tensor bytes;
};

torch::Tensor as_bytes(const torch::Tensor& contiguous) { return contiguous.view({-1}).view(torch::kUInt8); }

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
    if (contiguous.numel() == 0) return;
    if (bytes_of(contiguous) >= large_bytes) return start(as_bytes(contiguous));
    OpenParcel& open = open_[contiguous.device().is_cpu() ? 0 : 1];
    open.tensors.push_back(as_bytes(contiguous));
    open.bytes += bytes_of(contiguous);
    if (open.bytes >= parcel_bytes) send(open);
  }

  void finish() {
    for (OpenParcel& open : open_) {
      if (open.bytes > 0) send(open);
    }
    for (const Sending& sending : sendings_) wait_for_result(*sending.work, sending.bytes.device());
    if (group_.rank() == options_.root) return;
    for (const Parcel& parcel : parcels_) {
      std::int64_t first = 0;
      for (const torch::Tensor& tensor : parcel.tensors) {
        tensor.copy_(parcel.bytes.slice(0, first, first + tensor.numel()));
        first += tensor.numel();
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
  struct OpenParcel {
    std::vector<torch::Tensor> tensors;  // as bytes
    std::size_t bytes = 0;
  };
  struct Sending {
    torch::Tensor bytes;
    std::unique_ptr<Work> work;  // last: its destructor may wait for what uses the above
  };

  void send(OpenParcel& open) {
    Parcel& parcel = parcels_.emplace_back(std::move(open.tensors), torch::Tensor());
    parcel.bytes = group_.rank() == options_.root
                       ? torch::cat(parcel.tensors)
                       : torch::empty(static_cast<std::int64_t>(open.bytes), parcel.tensors.front().options());
    start(parcel.bytes);
    open = {};
  }

  void start(const torch::Tensor& bytes) {
    const std::string name = options_.name.empty() ? "" : fmt::format("{}.{}", options_.name, sendings_.size());
    sendings_.push_back(
        {bytes, group_.broadcast_async(buffer_of(bytes, "bytes"), {.root = options_.root, .name = name})});
  }

  Communicator& group_;
  BroadcastOptions options_;
  std::vector<Target> targets_;
  std::array<OpenParcel, 2> open_;  // of the CPU, and of the GPU
  std::vector<Parcel> parcels_;
  std::vector<Sending> sendings_;
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
