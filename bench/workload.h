// What is measured: one collective with all that decides its cost, except who carries it out and in which memory.
#pragma once

#include <fedrun/collectives/operation.h>

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace fedrun::bench {

bool reduces_elements(Collective kind);

enum class Place { in, out };
std::string_view to_string(Place place);

// As one rank sees it. The whole is the longest buffer of a collective, such as what an allgather has gathered; a part
// is one rank's share of it. The root is rank 0.
struct Workload {
  Collective kind = Collective::allreduce;
  ReduceOp op = ReduceOp::sum;
  DataType type = DataType::f32;
  std::optional<DataType> wire{};
  Place place = Place::in;
  int rank = 0;
  int ranks = 1;
  std::size_t count = 0;             // elements of the whole
  std::size_t async_operations = 0;  // not 0: so many asynchronous ones, each on its share of `count`

  bool is_async() const { return async_operations != 0; }
  bool reduces() const { return reduces_elements(kind); }
  std::string_view name() const { return is_async() ? "async_allreduce" : to_string(kind); }

  std::size_t bytes() const { return count * size_of(type); }
  std::size_t part() const { return count / static_cast<std::size_t>(ranks); }
  std::vector<std::size_t> parts() const { return std::vector<std::size_t>(static_cast<std::size_t>(ranks), part()); }

  std::size_t input_count() const;
  std::size_t output_count() const;
  // What users give the collective as its count: the whole, or this rank's part; of one operation where there are many.
  std::size_t count_of_one_call() const;

  // How often each byte of the whole crosses the wires, per rank, in the best algorithm; as nccl-tests defines it.
  double bus_factor() const;
};

// Whether it is done on the whole, rather than on a part for each rank.
bool is_on_whole(Collective kind);
// Where the result of a collective can be, if users ask for these places.
std::vector<Place> places_of(Collective kind, const std::vector<Place>& wanted);
// As many elements as fit into `bytes`, in equal parts where the collective needs them, but never none.
std::size_t whole_count(Collective kind, DataType type, std::size_t bytes, int ranks);

}  // namespace fedrun::bench
