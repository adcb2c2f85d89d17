#include <fedrun/core/error.h>
#include <fedrun/train/agreement.h>
#include <fedrun/train/distributed_optimizer.h>
#include <fedrun/train/optimizer_parameters.h>
#include <fedrun/train/stopwatch.h>
#include <fedrun/train/tensor_buffer.h>
#include <fedrun/train/tensor_collectives.h>
#include <fmt/format.h>

#include <cmath>

namespace fedrun {
namespace {

void check_adasum(const DistributedOptimizerOptions& options) {
  if (options.sharded) {
    throw UsageError("DistributedOptimizer: with Adasum every rank steps all parameters, so sharded cannot be on");
  }
  if (options.group_count != 0 || !options.groups.empty()) {
    throw UsageError("DistributedOptimizer: Adasum combines each parameter by itself, so there are no groups");
  }
}

void check_options(const DistributedOptimizerOptions& options) {
  if (options.op != ReduceOp::average && options.op != ReduceOp::sum && options.op != ReduceOp::adasum) {
    throw UsageError(fmt::format("DistributedOptimizer cannot reduce gradients by {}: use average, sum or adasum",
                                 to_string(options.op)));
  }
  if (options.buckets.first_bytes == 0 || options.buckets.bytes == 0) {
    throw UsageError("DistributedOptimizer: bucket sizes must be at least 1 byte");
  }
  if (options.backward_passes_per_step < 1) {
    throw UsageError(fmt::format("DistributedOptimizer: backward_passes_per_step {} must be at least 1",
                                 options.backward_passes_per_step));
  }
  const double factor = options.gradient_predivide_factor;
  if (!std::isfinite(factor) || factor <= 0) {
    throw UsageError(
        fmt::format("DistributedOptimizer: gradient_predivide_factor {} must be a finite number above 0", factor));
  }
  if (factor != 1 && options.op != ReduceOp::average) {
    throw UsageError(fmt::format("DistributedOptimizer: gradient_predivide_factor goes with average, not with {}",
                                 to_string(options.op)));
  }
  if (options.compression == nullptr) {
    throw UsageError("DistributedOptimizer: compression is a null pointer: use Compression::none");
  }
  if (options.op == ReduceOp::adasum) check_adasum(options);
  if (options.master_weights && (options.sharded || options.op == ReduceOp::adasum)) {
    throw UsageError(
        fmt::format("DistributedOptimizer: master_weights cannot be combined with {}: leave one of them off",
                    options.sharded ? "sharded" : "Adasum"));
  }
}

// Adasum does not go through buckets, for which users write compressions.
std::optional<DataType> adasum_wire(const Compression* compression) {
  if (compression == Compression::none.get()) return std::nullopt;
  if (compression == Compression::fp16.get()) return DataType::f16;
  if (compression == Compression::bf16.get()) return DataType::bf16;
  throw UsageError(
      fmt::format("DistributedOptimizer: compression '{}' cannot be used with Adasum: use none, fp16 or bf16",
                  compression->name()));
}

GradientReducerOptions reducer_options(const DistributedOptimizerOptions& options) {
  return {.op = options.op,
          .compression = options.compression,
          .buckets = options.buckets,
          .passes = options.backward_passes_per_step,
          .averages_passes = options.accumulation == Accumulation::mean,
          .predivide = options.gradient_predivide_factor,
          .sparse_as_dense = options.sparse_as_dense || options.sharded,  // each rank steps parts of buckets
          .to_parts = options.sharded,
          .widens = options.master_weights};
}

// What must be the same on every rank, in words.
std::vector<std::string> describe_plan(const DistributedOptimizerOptions& options,
                                       const std::vector<NamedParameter>& parameters) {
  std::vector<std::string> plan = {
      fmt::format("op {}, compression {}, buckets of {} and {} bytes", to_string(options.op),
                  options.compression->name(), options.buckets.first_bytes, options.buckets.bytes),
      fmt::format("{} backward passes per step ({}), predivide factor {}", options.backward_passes_per_step,
                  options.accumulation == Accumulation::mean ? "mean" : "sum", options.gradient_predivide_factor),
      fmt::format("sharded {}, sparse_as_dense {}, master weights {}", options.sharded, options.sparse_as_dense,
                  options.master_weights)};
  for (const auto& [name, tensor, group] : parameters) {
    plan.push_back(describe_tensor(name, tensor) + (group < 0 ? "" : fmt::format(" in group {}", group)));
  }
  return plan;
}

}  // namespace

DistributedOptimizer::DistributedOptimizer(Communicator& group, std::unique_ptr<torch::optim::Optimizer> optimizer,
                                           const torch::OrderedDict<std::string, torch::Tensor>& named_parameters,
                                           const DistributedOptimizerOptions& options)
    : group_(group), optimizer_(std::move(optimizer)), op_(options.op) {
  check_options(options);
  if (optimizer_ == nullptr) throw UsageError("DistributedOptimizer needs an optimizer to wrap, not a null pointer");
  std::vector<NamedParameter> parameters = name_parameters(*optimizer_, named_parameters, options);
  check_agreement(group, "DistributedOptimizer: options and parameters", describe_plan(options, parameters));
  if (options.op == ReduceOp::adasum) adasum_.emplace(group, parameters, adasum_wire(options.compression.get()));
  reducer_ = std::make_unique<GradientReducer>(group, std::move(parameters), reducer_options(options));
  if (options.sharded) sharded_.emplace(group, *optimizer_, *reducer_);
  if (options.master_weights) masters_.emplace(*optimizer_, *reducer_);
  parameter_groups_ = optimizer_->param_groups().size();
}

void DistributedOptimizer::zero_grad(bool set_to_none) {
  if (reducer_->window_open()) {
    throw UsageError(
        "zero_grad() was called after backward() and before step(), while gradients are being reduced: call it "
        "before backward() or after step()");
  }
  reducer_->drop_unreduced();
  reduced_ = false;
  for (const NamedParameter& parameter : reducer_->parameters()) {
    torch::Tensor& gradient = parameter.tensor.mutable_grad();
    if (!gradient.defined()) continue;
    if (set_to_none) {
      gradient.reset();
    } else {
      gradient.detach_().zero_();
    }
  }
}

void DistributedOptimizer::synchronize() {
  if (adasum_) {
    throw UsageError(
        "synchronize(): with Adasum each rank steps with its own gradients, so none are reduced before step()");
  }
  check_parameter_groups();
  reducer_->synchronize();
  if (sharded_) sharded_->prepare();
  if (masters_) masters_->prepare();
  reduced_ = true;
}

double DistributedOptimizer::clip_gradient_norm(double max_norm, double norm_type) {
  if (!(max_norm > 0)) throw UsageError(fmt::format("clip_gradient_norm: max_norm {} must be above 0", max_norm));
  if (!is_reduced()) synchronize();
  if (!sharded_) {
    std::vector<torch::Tensor> parameters = masters_ ? masters_->stepped() : std::vector<torch::Tensor>();
    if (!masters_) {
      for (const NamedParameter& parameter : reducer_->parameters()) parameters.push_back(parameter.tensor);
    }
    return torch::nn::utils::clip_grad_norm_(parameters, max_norm, norm_type);
  }
  const Stopwatch stopwatch(communication_seconds_);
  const double norm = sharded_->gradient_norm(norm_type);
  const double factor = max_norm / (norm + 1e-6);  // as Torch does it
  if (factor < 1) sharded_->scale_gradients(factor);
  return norm;
}

torch::Tensor DistributedOptimizer::step(const torch::optim::Optimizer::LossClosure& closure) {
  check_parameter_groups();
  if (adasum_) adasum_->remember();
  torch::Tensor loss;
  if (closure) {
    // Optimizers such as LBFGS run backward several times in one step; each of them is reduced.
    loss = optimizer_->step([&] {
      const torch::AutoGradMode with_gradients(true);
      const torch::Tensor closure_loss = closure();
      finish_gradients();
      // It decides about their steps and when they stop, which must be the same on all ranks.
      return adasum_ ? closure_loss : allreduce(group_, closure_loss.detach(), {.op = op_});
    });
  } else {
    if (!is_reduced()) {
      if (skips_synchronize_ && !adasum_) {
        throw UsageError(
            "step() inside skip_synchronize(), but the gradients have not been reduced: call synchronize() first");
      }
      finish_gradients();
    }
    loss = optimizer_->step();
  }
  reduced_ = false;
  const Stopwatch stopwatch(communication_seconds_);
  if (adasum_) adasum_->combine();
  if (sharded_) sharded_->share();
  if (masters_) masters_->write_back();
  return loss;
}

bool DistributedOptimizer::is_reduced() const { return reduced_ && !reducer_->has_unreduced(); }

void DistributedOptimizer::check_parameter_groups() const {
  if (optimizer_->param_groups().size() == parameter_groups_) return;
  throw UsageError(
      fmt::format("the optimizer has {} parameter groups, and had {} when it was wrapped: nobody would reduce the "
                  "gradients of new ones; add them before, or wrap an optimizer of their own",
                  optimizer_->param_groups().size(), parameter_groups_));
}

NamedTensors DistributedOptimizer::master_weights() const { return masters_ ? masters_->named() : NamedTensors(); }

// What the optimizer steps with is complete when this returns.
void DistributedOptimizer::finish_gradients() {
  if (adasum_) {
    reducer_->finish_alone();
  } else {
    synchronize();
  }
}

}  // namespace fedrun
