#include <fedrun/core/error.h>
#include <fedrun/train/replica_check.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "support/error_text.h"
#include "support/rank_test.h"

namespace fedrun {
namespace {

using test::is_last_rank;
using test::mismatch_error_of;
using test::rank;
using test::ranks;
using test::sum_over;
using test::usage_error_of;
using test::world;
using testing::AllOf;
using testing::HasSubstr;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// "rank 0" or "ranks 0, 1, 2".
std::string ranks_between(int first, int last) {
  std::string text = (last > first ? "ranks " : "rank ") + std::to_string(first);
  for (int other = first + 1; other <= last; ++other) text += ", " + std::to_string(other);
  return text;
}

NamedTensors two_tensors() { return {{"a", torch::zeros({5})}, {"b", torch::full({2, 3}, 1.0F)}}; }

TEST(ReplicaCheck, IsSilentWhileReplicasAreEqual) {
  torch::manual_seed(1);
  torch::nn::Linear model(3, 2);
  ReplicaCheck check(world(), *model, {.every = 2});
  for (int step = 0; step < 6; ++step) {
    const torch::NoGradGuard no_grad;
    model->weight.add_(step);
    check.step();
  }
  check.compare();
}

TEST(ReplicaCheck, NamesStepTensorRanksAndValues) {
  if (ranks() == 1) GTEST_SKIP() << "one rank cannot differ";
  const NamedTensors tensors = two_tensors();
  ReplicaCheck check(world(), tensors, {.every = 3});
  check.step();
  if (is_last_rank()) tensors[1].second[1][2] = 1.5;
  check.step();  // not compared
  EXPECT_EQ(mismatch_error_of([&] { check.step(); }),
            "ReplicaCheck: the replicas differ after step 3: b f32[2, 3] is on " +
                ranks_between(ranks() - 1, ranks() - 1) + " not what it is on " + ranks_between(0, ranks() - 2) +
                ", first at [1, 2], where rank 0 has 1 and rank " + std::to_string(ranks() - 1) +
                " has 1.5; 1 of 2 tensors differ. Something changed the model on some ranks only, or the ranks did not "
                "start from the same weights; broadcast_parameters makes them equal again.");
  EXPECT_EQ(sum_over(world(), 1), ranks()) << "the group works afterwards";
  broadcast_tensors(world(), tensors);
  check.compare();
}

TEST(ReplicaCheck, FindsThatRankZeroIsTheOddOne) {
  if (ranks() < 3) GTEST_SKIP() << "needs a majority";
  const NamedTensors tensors = two_tensors();
  if (rank() == 0) tensors[0].second[4] = -7;
  ReplicaCheck check(world(), tensors);
  EXPECT_THAT(mismatch_error_of([&] { check.compare(); }),
              AllOf(HasSubstr("a f32[5] is on rank 0 not what it is on " + ranks_between(1, ranks() - 1)),
                    HasSubstr("first at [4], where rank 1 has 0 and rank 0 has -7")));
}

TEST(ReplicaCheck, ComparesBits) {
  const torch::Tensor tensor = torch::full({3}, nan);
  ReplicaCheck check(world(), {{"x", tensor}});
  check.compare();
  if (ranks() == 1) return;
  const std::string last = "rank " + std::to_string(ranks() - 1);
  tensor[0] = is_last_rank() ? -0.0 : 0.0;
  EXPECT_THAT(mismatch_error_of([&] { check.compare(); }), HasSubstr("rank 0 has 0 and " + last + " has -0;"));
  tensor[0] = 0;
  if (is_last_rank()) tensor.view(torch::kInt32)[1].add_(1);
  EXPECT_THAT(mismatch_error_of([&] { check.compare(); }),
              HasSubstr("rank 0 has nan (bits 0x7fc00000) and " + last + " has nan (bits 0x7fc00001);"));
}

TEST(ReplicaCheck, ComparesElementsWhateverTheStrides) {
  const torch::Tensor values = torch::arange(12, torch::kFloat64).reshape({3, 4});
  const torch::Tensor transposed = values.t().contiguous().t();
  const torch::Tensor sparse_rows = torch::zeros({6, 4}, torch::kFloat64).slice(0, 0, 6, 2);
  sparse_rows.copy_(values);
  const torch::Tensor mine = rank() == 0 ? values : rank() == 1 ? transposed : sparse_rows;
  ReplicaCheck check(world(), {{"x", mine}});
  check.compare();
  if (ranks() == 1) return;
  if (is_last_rank()) mine[2][1] = 0.1;
  EXPECT_THAT(mismatch_error_of([&] { check.compare(); }),
              HasSubstr("first at [2, 1], where rank 0 has 9 and rank " + std::to_string(ranks() - 1) + " has 0.1;"));
}

TEST(ReplicaCheck, TakesEveryTypeAndSize) {
  for (const auto type : {torch::kUInt8, torch::kInt32, torch::kInt64, torch::kFloat16, torch::kBFloat16,
                          torch::kFloat32, torch::kFloat64, torch::kBool}) {
    for (const std::int64_t size : {0, 1, 7, 8, 31, 32, 33, 1025}) {
      const torch::Tensor tensor = torch::ones({size}, type);
      ReplicaCheck check(world(), {{"x", tensor}, {"scalar", torch::ones({}, type)}});
      check.compare();
      if (ranks() == 1 || size == 0) continue;
      if (is_last_rank()) tensor[size - 1] = 0;
      EXPECT_THAT(mismatch_error_of([&] { check.compare(); }),
                  HasSubstr("first at [" + std::to_string(size - 1) + "], where rank 0 has 1 and rank " +
                            std::to_string(ranks() - 1) + " has 0;"));
    }
  }
}

TEST(ReplicaCheck, LooksAtBuffersIfAsked) {
  if (ranks() == 1) GTEST_SKIP() << "one rank cannot differ";
  torch::nn::BatchNorm1d norm(2);
  norm->running_mean.fill_(rank());
  ReplicaCheck(world(), *norm).compare();
  ReplicaCheck with_buffers(world(), *norm, {.buffers = true});
  EXPECT_THAT(mismatch_error_of([&] { with_buffers.compare(); }), HasSubstr("running_mean f32[2] is on"));
}

TEST(ReplicaCheck, RefusesWhatItCannotCompare) {
  EXPECT_THAT(usage_error_of([] { ReplicaCheck(world(), two_tensors(), {.every = 0}); }), HasSubstr("at least 1"));
  EXPECT_THAT(usage_error_of([] {
                ReplicaCheck(world(), {{"hole", torch::Tensor()}});
              }),
              HasSubstr("ReplicaCheck of 'hole': the tensor is undefined"));
  if (ranks() == 1) return;
  EXPECT_THAT(mismatch_error_of([] {
                ReplicaCheck(world(), {{"x", torch::zeros({rank() == 0 ? 2 : 3})}});
              }),
              HasSubstr("rank 0 has x f32[2], rank 1 has x f32[3]"));
  EXPECT_THAT(mismatch_error_of([] { ReplicaCheck(world(), two_tensors(), {.every = rank() == 0 ? 2 : 3}); }),
              HasSubstr("rank 0 has a comparison every 2 steps, rank 1 has a comparison every 3 steps"));
}

}  // namespace
}  // namespace fedrun
