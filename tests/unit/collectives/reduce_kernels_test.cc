#include <fedrun/collectives/reduce_kernels.h>
#include <fedrun/core/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <random>

#include "guarded_memory.h"
#include "simd_targets.h"
#include "support/plain_reduction.h"

namespace fedrun {
namespace {

using testing::ElementsAre;

constexpr std::size_t awkward_counts[] = {0, 1, 7, 8, 31, 32, 33, 127, 1023, 1024, 1025};
constexpr std::size_t numbers_of_ranks[] = {1, 2, 3, 4, 5, 8, 9};
constexpr ReduceOp all_ops[] = {ReduceOp::average, ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::product};
constexpr std::size_t largest_count = 1025;

// Integers over their whole range, so that they wrap; floats with any bits half of the time, so that NaN, infinities
// and subnormals occur, and ordinary ones otherwise.
template <typename T>
T draw(std::mt19937& random) {
  if constexpr (std::is_same_v<T, bool>) {
    return random() % 2 == 0;
  } else {
    const std::uint64_t bits = (static_cast<std::uint64_t>(random()) << 32) | random();
    T value;
    std::memcpy(&value, &bits, sizeof value);
    if constexpr (!std::is_integral_v<T>) {
      if (random() % 2 == 0) return narrow<T>(static_cast<float>(static_cast<double>(random()) / 0x1p29 - 4));
    }
    return value;
  }
}

template <typename T>
class ReduceKernels : public testing::Test {
 protected:
  enum class Outputs { in_place, apart };

  // Fills `ranks` inputs, reduces them, and compares every output with the plain reduction of the same values.
  template <typename Output = T>
  void expect_plain_result(std::size_t ranks, std::size_t count, std::size_t slack, Outputs where, ReduceTerms terms,
                           PlainScale scale = {}) {
    std::vector<const void*> inputs;
    const auto values = std::make_unique<T[]>(ranks * count);  // no vector: vector<bool> has no elements to point at
    for (std::size_t k = 0; k < ranks; ++k) {
      T* input = reinterpret_cast<T*>(memories_[k].place(count * sizeof(T), slack * sizeof(T)));
      for (std::size_t i = 0; i < count; ++i) input[i] = values[i * ranks + k] = draw<T>(random_);
      inputs.push_back(input);
    }
    std::vector<void*> outputs;
    if (where == Outputs::in_place) {
      for (std::size_t k = 0; k < ranks; ++k) outputs.push_back(const_cast<void*>(inputs[k]));
    } else {
      for (std::size_t k = ranks; k < ranks + 2; ++k) {
        outputs.push_back(memories_[k].place(count * sizeof(Output), (slack + 1) * sizeof(Output)));
      }
    }
    terms.inputs = inputs;
    terms.outputs = outputs;
    terms.count = count;
    terms.type = data_type_of<T>();
    terms.weights = scale.weights;
    terms.factor = scale.factor;
    terms.divisor = scale.divisor;
    reduce(terms);
    for (std::size_t i = 0; i < count; ++i) {
      const std::span<const T> column(values.get() + i * ranks, ranks);
      const Output expected = plain_reduce<T, Output>(column, terms.op, scale);
      for (const void* output : outputs) {
        ASSERT_TRUE(same_bits(static_cast<const Output*>(output)[i], expected))
            << "element " << i << " of " << count << ", " << ranks << " ranks, op " << to_string(terms.op) << ": "
            << static_cast<double>(widen(static_cast<const Output*>(output)[i])) << " and not "
            << static_cast<double>(widen(expected));
      }
    }
    const std::size_t used = ranks + (where == Outputs::apart ? 2 : 0);
    for (std::size_t k = 0; k < used; ++k) ASSERT_TRUE(memories_[k].is_intact_around_place()) << "memory " << k;
  }

  std::mt19937 random_{1};                                                // NOLINT: the same values in every run
  std::vector<GuardedMemory> memories_ = std::vector<GuardedMemory>(11);  // nine inputs, two outputs
};

using AllTypes = testing::Types<std::uint8_t, std::int8_t, std::int32_t, std::int64_t, F16, Bf16, float, double, bool>;
TYPED_TEST_SUITE(ReduceKernels, AllTypes);

template <typename T>
class ReduceNumbers : public ReduceKernels<T> {};
using NumberTypes = testing::Types<std::uint8_t, std::int8_t, std::int32_t, std::int64_t, F16, Bf16, float, double>;
TYPED_TEST_SUITE(ReduceNumbers, NumberTypes);

// Those that are stored in what they are combined in.
template <typename T>
class ReducePlainNumbers : public ReduceKernels<T> {};
using PlainNumberTypes = testing::Types<std::uint8_t, std::int8_t, std::int32_t, std::int64_t, float, double>;
TYPED_TEST_SUITE(ReducePlainNumbers, PlainNumberTypes);

template <typename T>
class ReduceWireTypes : public ReduceKernels<T> {};
using WireTypes = testing::Types<F16, Bf16, float>;
TYPED_TEST_SUITE(ReduceWireTypes, WireTypes);

TYPED_TEST(ReduceKernels, InPlaceIsThePlainReduction) {
  for_each_simd_target([&] {
    for (const ReduceOp op : all_ops) {
      for (const std::size_t ranks : numbers_of_ranks) {
        for (const std::size_t count : awkward_counts) {
          for (const std::size_t slack : {0, 3}) {
            this->expect_plain_result(ranks, count, slack, TestFixture::Outputs::in_place, {.op = op});
            if (this->HasFatalFailure()) return;
          }
        }
      }
    }
  });
}

TYPED_TEST(ReduceKernels, IntoOtherBuffersIsThePlainReduction) {
  for_each_simd_target([&] {
    for (const ReduceOp op : all_ops) {
      for (const std::size_t ranks : numbers_of_ranks) {
        for (const std::size_t count : awkward_counts) {
          this->expect_plain_result(ranks, count, 0, TestFixture::Outputs::apart, {.op = op});
          if (this->HasFatalFailure()) return;
        }
      }
    }
  });
}

TYPED_TEST(ReduceNumbers, ScalesWithOneRounding) {
  const PlainScale scales[] = {{.factor = 0.5},  {.factor = 0.1},          {.factor = 3, .divisor = 7},
                               {.divisor = 2},   {.divisor = 3},           {.divisor = 2001},
                               {.divisor = 0.3}, {.divisor = 1234567891.0}};
  for_each_simd_target([&] {
    for (const ReduceOp op : all_ops) {
      for (const PlainScale& scale : scales) {
        for (const std::size_t ranks : {1, 2, 3, 5}) {
          this->expect_plain_result(ranks, 1025, 1, TestFixture::Outputs::in_place, {.op = op}, scale);
          if (this->HasFatalFailure()) return;
        }
      }
    }
  });
}

TYPED_TEST(ReduceNumbers, WeightedSumsAreF64UntilTheyAreStored) {
  const std::vector<double> weights = {60000, 0.1, 3, 1, 1.0 / 3, 7, 0, 1e-3, 512};
  for_each_simd_target([&] {
    for (const std::size_t ranks : numbers_of_ranks) {
      const std::vector<double> first_weights(weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(ranks));
      for (const std::size_t count : awkward_counts) {
        for (const double divisor : {1.0, 60004.5}) {
          const PlainScale scale{.weights = first_weights, .divisor = divisor};
          this->expect_plain_result(ranks, count, 1, TestFixture::Outputs::in_place, {}, scale);
          if (this->HasFatalFailure()) return;
        }
      }
    }
  });
}

// The way it is done without fusion: reduce, then divide what was stored.
TYPED_TEST(ReducePlainNumbers, AverageIsBitForBitWhatDividingAfterwardsGives) {
  constexpr std::size_t count = 100'000;
  std::vector<TypeParam> a(count), b(count);
  for (auto& value : a) value = draw<TypeParam>(this->random_);
  for (auto& value : b) value = draw<TypeParam>(this->random_);
  const std::array<const void*, 2> inputs{a.data(), b.data()};
  for (const double divisor : {2.0, 3.0, 5.0, 6.0, 7.0, 96.0, 60000.0, 67108863.0, 67108865.0, 2.7, 1e-30, 1e30}) {
    // Integers would leave their range, and converting them is undefined then.
    if (std::is_integral_v<TypeParam> && divisor < 1) continue;
    std::vector<TypeParam> expected(count), average(count);
    void* expected_data = expected.data();
    void* average_data = average.data();
    ReduceTerms terms{
        .inputs = inputs, .outputs = {&expected_data, 1}, .count = count, .type = data_type_of<TypeParam>()};
    reduce(terms);
    for (auto& value : expected) value = narrow<TypeParam>(widen(value) / divisor);
    terms.outputs = {&average_data, 1};
    terms.divisor = divisor;
    reduce(terms);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_TRUE(same_bits(average[i], expected[i])) << divisor << ": " << average[i] << " " << expected[i];
    }
  }
}

// Which pairs of 16-bit and 32-bit floats the wire uses.
TYPED_TEST(ReduceWireTypes, StoresAnotherFloatType) {
  for_each_simd_target([&] {
    for (const std::size_t ranks : numbers_of_ranks) {
      for (const std::size_t count : awkward_counts) {
        const auto apart = TestFixture::Outputs::apart;
        const PlainScale average{.divisor = 3};
        const PlainScale weighted{.weights = std::vector<double>(ranks, 0.7)};
        this->template expect_plain_result<float>(ranks, count, 0, apart, {.output_type = DataType::f32});
        this->template expect_plain_result<F16>(ranks, count, 0, apart, {.output_type = DataType::f16});
        this->template expect_plain_result<Bf16>(ranks, count, 0, apart, {.output_type = DataType::bf16});
        this->template expect_plain_result<F16>(ranks, count, 0, apart, {.output_type = DataType::f16}, average);
        this->template expect_plain_result<float>(ranks, count, 0, apart, {.output_type = DataType::f32}, weighted);
        if (this->HasFatalFailure()) return;
      }
    }
  });
}

template <typename T>
std::vector<T> reduced(const std::vector<std::vector<T>>& inputs, ReduceTerms terms) {
  std::vector<const void*> pointers;
  for (const auto& input : inputs) pointers.push_back(input.data());
  std::vector<T> result(inputs[0].size());
  void* output = result.data();
  terms.inputs = pointers;
  terms.outputs = {&output, 1};
  terms.count = result.size();
  terms.type = data_type_of<T>();
  reduce(terms);
  return result;
}

TEST(Reduce, KnownValues) {
  const std::vector<std::vector<float>> floats = {{1, -2, 0.5F}, {2, 4, 0.25F}, {4, 1, -8}};
  EXPECT_THAT(reduced(floats, {.op = ReduceOp::sum}), ElementsAre(7, 3, -7.25F));
  EXPECT_THAT(reduced(floats, {.op = ReduceOp::min}), ElementsAre(1, -2, -8));
  EXPECT_THAT(reduced(floats, {.op = ReduceOp::max}), ElementsAre(4, 4, 0.5F));
  EXPECT_THAT(reduced(floats, {.op = ReduceOp::product}), ElementsAre(8, -8, -1));
  EXPECT_THAT(reduced(floats, {.op = ReduceOp::average, .divisor = 3}), ElementsAre(7 / 3.0F, 1, -7.25F / 3.0F));
  const std::array<double, 3> weights{1, 2, 3};
  EXPECT_THAT(reduced(floats, {.weights = weights, .divisor = 6}), ElementsAre(17 / 6.0F, 1.5F, -23 / 6.0F));
  EXPECT_THAT(reduced<std::uint8_t>({{200}, {100}}, {}), ElementsAre(44));
  EXPECT_THAT(reduced<std::int8_t>({{100}, {100}}, {.op = ReduceOp::product}), ElementsAre(16));
  EXPECT_THAT(reduced<std::int32_t>({{-7}, {0}}, {.divisor = 2}), ElementsAre(-3));
  EXPECT_THAT(reduced<std::int32_t>({{-7}, {49}}, {.divisor = 49}), ElementsAre(0));
  EXPECT_THAT(reduced<std::uint8_t>({{200}, {0}}, {.factor = 2}), ElementsAre(255));
}

TEST(Reduce, AddsInRankOrder) {
  // (2^24 + 1) + 1 loses both ones in f32, 2^24 + (1 + 1) neither.
  EXPECT_THAT(reduced<float>({{0x1p24F}, {1}, {1}}, {}), ElementsAre(0x1p24F));
  EXPECT_THAT(reduced<float>({{1}, {1}, {0x1p24F}}, {}), ElementsAre(0x1p24F + 2));
}

TEST(Reduce, HalvesAreRoundedOnce) {
  // 2048 + 1 is no f16; rounded after every step the ones would be lost.
  const F16 large = to_f16(2048);
  const F16 one = to_f16(1);
  EXPECT_EQ(to_float(reduced<F16>({{large}, {one}, {one}}, {})[0]), 2050);
  // The sum leaves the range of f16, the average does not.
  const F16 huge = to_f16(65504);
  EXPECT_EQ(to_float(reduced<F16>({{huge}, {huge}}, {.divisor = 2})[0]), 65504);
}

TEST(Reduce, NanIsNeverHiddenByMinOrMax) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
    const std::vector<float> result = reduced<float>({{nan, 1, 1}, {1, nan, 1}, {1, 1, 1}}, {.op = op});
    EXPECT_TRUE(std::isnan(result[0]) && std::isnan(result[1]));
    EXPECT_EQ(result[2], 1);
  }
}

TEST(Reduce, TermsThatMakeNoSenseAreRejected) {
  std::array<float, 2> values{};
  const std::array<const void*, 2> inputs{&values[0], &values[1]};
  void* output = values.data();
  const ReduceTerms good{.inputs = inputs, .outputs = {&output, 1}, .count = 1};
  const std::array<double, 1> one_weight{2};
  const std::array<double, 2> two_weights{2, 3};
  EXPECT_NO_THROW(reduce(good));
  ReduceTerms terms = good;
  terms.inputs = {};
  EXPECT_THROW(reduce(terms), UsageError);
  terms = good;
  terms.weights = one_weight;
  EXPECT_THROW(reduce(terms), UsageError);
  terms = good;
  terms.weights = two_weights;
  terms.op = ReduceOp::max;
  EXPECT_THROW(reduce(terms), UsageError);
  terms = good;
  terms.type = DataType::boolean;
  terms.divisor = 2;
  EXPECT_THROW(reduce(terms), UsageError);
  terms = good;
  terms.output_type = DataType::f64;
  EXPECT_THROW(reduce(terms), UsageError);
}

}  // namespace
}  // namespace fedrun
