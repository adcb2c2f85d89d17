// Compression that loses nothing for good: what rounding leaves out of a gradient is added to that of the next step.
#include <fedrun/collectives/feedback_kernels.h>
#include <fedrun/core/error.h>
#include <fedrun/train/compression.h>
#include <fedrun/train/device_stream.h>
#include <fmt/format.h>

#include <map>
#include <utility>

namespace fedrun {
namespace {

class ErrorFeedback final : public Compression {
 public:
  ErrorFeedback(std::shared_ptr<Compression> plain, DataType wire) : plain_(std::move(plain)), wire_(wire) {}

  std::string name() const override { return plain_->name() + "-feedback"; }

  std::unique_ptr<Work> reduce(Communicator& group, const GradientBucket& bucket,
                               const ReduceOptions& options) override {
    return plain_->reduce(group, bucket, round(group, bucket, options));
  }

  std::unique_ptr<Work> reduce_to_parts(Communicator& group, const GradientBucket& bucket,
                                        const ReduceOptions& options) override {
    return plain_->reduce_to_parts(group, bucket, round(group, bucket, options));
  }

 private:
  // Returns what is left to do. All scaling comes before the rounding, so that what travels is what was rounded here,
  // and the sum of it is the result. postscale undoes the division by the ranks: those that have joined do not count.
  ReduceOptions round(const Communicator& group, const GradientBucket& bucket, ReduceOptions options) {
    if (bucket.buffer.type != DataType::f32) return options;  // travels as it is, see compression.cc
    if (options.op != ReduceOp::average && options.op != ReduceOp::sum) {
      throw UsageError(fmt::format("compression '{}' cannot reduce by {}: use average or sum, or another compression",
                                   name(), to_string(options.op)));
    }
    const double ranks = options.op == ReduceOp::average ? group.size() : 1;
    const double scale = options.prescale * options.postscale / ranks;
    const c10::DeviceGuard guard(bucket.device());  // this thread may never have used it
    Buffer residuals = bucket.buffer;
    residuals.data = residuals_of(bucket).data_ptr();
    round_with_feedback(bucket.buffer, residuals, {.wire = wire_, .scale = static_cast<float>(scale)});
    options.prescale = 1;
    options.postscale = ranks;
    return options;
  }

  // A bucket is known by its memory: its index means another one after the optimizer has planned anew.
  torch::Tensor& residuals_of(const GradientBucket& bucket) {
    torch::Tensor& residuals = residuals_[bucket.memory];
    if (!residuals.defined()) {
      std::erase_if(residuals_, [](const auto& entry) { return entry.first.expired(); });
      residuals = torch::zeros_like(bucket.flat());
    }
    // It may be another stream than the one that they were allocated on, which Torch waits for before it reuses them.
    keep_for_current_stream(residuals);
    return residuals;
  }

  std::shared_ptr<Compression> plain_;  // shared: there is one for all
  DataType wire_;
  std::map<std::weak_ptr<Memory>, torch::Tensor, std::owner_less<>> residuals_;
};

}  // namespace

std::shared_ptr<Compression> Compression::fp16_with_feedback() {
  return std::make_shared<ErrorFeedback>(fp16, DataType::f16);
}
std::shared_ptr<Compression> Compression::bf16_with_feedback() {
  return std::make_shared<ErrorFeedback>(bf16, DataType::bf16);
}

}  // namespace fedrun
