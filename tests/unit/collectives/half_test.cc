#include <fedrun/collectives/half.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fedrun {
namespace {

TEST(Half, EveryF16SurvivesTheRoundTrip) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const F16 half{static_cast<std::uint16_t>(bits)};
    const float wide = to_float(half);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(to_float(to_f16(wide))));
    } else {
      ASSERT_EQ(to_f16(wide).bits, half.bits) << bits;
    }
  }
}

TEST(Half, EveryBf16SurvivesTheRoundTrip) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const Bf16 half{static_cast<std::uint16_t>(bits)};
    const float wide = to_float(half);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(to_float(to_bf16(wide))));
    } else {
      ASSERT_EQ(to_bf16(wide).bits, half.bits) << bits;
    }
  }
}

TEST(Half, KnownF16Values) {
  EXPECT_EQ(to_float(F16{0x3C00}), 1.0F);
  EXPECT_EQ(to_float(F16{0xC000}), -2.0F);
  EXPECT_EQ(to_float(F16{0x7BFF}), 65504.0F);
  EXPECT_EQ(to_float(F16{0x0001}), 0x1p-24F);
  EXPECT_EQ(to_float(F16{0x0400}), 0x1p-14F);
  EXPECT_EQ(to_f16(65519.0F).bits, 0x7BFF);  // rounds down to the largest
  EXPECT_EQ(to_f16(65520.0F).bits, 0x7C00);  // half way to the next: infinity
  EXPECT_EQ(to_f16(0x1p-25F).bits, 0x0000);  // half of the smallest: to even
  EXPECT_EQ(to_f16(0x1.8p-25F).bits, 0x0001);
  EXPECT_EQ(to_f16(-0.0F).bits, 0x8000);
  EXPECT_EQ(to_f16(std::numeric_limits<float>::infinity()).bits, 0x7C00);
}

TEST(Half, TiesGoToEven) {
  EXPECT_EQ(to_f16(2049.0F).bits, to_f16(2048.0F).bits);
  EXPECT_EQ(to_f16(2051.0F).bits, to_f16(2052.0F).bits);
  EXPECT_EQ(to_bf16(257.0F).bits, to_bf16(256.0F).bits);
  EXPECT_EQ(to_bf16(259.0F).bits, to_bf16(260.0F).bits);
}

}  // namespace
}  // namespace fedrun
