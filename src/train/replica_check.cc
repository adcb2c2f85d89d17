#include <fedrun/collectives/hash.h>
#include <fedrun/core/error.h>
#include <fedrun/train/agreement.h>
#include <fedrun/train/byte_exchange.h>
#include <fedrun/train/replica_check.h>
#include <fedrun/train/tensor_buffer.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <span>

namespace fedrun {
namespace {

NamedTensors tensors_of(const torch::nn::Module& module, bool buffers) {
  NamedTensors tensors;
  for (const auto& parameter : module.named_parameters()) tensors.emplace_back(parameter.key(), parameter.value());
  if (!buffers) return tensors;
  for (const auto& buffer : module.named_buffers()) tensors.emplace_back(buffer.key(), buffer.value());
  return tensors;
}

// In host memory, where the bytes can be looked at.
torch::Tensor contiguous(const std::string& name, const torch::Tensor& tensor) {
  return pack(tensor, fmt::format("ReplicaCheck of '{}'", name)).cpu();
}

std::span<const std::byte> bytes_of(const torch::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), static_cast<std::size_t>(tensor.nbytes())};
}

// Which ranks have a tensor like most others, and which do not; the lower ranks win a tie.
struct Sides {
  std::vector<int> most;
  std::vector<int> others;
};

Sides sides_of(const std::vector<std::int64_t>& hash_of_rank) {
  std::int64_t usual = hash_of_rank.front();
  for (const std::int64_t hash : hash_of_rank) {
    if (std::ranges::count(hash_of_rank, hash) > std::ranges::count(hash_of_rank, usual)) usual = hash;
  }
  Sides sides;
  for (std::size_t rank = 0; rank < hash_of_rank.size(); ++rank) {
    (hash_of_rank[rank] == usual ? sides.most : sides.others).push_back(static_cast<int>(rank));
  }
  return sides;
}

std::string ranks_text(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

std::string value_text(const torch::Tensor& element) {
  switch (element.scalar_type()) {
    case torch::kFloat64:
      return fmt::format("{}", element.item<double>());
    case torch::kFloat32:
    case torch::kFloat16:
    case torch::kBFloat16:
      return fmt::format("{}", element.item<float>());
    default:
      return fmt::format("{}", element.item<std::int64_t>());
  }
}

std::string bits_text(const torch::Tensor& element) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, element.const_data_ptr(), static_cast<std::size_t>(element.nbytes()));
  return fmt::format(" (bits {:#x})", bits);
}

// The first element in which two contiguous tensors differ, and both values of it.
std::string example_of(const torch::Tensor& left, int left_rank, const torch::Tensor& right, int right_rank) {
  const auto [place, unused] = std::ranges::mismatch(bytes_of(left), bytes_of(right));
  std::int64_t element = (place - bytes_of(left).begin()) / left.element_size();
  const torch::Tensor left_value = left.view(-1)[element];
  const torch::Tensor right_value = right.view(-1)[element];
  const bool look_alike = value_text(left_value) == value_text(right_value);  // as NaNs of different bits do
  std::vector<std::int64_t> index(static_cast<std::size_t>(left.dim()));
  for (std::size_t i = index.size(); i-- > 0;) {
    index[i] = element % left.size(static_cast<std::int64_t>(i));
    element /= left.size(static_cast<std::int64_t>(i));
  }
  return fmt::format("first at [{}], where rank {} has {}{} and rank {} has {}{}", fmt::join(index, ", "), left_rank,
                     value_text(left_value), look_alike ? bits_text(left_value) : "", right_rank,
                     value_text(right_value), look_alike ? bits_text(right_value) : "");
}

}  // namespace

ReplicaCheck::ReplicaCheck(Communicator& group, NamedTensors tensors, const ReplicaCheckOptions& options)
    : group_(group), tensors_(std::move(tensors)), every_(options.every) {
  if (every_ < 1) {
    throw UsageError(fmt::format("ReplicaCheck: cannot compare every {} steps: give at least 1", every_));
  }
  std::vector<std::string> lines = {fmt::format("a comparison every {} steps", every_)};
  for (const auto& [name, tensor] : tensors_) {
    contiguous(name, tensor);  // throws for what cannot be compared, now rather than in the middle of the training
    lines.push_back(describe_tensor(name, tensor));
  }
  check_agreement(group_, "ReplicaCheck: options and tensors", lines);
}

ReplicaCheck::ReplicaCheck(Communicator& group, const torch::nn::Module& module, const ReplicaCheckOptions& options)
    : ReplicaCheck(group, tensors_of(module, options.buffers), options) {}

void ReplicaCheck::step() {
  if (++steps_ % every_ == 0) compare();
}

void ReplicaCheck::compare() {
  const torch::NoGradGuard no_grad;
  std::vector<std::int64_t> hashes;
  std::uint64_t total = 0;
  for (const auto& [name, tensor] : tensors_) {
    const torch::Tensor elements = contiguous(name, tensor);
    const std::uint64_t hash = hash_of(bytes_of(elements));
    hashes.push_back(static_cast<std::int64_t>(hash));
    total = hash_of(total, hash);
  }
  const auto ranks = static_cast<std::size_t>(group_.size());
  const auto mine = static_cast<std::int64_t>(total);
  std::vector<std::int64_t> totals(ranks);
  group_.allgather(as_const_buffer(std::span(&mine, 1)), as_buffer(totals), std::vector<std::size_t>(ranks, 1));
  if (std::ranges::any_of(totals, [&](std::int64_t other) { return other != mine; })) throw_divergence(hashes);
}

// Collective: every rank has seen that the hashes differ.
void ReplicaCheck::throw_divergence(const std::vector<std::int64_t>& hashes) {
  const auto ranks = static_cast<std::size_t>(group_.size());
  std::vector<std::int64_t> all(ranks * hashes.size());
  group_.allgather(as_const_buffer(hashes), as_buffer(all), std::vector<std::size_t>(ranks, hashes.size()));
  std::vector<std::size_t> different;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    for (std::size_t rank = 1; rank < ranks; ++rank) {
      if (all[rank * hashes.size() + i] == all[i]) continue;
      different.push_back(i);
      break;
    }
  }
  const std::size_t first = different.front();
  std::vector<std::int64_t> hash_of_rank;
  for (std::size_t rank = 0; rank < ranks; ++rank) hash_of_rank.push_back(all[rank * hashes.size() + first]);
  const Sides sides = sides_of(hash_of_rank);

  const auto& [name, tensor] = tensors_[first];
  const torch::Tensor mine = contiguous(name, tensor);
  const torch::Tensor usual = mine.clone();
  group_.broadcast(buffer_of(usual, name), {.root = sides.most.front()});
  const int odd_rank = sides.others.front();
  const std::string example =
      broadcast_bytes(group_, {"ReplicaCheck", "an example"},
                      [&] { return example_of(usual, sides.most.front(), mine, odd_rank); }, {.root = odd_rank});
  throw MismatchError(
      fmt::format("ReplicaCheck: the replicas differ after step {}: {} is on {} not what it is on {}, {}; {} of {} "
                  "tensors differ. Something changed the model on some ranks only, or the ranks did not start from the "
                  "same weights; broadcast_parameters makes them equal again.",
                  steps_, describe_tensor(name, tensor), ranks_text(sides.others), ranks_text(sides.most), example,
                  different.size(), hashes.size()));
}

}  // namespace fedrun
