#include <fedrun/train/bucket_plan.h>

#include <map>

namespace fedrun {
namespace {

std::size_t round_up_to_cache_line(std::size_t elements, DataType type) {
  const std::size_t per_line = 64 / size_of(type);
  return (elements + per_line - 1) / per_line * per_line;
}

}  // namespace

std::vector<Bucket> plan_buckets(std::span<const PlannedParameter> parameters, const BucketSizes& sizes) {
  std::vector<Bucket> closed;
  std::map<DataType, Bucket> open;
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const PlannedParameter& parameter = parameters[i];
    Bucket& bucket = open[parameter.type];
    bucket.type = parameter.type;
    bucket.slots.push_back({i, bucket.elements});
    bucket.elements += round_up_to_cache_line(parameter.elements, parameter.type);
    const std::size_t limit_bytes = closed.empty() ? sizes.first_bytes : sizes.bytes;
    if (bucket.elements * size_of(bucket.type) >= limit_bytes) {
      closed.push_back(std::move(bucket));
      open.erase(parameter.type);
    }
  }
  for (auto& [type, bucket] : open) closed.push_back(std::move(bucket));
  return closed;
}

}  // namespace fedrun
