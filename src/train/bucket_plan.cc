#include <fedrun/train/bucket_plan.h>

#include <map>
#include <tuple>
#include <utility>

namespace fedrun {
namespace {

std::size_t round_up_to_slot(std::size_t elements) {
  return (elements + slot_alignment - 1) / slot_alignment * slot_alignment;
}

}  // namespace

std::vector<std::size_t> last_to_first(std::size_t parameters) {
  std::vector<std::size_t> order;
  for (std::size_t i = parameters; i-- > 0;) order.push_back(i);
  return order;
}

std::vector<Bucket> plan_buckets(std::span<const PlannedParameter> parameters, std::span<const std::size_t> order,
                                 const BucketSizes& sizes) {
  using Kind = std::tuple<DataType, Device, int>;  // what may share a bucket: type, device and group
  const auto kind_of = [&](std::size_t i) {
    return Kind{parameters[i].type, parameters[i].device, parameters[i].group};
  };
  std::map<Kind, std::size_t> missing;  // parameters of a group that have no slot yet
  for (const std::size_t i : order) ++missing[kind_of(i)];

  std::vector<Bucket> closed;
  std::map<Kind, Bucket> open;
  for (const std::size_t i : order) {
    const PlannedParameter& parameter = parameters[i];
    const Kind kind = kind_of(i);
    Bucket& bucket = open[kind];
    bucket.type = parameter.type;
    bucket.slots.push_back({i, bucket.elements});
    bucket.elements += round_up_to_slot(parameter.elements);
    const std::size_t limit_bytes = closed.empty() ? sizes.first_bytes : sizes.bytes;
    const bool is_full = bucket.elements * size_of(bucket.type) >= limit_bytes;
    if (--missing[kind] == 0 || (parameter.group < 0 && is_full)) {
      closed.push_back(std::move(bucket));
      open.erase(kind);
    }
  }
  return closed;
}

std::vector<std::size_t> parts_of(std::size_t elements, int ranks) {
  const std::size_t others = elements / slot_alignment / static_cast<std::size_t>(ranks) * slot_alignment;
  std::vector<std::size_t> parts(static_cast<std::size_t>(ranks), others);
  parts.back() = elements - others * (parts.size() - 1);
  return parts;
}

}  // namespace fedrun
