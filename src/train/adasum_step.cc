#include <fedrun/train/adasum_step.h>
#include <fedrun/train/tensor_buffer.h>
#include <fmt/format.h>

namespace fedrun {

AdasumStep::AdasumStep(Communicator& group, const std::vector<NamedParameter>& parameters, std::optional<DataType> wire)
    : group_(group), wire_(wire) {
  const std::uint64_t number = group.next_number();
  for (const auto& [name, tensor, _] : parameters) {
    Change& change = changes_.emplace_back();
    change.name = fmt::format("Adasum {}: {}", number, name);
    change.parameter = tensor;
    change.start = torch::empty_like(tensor.detach(), torch::MemoryFormat::Contiguous);
    // In host memory, wherever the parameter lies: Adasum knows no other.
    change.memory = std::make_shared<Memory>(group.allocate(static_cast<std::size_t>(tensor.nbytes())));
    change.difference =
        tensor_in(change.memory, 0, static_cast<std::size_t>(tensor.numel()), tensor.options().device(torch::kCPU))
            .view(tensor.sizes());
  }
}

void AdasumStep::remember() {
  for (const Change& change : changes_) change.start.copy_(change.parameter.detach());
}

void AdasumStep::combine() {
  const torch::NoGradGuard no_grad;
  std::vector<std::unique_ptr<Work>> works;
  for (Change& change : changes_) {
    if (change.parameter.device().is_cpu()) {
      torch::sub_out(change.difference, change.parameter, change.start);
    } else {
      change.difference.copy_(change.parameter - change.start);
    }
    const Buffer difference = buffer_of(change.difference, change.name);
    works.push_back(group_.allreduce_async(difference, {.op = ReduceOp::adasum,
                                                        .wire = difference.type == DataType::f32 ? wire_ : std::nullopt,
                                                        .name = change.name}));
  }
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    works[i]->wait();
    const Change& change = changes_[i];
    change.parameter.copy_(change.start.add_(change.difference.to(change.parameter.device())));
  }
}

}  // namespace fedrun
