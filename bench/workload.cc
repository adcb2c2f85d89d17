#include "workload.h"

#include <algorithm>

namespace fedrun::bench {

bool reduces_elements(Collective kind) { return kind == Collective::allreduce || kind == Collective::reduce_scatter; }

std::string_view to_string(Place place) { return place == Place::in ? "in" : "out"; }

bool is_on_whole(Collective kind) { return kind == Collective::allreduce || kind == Collective::broadcast; }

std::vector<Place> places_of(Collective kind, const std::vector<Place>& wanted) {
  if (kind == Collective::allreduce) return wanted;
  const bool has_one_buffer = kind == Collective::broadcast || kind == Collective::barrier;
  return {has_one_buffer ? Place::in : Place::out};
}

std::size_t whole_count(Collective kind, DataType type, std::size_t bytes, int ranks) {
  if (kind == Collective::barrier) return 0;
  const std::size_t multiple = is_on_whole(kind) ? 1 : static_cast<std::size_t>(ranks);
  return std::max<std::size_t>(bytes / size_of(type) / multiple, 1) * multiple;
}

std::size_t Workload::input_count() const {
  return kind == Collective::allgather || kind == Collective::gather ? part() : count;
}

std::size_t Workload::output_count() const {
  if (kind == Collective::reduce_scatter) return part();
  return kind == Collective::gather && rank != 0 ? 0 : count;
}

std::size_t Workload::count_of_one_call() const {
  if (is_async()) return count / async_operations;
  return is_on_whole(kind) ? count : part();
}

double Workload::bus_factor() const {
  const double others = static_cast<double>(ranks - 1) / ranks;
  if (kind == Collective::allreduce) return 2 * others;
  return kind == Collective::broadcast ? 1 : others;
}

}  // namespace fedrun::bench
