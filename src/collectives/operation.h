// What one rank brings to a collective: the one description that every layer passes on.
#pragma once

#include <fedrun/collectives/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fedrun {

enum class Collective : std::uint8_t {
  allreduce,
  reduce_scatter,
  broadcast,
  allgather,
  gather,
  alltoall,
  barrier,
  join,
};
std::string_view to_string(Collective kind);

// One element of the result is postscale · (Σ weight · prescale · element) / (Σ weight of an average).
struct Reduction {
  ReduceOp op = ReduceOp::average;
  std::optional<double> weight{};
  double prescale = 1;
  double postscale = 1;
  std::optional<DataType> wire{};
};

// Names that fedrun gives to the steps of an operation begin so, and no others.
inline constexpr std::string_view internal_name = "fedrun:";

struct Operation {
  Collective kind = Collective::barrier;
  std::string name{};  // empty: matched with the other ranks' operations by order
  ConstBuffer input{};
  Buffer output{};
  Reduction reduction{};
  int root = 0;  // of broadcast and gather
  // By rank: elements that each brings (allgather, gather), gets (reduce_scatter), or gets from this one (alltoall).
  std::vector<std::size_t> counts{};
  std::vector<std::size_t> receive_counts{};  // alltoall: elements that come from each rank
  // Not 0: this is the agreement about a group of operations, of which the input describes each; grouped.h.
  std::uint64_t group_digest = 0;
  std::uint64_t shape = 0;  // not 0: a hash of the shape that the elements form

  bool is_on_device() const { return input.device != Device::cpu; }
};

}  // namespace fedrun
