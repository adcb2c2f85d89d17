#include <fedrun/collectives/communicator.h>
#include <fedrun/collectives/engine_backend.h>
#include <fedrun/core/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

namespace fedrun {
namespace {

Communicator one_rank() { return Communicator(make_self_backend()); }

TEST(SelfBackend, IsAGroupOfOne) {
  Communicator world = one_rank();
  EXPECT_EQ(world.rank(), 0);
  EXPECT_EQ(world.size(), 1);
  EXPECT_EQ(world.backend_name(), "self");
  world.barrier();
  EXPECT_EQ(world.split({.color = 7}).size(), 1);
}

TEST(SelfBackend, ReducesToItsOwnValue) {
  Communicator world = one_rank();
  for (const ReduceOp op : {ReduceOp::average, ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::product}) {
    std::array<float, 3> values = {1, -2, 3};
    world.allreduce(values, {.op = op});
    EXPECT_EQ(values, (std::array<float, 3>{1, -2, 3})) << to_string(op);
  }
}

TEST(SelfBackend, AppliesTheWeight) {
  Communicator world = one_rank();
  std::array<double, 2> values = {2, 3};
  world.allreduce(values, {.op = ReduceOp::sum, .weight = 10});
  EXPECT_EQ(values, (std::array<double, 2>{20, 30}));
  world.allreduce(values, {.op = ReduceOp::average, .weight = 10});
  EXPECT_EQ(values, (std::array<double, 2>{20, 30}));
  world.allreduce(values, {.op = ReduceOp::average, .weight = 0});
  EXPECT_EQ(values, (std::array<double, 2>{0, 0}));
}

TEST(SelfBackend, CopiesOutOfPlace) {
  Communicator world = one_rank();
  const std::array<std::int32_t, 3> input = {1, 2, 3};
  std::array<std::int32_t, 3> output = {};
  world.allreduce(as_const_buffer(input), as_buffer(output), {.op = ReduceOp::sum});
  EXPECT_EQ(output, input);
}

TEST(SelfBackend, GathersOneList) {
  Communicator world = one_rank();
  const std::array<std::int64_t, 2> mine = {4, 5};
  const auto all = world.allgather(mine);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_THAT(all[0], testing::ElementsAre(4, 5));
}

TEST(SelfBackend, AllocatesZeroedMemory) {
  Communicator world = one_rank();
  const Memory memory = world.allocate(1000);
  ASSERT_EQ(memory.bytes(), 1000U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 64, 0U);
  const std::span<const std::uint8_t> bytes(static_cast<const std::uint8_t*>(memory.data()), memory.bytes());
  EXPECT_THAT(bytes, testing::Each(0));
  EXPECT_NE(world.allocate(0).data(), nullptr);
}

TEST(Communicator, RefusesWrongArguments) {
  Communicator world = one_rank();
  std::array<float, 2> values = {1, 2};
  std::array<float, 3> longer = {};
  std::array<double, 2> other_type = {};
  bool flag = true;
  const Buffer buffer = as_buffer(values);
  EXPECT_THROW(world.allreduce(Buffer{nullptr, 4, DataType::f32}), UsageError);
  EXPECT_THROW(world.allreduce(buffer, as_buffer(longer)), UsageError);
  EXPECT_THROW(world.allreduce(buffer, as_buffer(other_type)), UsageError);
  EXPECT_THROW(world.allreduce(buffer, {.op = ReduceOp::max, .weight = 2}), UsageError);
  EXPECT_THROW(world.allreduce(buffer, {.weight = -1}), UsageError);
  EXPECT_THROW(world.allreduce(buffer, {.weight = std::nan("")}), UsageError);
  EXPECT_THROW(world.allreduce(buffer, {.weight = std::numeric_limits<double>::infinity()}), UsageError);
  EXPECT_THROW(world.allreduce({&flag, 1, DataType::boolean}, {.op = ReduceOp::average}), UsageError);
  EXPECT_THROW(world.allreduce({&flag, 1, DataType::boolean}, {.op = ReduceOp::sum, .weight = 1}), UsageError);
  EXPECT_THROW(world.broadcast(buffer, {.root = 1}), UsageError);
  EXPECT_THROW(world.broadcast(buffer, {.root = -1}), UsageError);
  EXPECT_THROW(world.split({.color = -1}), UsageError);
  const std::array<std::size_t, 2> counts_of_two_ranks = {1, 1};
  EXPECT_THROW(world.allgather(buffer, buffer, counts_of_two_ranks), UsageError);
  EXPECT_EQ(values, (std::array<float, 2>{1, 2}));
}

TEST(Communicator, TakesEmptyBuffers) {
  Communicator world = one_rank();
  world.allreduce(Buffer{nullptr, 0, DataType::f32});
  world.broadcast(Buffer{nullptr, 0, DataType::u8});
  EXPECT_TRUE(world.allgather(std::span<float>())[0].empty());
}

}  // namespace
}  // namespace fedrun
