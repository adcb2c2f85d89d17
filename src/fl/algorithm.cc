#include <fedrun/core/error.h>
#include <fedrun/fl/algorithm.h>
#include <fmt/format.h>

#include <cmath>

namespace fedrun::fl {
namespace {

void check_momentum(double momentum, std::string_view name = "momentum") {
  if (!(momentum >= 0 && momentum < 1)) {
    throw UsageError(fmt::format("a {} of {} is not from 0 to below 1", name, momentum));
  }
}

void check_server_rate(double lr) {
  if (!(lr > 0)) throw UsageError(fmt::format("a server's learning rate of {} is not above 0", lr));
}

}  // namespace

void FedAvg::apply(const torch::Tensor& global_weights, const RoundAverage& average) {
  global_weights.add_(average.delta);
}

FedProx::FedProx(double mu) : mu_(mu) {
  if (!(mu >= 0)) throw UsageError(fmt::format("FedProx: mu is {}, but must not be negative", mu));
}

void FedProx::correct_gradients(std::size_t, const torch::Tensor& gradients, const torch::Tensor& local_weights,
                                const torch::Tensor& global_weights) {
  gradients.add_(local_weights, mu_).sub_(global_weights, mu_);
}

FedAvgM::FedAvgM(const FedAvgMOptions& options) : options_(options) {
  check_server_rate(options.lr);
  check_momentum(options.momentum, "server's momentum");
}

void FedAvgM::apply(const torch::Tensor& global_weights, const RoundAverage& average) {
  if (!momentum_.defined()) momentum_ = torch::zeros_like(global_weights);
  momentum_.mul_(options_.momentum).add_(average.delta);
  global_weights.add_(momentum_, options_.lr);
}

FedOpt::FedOpt(ServerOptimizer kind, const FedOptOptions& options) : kind_(kind), options_(options) {
  check_server_rate(options.lr);
  check_momentum(options.beta1, "beta1");
  check_momentum(options.beta2, "beta2");
  if (!(options.tau > 0)) {
    throw UsageError(
        fmt::format("a tau of {} is not above 0: it keeps steps finite where nothing has changed yet", options.tau));
  }
}

std::string_view FedOpt::name() const {
  switch (kind_) {
    case ServerOptimizer::adagrad:
      return "fedadagrad";
    case ServerOptimizer::adam:
      return "fedadam";
    case ServerOptimizer::yogi:
      break;
  }
  return "fedyogi";
}

void FedOpt::apply(const torch::Tensor& global_weights, const RoundAverage& average) {
  if (!m_.defined()) {
    m_ = torch::zeros_like(global_weights);
    v_ = torch::full_like(global_weights, options_.tau * options_.tau);
  }
  m_.mul_(options_.beta1).add_(average.delta, 1 - options_.beta1);
  const torch::Tensor square = average.delta.square();
  switch (kind_) {
    case ServerOptimizer::adagrad:
      v_.add_(square);
      break;
    case ServerOptimizer::adam:
      v_.mul_(options_.beta2).add_(square, 1 - options_.beta2);
      break;
    case ServerOptimizer::yogi:
      v_.sub_(square * (v_ - square).sign(), 1 - options_.beta2);
      break;
  }
  global_weights.addcdiv_(m_, v_.sqrt().add_(options_.tau), options_.lr);
}

FedNova::FedNova(double local_momentum) : local_momentum_(local_momentum) { check_momentum(local_momentum); }

void FedNova::prepare(ClientUpdate& update) {
  const auto tau = static_cast<double>(update.steps);
  const double rho = local_momentum_;
  update.scalar = rho == 0 ? tau : (tau - rho * (1 - std::pow(rho, tau)) / (1 - rho)) / (1 - rho);
  if (update.scalar > 0) update.delta.div_(update.scalar);  // a client without steps has changed nothing
}

void FedNova::apply(const torch::Tensor& global_weights, const RoundAverage& average) {
  global_weights.add_(average.delta, average.scalar);
}

Scaffold::Scaffold(const ScaffoldOptions& options) : options_(options) {
  if (options.clients < 1 || !(options.local_lr > 0)) {
    throw UsageError(
        fmt::format("SCAFFOLD needs the number of all clients and the clients' learning rate, not {} and {}",
                    options.clients, options.local_lr));
  }
  check_server_rate(options.global_lr);
  check_momentum(options.local_momentum);
}

void Scaffold::correct_gradients(std::size_t client, const torch::Tensor& gradients, const torch::Tensor&,
                                 const torch::Tensor&) {
  const double share = 1 - options_.local_momentum;
  if (control_.defined()) gradients.add_(control_, share);
  const auto own = of_client_.find(client);
  if (own != of_client_.end()) gradients.sub_(own->second, share);
}

void Scaffold::prepare(ClientUpdate& update) {
  update.extra.zero_();
  if (update.steps > 0) {
    update.extra.sub_(update.delta, 1 / (static_cast<double>(update.steps) * options_.local_lr));
    if (control_.defined()) update.extra.sub_(control_);
  }
  const auto own = of_client_.find(update.client);
  learnt_[update.client] = own == of_client_.end() ? update.extra.clone() : own->second + update.extra;
}

void Scaffold::apply(const torch::Tensor& global_weights, const RoundAverage& average) {
  for (auto& [client, control] : learnt_) of_client_[client] = std::move(control);
  learnt_.clear();
  if (!control_.defined()) control_ = torch::zeros_like(global_weights);
  global_weights.add_(average.delta, options_.global_lr);
  control_.add_(average.extra, static_cast<double>(average.clients) / static_cast<double>(options_.clients));
}

}  // namespace fedrun::fl
