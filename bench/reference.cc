#include "reference.h"

#include <fedrun/collectives/element_dispatch.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace fedrun::bench {
namespace {

// For each element, one rank in turn brings another number than the rest, so a result lacks nobody's contribution.
struct ReducedElement {
  double from_one;
  double from_others;
  double result;
};

ReducedElement reduced_element(const Workload& workload, std::size_t index) {
  const bool is_bool = workload.type == DataType::boolean;
  // A period of 3 is out of step with chunks and cache lines, so an element in the wrong place shows.
  const double one = is_bool ? 1 : 2 + static_cast<double>(index % 3);
  // With zeros elsewhere the ranks' vectors are orthogonal, and Adasum is their sum.
  const double other = is_bool || workload.op == ReduceOp::adasum ? 0 : 1;
  const int others = workload.ranks - 1;
  switch (workload.op) {
    case ReduceOp::average:  // the numbers add up to a multiple of the ranks
      return {1 + workload.ranks * (one - 1), 1, one};
    case ReduceOp::sum:
    case ReduceOp::adasum:
      return {one, other, one + other * others};
    case ReduceOp::min:
      return {one, other, others == 0 ? one : other};
    case ReduceOp::max:
      return {one, other, one};
    case ReduceOp::product:
      return {one, other, one * std::pow(other, others)};
  }
  return {};
}

// What is only moved differs by sender and position.
double moved_element(const Workload& workload, int sender, std::size_t index) {
  const std::size_t period = workload.type == DataType::boolean ? 2 : 101;  // the number fits into an i8
  return static_cast<double>((static_cast<std::size_t>(sender) * 7 + index) % period);
}

double input_element(const Workload& workload, std::size_t index) {
  if (!workload.reduces()) return moved_element(workload, workload.rank, index);
  const bool is_our_turn = index % static_cast<std::size_t>(workload.ranks) == static_cast<std::size_t>(workload.rank);
  const ReducedElement element = reduced_element(workload, index);
  return is_our_turn ? element.from_one : element.from_others;
}

double expected_element(const Workload& workload, std::size_t index) {
  const std::size_t first_of_ours = static_cast<std::size_t>(workload.rank) * workload.part();
  switch (workload.kind) {
    case Collective::allreduce:
      return reduced_element(workload, index).result;
    case Collective::reduce_scatter:
      return reduced_element(workload, first_of_ours + index).result;
    case Collective::broadcast:
      return moved_element(workload, 0, index);
    case Collective::allgather:
    case Collective::gather:
      return moved_element(workload, static_cast<int>(index / workload.part()), index % workload.part());
    case Collective::alltoall:
      return moved_element(workload, static_cast<int>(index / workload.part()),
                           first_of_ours + index % workload.part());
    case Collective::barrier:
    case Collective::join:
      return 0;
  }
  return 0;
}

template <typename ValueAt>
std::vector<std::byte> make_elements(DataType type, std::size_t count, ValueAt value_at) {
  std::vector<std::byte> bytes(count * size_of(type));
  dispatch_element_type(type, [&]<typename T>(T*) {
    auto* elements = reinterpret_cast<T*>(bytes.data());
    for (std::size_t i = 0; i < count; ++i) elements[i] = narrow<T>(value_at(i));
  });
  return bytes;
}

// Whether an average is divided or multiplied by the reciprocal may change its last bit; all else is exact.
double tolerance_of(const Workload& workload) {
  if (!workload.reduces() || workload.op != ReduceOp::average) return 0;
  switch (workload.wire.value_or(workload.type)) {
    case DataType::f16:
      return 0x1p-10;
    case DataType::bf16:
      return 0x1p-7;
    case DataType::f32:
      return 0x1p-22;
    case DataType::f64:
      return 0x1p-51;
    default:
      return 0;
  }
}

}  // namespace

Reference::Reference(const Workload& workload)
    : input_(make_elements(workload.type, workload.input_count(),
                           [&](std::size_t index) { return input_element(workload, index); })),
      expected_(make_elements(workload.type, workload.output_count(),
                              [&](std::size_t index) { return expected_element(workload, index); })),
      tolerance_(tolerance_of(workload)) {}

void Reference::load(const WorkBuffers& buffers) const {
  constexpr int ruin = 0x5A;
  buffers.fill_output(ruin);
  buffers.write_input(input_);
}

void Reference::clear(const WorkBuffers& buffers) { buffers.fill_input(0); }

std::size_t Reference::count_wrong(Buffer output) const {
  if (output.count == 0 || std::memcmp(output.data, expected_.data(), expected_.size()) == 0) return 0;
  // As numbers: a bool that is neither 0 nor 1 would be no bool to look at.
  const DataType type = output.type == DataType::boolean ? DataType::u8 : output.type;
  std::size_t wrong = 0;
  dispatch_element_type(type, [&]<typename T>(T*) {
    const auto* actual = static_cast<const T*>(output.data);
    const auto* expected = reinterpret_cast<const T*>(expected_.data());
    for (std::size_t i = 0; i < output.count; ++i) {
      const auto value = static_cast<double>(widen(expected[i]));
      const double error = std::abs(static_cast<double>(widen(actual[i])) - value);
      if (!(error <= tolerance_ * std::abs(value))) ++wrong;  // so that NaN is wrong
    }
  });
  return wrong;
}

}  // namespace fedrun::bench
