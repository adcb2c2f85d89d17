// Compares files with what the description of the format says, byte by byte.
#include <fedrun/train/safetensors.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "support/error_text.h"

namespace fedrun {
namespace {

using test::usage_error_of;
using testing::HasSubstr;

class Safetensors : public testing::Test {
 protected:
  ~Safetensors() override { std::filesystem::remove(path_); }
  std::string written() const {
    std::ifstream file(path_, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  std::filesystem::path path_ = std::filesystem::temp_directory_path() / ("fedrun_weights_" + std::to_string(getpid()));
};

TEST_F(Safetensors, WritesHeaderAndData) {
  const torch::Tensor matrix = torch::tensor({{1.F, 2.F, 3.F}, {4.F, 5.F, 6.F}});
  write_safetensors(path_, {{"layer.weight", matrix.t()}, {"steps", torch::tensor(7, torch::kInt64)}});
  const std::string header = R"({"layer.weight":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]},)"
                             R"("steps":{"dtype":"I64","shape":[],"data_offsets":[24,32]}})";
  std::string padded = header;
  padded.resize((header.size() + 7) / 8 * 8, ' ');
  const std::string bytes = written();
  ASSERT_EQ(bytes.size(), 8 + padded.size() + 32);
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), sizeof header_bytes);
  EXPECT_EQ(header_bytes, padded.size());
  EXPECT_EQ(bytes.compare(8, padded.size(), padded), 0) << bytes;
  float values[6];
  std::memcpy(values, bytes.data() + 8 + padded.size(), sizeof values);
  EXPECT_THAT(values, testing::ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_EQ(bytes[8 + padded.size() + 24], 7);
}

TEST_F(Safetensors, EscapesNames) {
  write_safetensors(path_, {{"a\"b\\c\n", torch::zeros(0)}});
  EXPECT_THAT(written(), HasSubstr(R"({"a\"b\\c\u000a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})"));
}

TEST_F(Safetensors, WritesAModule) {
  write_safetensors(path_, *torch::nn::BatchNorm1d(2));
  for (const char* name : {"weight", "bias", "running_mean", "running_var", "num_batches_tracked"}) {
    EXPECT_THAT(written(), HasSubstr(fmt::format("\"{}\":{{", name)));
  }
}

TEST_F(Safetensors, RefusesWhatItCannotHold) {
  EXPECT_EQ(usage_error_of([&] {
              write_safetensors(path_, {{"w", torch::zeros(1)}, {"w", torch::ones(1)}});
            }),
            "tensor 'w' is to be written twice");
  EXPECT_THAT(usage_error_of([&] {
                write_safetensors(path_, {{"w", torch::zeros(1, torch::kComplexFloat)}});
              }),
              HasSubstr("tensor 'w' has type ComplexFloat"));
  EXPECT_THAT(test::text_of<BackendError>([&] {
                write_safetensors(path_ / "no" / "file", {{"w", torch::zeros(1)}});
              }),
              HasSubstr("cannot write the weights to"));
}

}  // namespace
}  // namespace fedrun
