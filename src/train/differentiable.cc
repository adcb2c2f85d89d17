#include <fedrun/train/differentiable.h>

namespace fedrun {
namespace {

// Autograd's context keeps only Torch's own kinds of values; this is one that may hold anything.
struct KeptGradient : torch::CustomClassHolder {
  explicit KeptGradient(Gradient function) : gradient(std::move(function)) {}
  Gradient gradient;
};

// Not an argument of its own, since autograd returns views of tensors that it was given.
struct Computed {
  torch::Tensor output;
  Gradient gradient;
};

struct Recorded : torch::autograd::Function<Recorded> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& /*input*/,
                               const Computed& computed) {
    context->saved_data["gradient"] = torch::IValue::make_capsule(c10::make_intrusive<KeptGradient>(computed.gradient));
    return computed.output;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto kept = context->saved_data["gradient"].toCapsule();
    return {static_cast<const KeptGradient&>(*kept).gradient(gradients[0]), torch::Tensor()};
  }
};

}  // namespace

torch::Tensor differentiable(const torch::Tensor& input, const torch::Tensor& output, const Gradient& gradient) {
  return is_recorded(input) ? Recorded::apply(input, Computed{output, gradient}) : output;
}

bool is_recorded(const torch::Tensor& tensor) {
  return torch::GradMode::is_enabled() && tensor.defined() && tensor.requires_grad();
}

std::string gradient_name(std::string_view name) {
  return name.empty() ? std::string() : std::string(name) + ".gradient";
}

}  // namespace fedrun
