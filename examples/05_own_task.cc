// A federated task of one's own: stations that measure the same line with different errors, and learn it together.
#include <fedrun/fl/federation.h>
#include <fedrun/train/session.h>
#include <fmt/format.h>

namespace {

using namespace fedrun::fl;
using fedrun::Meter;

// Station k has measured y = 3x − 1 at 10 + k places.
class Stations : public ClientData {
 public:
  std::size_t clients() const override { return 20; }
  std::size_t train_samples(std::size_t station) const override { return 10 + station; }

  std::pair<torch::Tensor, torch::Tensor> measurements(std::size_t station) const {
    torch::manual_seed(station);
    const torch::Tensor x = torch::rand({static_cast<std::int64_t>(train_samples(station)), 1});
    return {x, 3 * x - 1 + 0.1 * torch::randn_like(x)};
  }
};

class LineTrainer : public ModelTrainer {
 public:
  explicit LineTrainer(const Stations& stations) : stations_(stations) {}

  torch::nn::Module& model() override { return *line_; }

  LocalResult train(LocalTask& task) override {
    const auto [x, y] = stations_.measurements(task.client);
    torch::optim::SGD optimizer({task.model.weights()}, 0.1);  // all parameters lie in this one tensor
    LocalResult result;
    for (; result.steps < 10; ++result.steps) {
      task.check_time();
      task.model.gradients().zero_();
      const torch::Tensor loss = torch::mse_loss(line_(x), y);
      loss.backward();
      task.finish_gradients(static_cast<std::size_t>(x.size(0)));
      optimizer.step();
      result.loss = loss.item<double>();
    }
    return result;
  }

  void test(const TestPart& part, Meter& metrics) override {
    for (std::size_t station = part.index; station < stations_.clients(); station += part.parts) {
      test_client(station, metrics);
    }
  }

  void test_client(std::size_t station, Meter& metrics) override {
    const auto [x, y] = stations_.measurements(station);
    metrics.add("error", torch::mse_loss(line_(x), y).item<double>(), static_cast<double>(x.size(0)));
  }

 private:
  const Stations& stations_;
  torch::nn::Linear line_{1, 1};
};

}  // namespace

int main() {
  fedrun::Session session;
  torch::manual_seed(1);
  RankGroups groups(session.world());
  const Stations stations;
  LineTrainer trainer(stations);
  Federation federation(groups, trainer, stations, std::make_unique<FedAvg>(), {.clients_per_round = 5});
  while (federation.round() < 30) federation.run_round();

  const double error = federation.evaluate().mean("error");
  const ClientResult worst = federation.evaluate_clients().ranked("error").back();
  const torch::Tensor weights = federation.global_state();
  if (session.world().rank() == 0) {
    fmt::print("y = {:.2f} x + {:.2f}, mean squared error {:.4f}; worst at station {}: {:.4f}\n",
               weights[0].item<float>(), weights[1].item<float>(), error, worst.client, worst.value);
  }
}
