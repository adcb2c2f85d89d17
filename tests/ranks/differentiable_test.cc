// Gradients of collectives, against what differentiating the sum of all ranks' losses by hand gives.
#include <fedrun/train/tensor_collectives.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "support/error_text.h"
#include "support/rank_test.h"

namespace fedrun {
namespace {

using test::usage_error_of;
using test::world;
using testing::HasSubstr;

constexpr ReduceOptions sum{.op = ReduceOp::sum};

int ranks() { return world().size(); }
int me() { return world().rank(); }
double sum_of_marks() { return ranks() * (ranks() + 1) / 2.0; }

torch::Tensor variable(torch::IntArrayRef sizes) {
  return torch::ones(sizes, torch::dtype(torch::kFloat64).requires_grad(true));
}

// Every rank's loss is its output times its mark, so that gradients show where they come from.
torch::Tensor gradient(const torch::Tensor& input, const torch::Tensor& output) {
  output.backward(torch::full(output.sizes(), me() + 1, torch::kFloat64));
  return input.grad();
}

void expect_equal(const torch::Tensor& actual, const torch::Tensor& expected) {
  EXPECT_EQ(actual.sizes(), expected.sizes());
  EXPECT_TRUE(torch::equal(actual, expected)) << actual << "\ninstead of\n" << expected;
}

torch::Tensor filled(torch::IntArrayRef sizes, double value) { return torch::full(sizes, value, torch::kFloat64); }

TEST(Gradient, OfAllreduce) {
  const torch::Tensor summed = variable({2, 3});
  expect_equal(gradient(summed, allreduce(world(), summed, sum)), filled({2, 3}, sum_of_marks()));
  const torch::Tensor averaged = variable({});
  expect_equal(gradient(averaged, allreduce(world(), averaged)), filled({}, sum_of_marks() / ranks()));
  const torch::Tensor scaled = variable({2});
  expect_equal(gradient(scaled, allreduce(world(), scaled, {.op = ReduceOp::sum, .prescale = 2, .postscale = 4})),
               filled({2}, 8 * sum_of_marks()));
  const torch::Tensor strided = variable({4, 2});
  expect_equal(gradient(strided, allreduce(world(), strided.t(), sum)), filled({4, 2}, sum_of_marks()));
}

TEST(Gradient, OfAWeightedAllreduce) {
  const double weight = 2 * (me() + 1);
  const torch::Tensor summed = variable({2});
  expect_equal(gradient(summed, allreduce(world(), summed, {.op = ReduceOp::sum, .weight = weight})),
               filled({2}, weight * sum_of_marks()));
  const torch::Tensor averaged = variable({2});
  const torch::Tensor actual = gradient(averaged, allreduce(world(), averaged, {.weight = weight}));
  EXPECT_TRUE(torch::allclose(actual, filled({2}, weight / 2)));  // of 2 · the sum of the marks
  const torch::Tensor left_out = variable({2});
  expect_equal(gradient(left_out, allreduce(world(), left_out, {.weight = 0})), filled({2}, 0));
}

TEST(Gradient, OfAGroupedAllreduce) {
  const torch::Tensor used = variable({2});
  const torch::Tensor also_used = variable({3});
  const torch::Tensor unused = variable({4});
  const Tensors reduced = grouped_allreduce(world(), {used, torch::ones({2}, torch::kInt64), unused, also_used},
                                            {.op = ReduceOp::sum, .name = "g"});
  EXPECT_FALSE(reduced[1].requires_grad());
  (reduced[0].sum() + 2 * reduced[3].sum()).backward();
  expect_equal(used.grad(), filled({2}, ranks()));
  expect_equal(also_used.grad(), filled({3}, 2 * ranks()));
  EXPECT_FALSE(unused.grad().defined());
}

TEST(Gradient, OfAllgather) {
  const torch::Tensor mine = variable({me(), 2});  // rank r brings r rows
  expect_equal(gradient(mine, allgather(world(), mine)), filled({me(), 2}, sum_of_marks()));
  const torch::Tensor scalar = variable({});
  expect_equal(gradient(scalar, allgather(world(), scalar)), filled({}, sum_of_marks()));
  const torch::Tensor first = variable({1});
  const torch::Tensor second = variable({me(), 1});
  const Tensors all = grouped_allgather(world(), {first, second});
  (all[0].sum() + 3 * all[1].sum()).backward();
  expect_equal(first.grad(), filled({1}, ranks()));
  expect_equal(second.grad(), filled({me(), 1}, 3 * ranks()));
}

TEST(Gradient, OfBroadcast) {
  for (int root = 0; root < ranks(); ++root) {
    const torch::Tensor mine = variable({2, 2});
    expect_equal(gradient(mine, broadcast(world(), mine, {.root = root})),
                 filled({2, 2}, me() == root ? sum_of_marks() : 0));
  }
}

TEST(Gradient, OfAlltoall) {
  // This rank sends `to` rows to rank `to`, whose mark comes back for each of them.
  Splits splits;
  Tensors marks;
  for (int to = 0; to < ranks(); ++to) {
    splits.push_back(to);
    marks.push_back(filled({to, 2}, to + 1));
  }
  const torch::Tensor expected = torch::cat(marks);
  const torch::Tensor mine = variable(expected.sizes());
  expect_equal(gradient(mine, alltoall(world(), mine, splits).tensor), expected);
}

TEST(Gradient, OfReduceScatter) {
  const int rows = 2 * ranks() - 1;  // the last rank gets one row less
  const torch::Tensor marks = torch::arange(2 * ranks(), torch::kFloat64).div(2, "floor").add(1).slice(0, 0, rows);
  const torch::Tensor summed = variable({rows});
  expect_equal(gradient(summed, reduce_scatter(world(), summed, sum)), marks);
  const torch::Tensor averaged = variable({rows});
  expect_equal(gradient(averaged, reduce_scatter(world(), averaged, {.prescale = 2, .name = "scattered"})),
               marks * 2 / ranks());
  const torch::Tensor grouped = variable({rows});
  expect_equal(gradient(grouped, grouped_reduce_scatter(world(), {grouped}, sum)[0]), marks);
  const double weight = me() + 1;
  const torch::Tensor weighted = variable({rows});
  expect_equal(gradient(weighted, reduce_scatter(world(), weighted, {.op = ReduceOp::sum, .weight = weight})),
               marks * weight);
}

// The slopes of the sum of all ranks' losses, by moving one element of one rank at a time.
torch::Tensor measured_gradient(const torch::Tensor& input,
                                const std::function<torch::Tensor(const torch::Tensor&)>& loss) {
  const torch::NoGradGuard no_grad;
  constexpr double step = 1e-4;
  const auto total = [&] { return allreduce(world(), loss(input), sum).item<double>(); };
  const torch::Tensor slopes = torch::zeros_like(input);
  for (int rank = 0; rank < ranks(); ++rank) {
    for (std::int64_t i = 0; i < input.numel(); ++i) {
      const torch::Tensor element = input.view(-1)[i];
      const double mine = element.item<double>();
      if (rank == me()) element.fill_(mine + step);
      const double above = total();
      if (rank == me()) element.fill_(mine - step);
      const double below = total();
      element.fill_(mine);
      if (rank == me()) slopes.view(-1)[i].fill_((above - below) / (2 * step));
    }
  }
  return slopes;
}

TEST(Gradient, AgreesWithWhatIsMeasured) {
  torch::manual_seed(10 + me());
  const auto loss = [](const torch::Tensor& input) {
    const torch::Tensor average = allreduce(world(), input.square(), {.weight = me() + 0.5, .prescale = 0.5});
    const torch::Tensor all = allgather(world(), average.sin() * input);
    const torch::Tensor part = reduce_scatter(world(), all * (me() + 1), {});
    const torch::Tensor swapped = alltoall(world(), part.exp()).tensor;
    return (broadcast(world(), input * input, {.root = ranks() - 1}).sum() * swapped.square().sum()).sin();
  };
  const torch::Tensor input = torch::rand({2, 2}, torch::kFloat64).mul_(0.5).requires_grad_();
  loss(input).backward();
  EXPECT_TRUE(torch::allclose(input.grad(), measured_gradient(input, loss), 1e-4, 1e-6))
      << input.grad() << "\nmeasured\n"
      << measured_gradient(input, loss);
}

TEST(Gradient, CanBeDifferentiatedAgain) {
  // Every rank has the loss (n x)³ of the x of rank 0, so the sum of the losses is n⁴ x³.
  const torch::Tensor x = variable({});
  const torch::Tensor loss = allreduce(world(), broadcast(world(), x), sum).pow(3);
  const torch::Tensor first = torch::autograd::grad({loss}, {x}, {}, true, true)[0];
  const double n = ranks();
  EXPECT_DOUBLE_EQ(first.item<double>(), me() == 0 ? 3 * n * n * n * n : 0);
  const torch::Tensor second = torch::autograd::grad({first}, {x})[0];
  EXPECT_DOUBLE_EQ(second.item<double>(), me() == 0 ? 6 * n * n * n * n : 0);
}

TEST(Gradient, IsNotRecordedWhereNobodyAsks) {
  const torch::Tensor weight = variable({2});
  EXPECT_FALSE(allreduce_async(world(), weight, sum).wait().requires_grad());
  expect_equal(allreduce_(world(), weight, sum).detach(), filled({2}, ranks()));  // as when averaging weights
  EXPECT_TRUE(weight.is_leaf());
  const torch::NoGradGuard no_grad;
  EXPECT_FALSE(allreduce(world(), weight, sum).requires_grad());
}

TEST(Gradient, IsRefusedWhereThereIsNone) {
  EXPECT_THAT(usage_error_of([] { allreduce(world(), variable({2}), {.op = ReduceOp::max}); }),
              HasSubstr("allreduce: op max has no gradient"));
  EXPECT_THAT(usage_error_of([] { gather(world(), variable({2})); }), HasSubstr("gather: has no gradient"));
}

TEST(Gradient, AutogradNoticesWritesToWhatItKept) {
  const torch::Tensor x = variable({2});
  const torch::Tensor kept = torch::ones({2}, torch::kFloat64);
  const torch::Tensor loss = (x * kept).sum();
  allreduce_(world(), kept, sum);
  EXPECT_THROW(loss.backward(), c10::Error);
}

}  // namespace
}  // namespace fedrun
