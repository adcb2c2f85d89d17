// Rounding with feedback: what an element leaves out comes with the next one, and nothing else is touched.
#include <fedrun/collectives/device_elements.h>
#include <fedrun/collectives/feedback_kernels.h>
#include <fedrun/collectives/nccl_runtime.h>
#include <fedrun/core/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "guarded_memory.h"
#include "simd_targets.h"
#include "support/error_text.h"
#include "support/plain_reduction.h"

namespace fedrun {
namespace {

using testing::HasSubstr;

void round(std::vector<float>& elements, std::vector<float>& residuals, const Feedback& feedback) {
  round_with_feedback(as_buffer(elements), as_buffer(residuals), feedback);
}

// Numbers of all magnitudes, of which some are infinite or NaN, and many near the ends of the 16-bit types.
std::vector<float> floats_of_all_kinds(std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values;
  for (int i = 0; i < 200'000; ++i) values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  for (int i = 0; i < 200'000; ++i) {
    const auto magnitude = static_cast<int>(random() % 46) - 29;
    values.push_back(std::ldexp(static_cast<float>(random()) / 0x1p31F - 1, magnitude));
  }
  return values;
}

// The lines that GPUs run, shared by three threads.
TEST(Feedback, IsThatOfTheDeviceToTheBit) {
  for_each_simd_target([] {
    for (const DataType wire : {DataType::f16, DataType::bf16}) {
      for (const float scale : {1.0F, 0.25F, 1.0F / 3, 1e4F}) {
        std::vector<float> elements = floats_of_all_kinds(1);
        std::vector<float> residuals = floats_of_all_kinds(2);
        std::vector<float> device_elements = elements;
        std::vector<float> device_residuals = residuals;
        round(elements, residuals, {wire, scale});
        const FeedbackArguments arguments{device_elements.data(), device_residuals.data(), elements.size(), scale,
                                          wire};
        for (std::uint64_t thread = 0; thread < 3; ++thread) feedback_share(arguments, thread, 3);
        for (std::size_t i = 0; i < elements.size(); ++i) {
          ASSERT_TRUE(same_bits(elements[i], device_elements[i]) && same_bits(residuals[i], device_residuals[i])) << i;
        }
      }
    }
  });
}

TEST(Feedback, SendsAndKeepsTogetherWhatWasWanted) {
  std::vector<float> elements = {1.0F, 1.0F + 0x1p-12F, -3.14159F, 70000.0F};
  std::vector<float> residuals = {0, 0, 0.001F, 0};
  round(elements, residuals, {.wire = DataType::bf16, .scale = 1});
  EXPECT_EQ(elements[0], 1);
  EXPECT_EQ(residuals[0], 0);
  EXPECT_EQ(elements[1], 1);
  EXPECT_EQ(residuals[1], 0x1p-12F);
  EXPECT_EQ(elements[2] + residuals[2], -3.14159F + 0.001F);
  EXPECT_EQ(elements[3] + residuals[3], 70000.0F);
}

// Each is far too small for an f16, and still they arrive.
TEST(Feedback, SmallElementsAddUpUntilTheyAreSent) {
  constexpr int steps = 1000;
  const float small = 1e-9F;
  std::vector<float> residuals(1);
  double arrived = 0;
  for (int step = 0; step < steps; ++step) {
    std::vector<float> elements = {small};
    round(elements, residuals, {.wire = DataType::f16});
    arrived += elements[0];
  }
  EXPECT_EQ(to_float(to_f16(small)), 0);
  EXPECT_NEAR(arrived, steps * static_cast<double>(small), 0x1p-24);
  EXPECT_GT(arrived, 0);
}

TEST(Feedback, ForgetsWhatIsNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> elements = {1e6F, infinity, std::nanf(""), 1};
  std::vector<float> residuals(4);
  round(elements, residuals, {.wire = DataType::f16});
  EXPECT_EQ(elements[0], infinity);  // as f16 has it, so that whoever looks for infinities finds it
  EXPECT_EQ(elements[1], infinity);
  EXPECT_TRUE(std::isnan(elements[2]));
  EXPECT_EQ(residuals, std::vector<float>(4, 0));
}

TEST(Feedback, TouchesOnlyItsElements) {
  for_each_simd_target([] {
    for (const std::size_t count : {0, 1, 7, 8, 9, 31, 33, 1023, 1024, 1025}) {
      GuardedMemory first;
      GuardedMemory second;
      auto* elements = reinterpret_cast<float*>(first.place(count * sizeof(float), 0));
      auto* residuals = reinterpret_cast<float*>(second.place(count * sizeof(float), 0));
      for (std::size_t i = 0; i < count; ++i) {
        elements[i] = static_cast<float>(i) + 0x1p-20F;
        residuals[i] = 0;
      }
      round_with_feedback({elements, count, DataType::f32}, {residuals, count, DataType::f32}, {});
      for (std::size_t i = 2; i < count; ++i) ASSERT_EQ(elements[i], static_cast<float>(i));
      ASSERT_TRUE(first.is_intact_around_place() && second.is_intact_around_place());
    }
  });
}

TEST(Feedback, RejectsWhatItCannotDo) {
  std::vector<float> floats(2);
  std::vector<double> doubles(2);
  std::vector<float> one(1);
  const auto told = [](const Buffer& elements, const Buffer& residuals, DataType wire) {
    return test::text_of<UsageError>([&] { round_with_feedback(elements, residuals, {.wire = wire}); });
  };
  EXPECT_THAT(told(as_buffer(floats), as_buffer(floats), DataType::f32), HasSubstr("use f16 or bf16"));
  EXPECT_THAT(told(as_buffer(doubles), as_buffer(floats), DataType::f16), HasSubstr("both must be f32"));
  EXPECT_THAT(told(as_buffer(floats), as_buffer(one), DataType::f16), HasSubstr("give as many"));
}

TEST(Feedback, NeedsCudaForElementsOnAGpu) {
  if (find_gpu({}, {}).is_expected) GTEST_SKIP() << "this build has CUDA";
  std::vector<float> floats(2);
  Buffer elements = as_buffer(floats);
  elements.device = Device::cuda;
  EXPECT_THAT(test::text_of<BackendError>([&] { round_with_feedback(elements, elements, {}); }),
              HasSubstr("--preset cuda"));
}

}  // namespace
}  // namespace fedrun
