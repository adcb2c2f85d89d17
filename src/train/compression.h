// How the buckets of gradients travel; users may bring their own way.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <fedrun/train/gradient_bucket.h>

#include <memory>
#include <string>

namespace fedrun {

// Used by one optimizer, on the thread that runs backward. Buckets come in the same order on every rank; an
// implementation may keep what it needs from step to step by the bucket's memory.
class Compression {
 public:
  virtual ~Compression() = default;

  // The ranks compare it, so that all of them compress alike.
  virtual std::string name() const = 0;

  // Starts to replace the bucket's elements by what they are reduced to, as `options` say: op, scales, and a name under
  // which to do it. The bucket stays until the Work is done.
  virtual std::unique_ptr<Work> reduce(Communicator& group, const GradientBucket& bucket,
                                       const ReduceOptions& options) = 0;

  // The same where each rank needs only its own part of the bucket: bucket.parts.
  virtual std::unique_ptr<Work> reduce_to_parts(Communicator& group, const GradientBucket& bucket,
                                                const ReduceOptions& options) {
    return reduce(group, bucket, options);
  }

  static const std::shared_ptr<Compression> none;
  // f32 gradients travel between hosts in 16 bits. Inside a host nothing travels, and nothing is rounded.
  static const std::shared_ptr<Compression> fp16;
  static const std::shared_ptr<Compression> bf16;

  // The same with error feedback: each rank rounds its f32 gradients to 16 bits, wherever they go, keeps what that
  // leaves out, and adds it to the gradients of the next step. So gradients that are too small to be sent add up until
  // they are not. A new object each time, because it has a state: one f32 per gradient. For average and sum.
  static std::shared_ptr<Compression> fp16_with_feedback();
  static std::shared_ptr<Compression> bf16_with_feedback();
};

}  // namespace fedrun
