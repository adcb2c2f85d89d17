#include <fedrun/train/compression.h>

#include <optional>
#include <utility>

namespace fedrun {
namespace {

class WireType final : public Compression {
 public:
  WireType(std::string name, std::optional<DataType> wire) : name_(std::move(name)), wire_(wire) {}

  std::string name() const override { return name_; }

  std::unique_ptr<Work> reduce(Communicator& group, const GradientBucket& bucket,
                               const ReduceOptions& options) override {
    return group.allreduce_async(bucket.buffer, on_the_wire(bucket, options));
  }

  std::unique_ptr<Work> reduce_to_parts(Communicator& group, const GradientBucket& bucket,
                                        const ReduceOptions& options) override {
    return group.reduce_scatter_async(bucket.buffer, bucket.part_of(group.rank()), bucket.parts,
                                      on_the_wire(bucket, options));
  }

 private:
  // Other types stay what they are: 16-bit gradients are short already, and f64 was chosen for its precision.
  ReduceOptions on_the_wire(const GradientBucket& bucket, ReduceOptions options) const {
    if (bucket.buffer.type == DataType::f32) options.wire = wire_;
    return options;
  }

  std::string name_;
  std::optional<DataType> wire_;
};

}  // namespace

const std::shared_ptr<Compression> Compression::none = std::make_shared<WireType>("none", std::nullopt);
const std::shared_ptr<Compression> Compression::fp16 = std::make_shared<WireType>("fp16", DataType::f16);
const std::shared_ptr<Compression> Compression::bf16 = std::make_shared<WireType>("bf16", DataType::bf16);

}  // namespace fedrun
