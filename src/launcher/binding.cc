#include <fedrun/core/error.h>
#include <fedrun/launcher/binding.h>
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <tuple>
#include <utility>

namespace fedrun::launcher {
namespace {

constexpr int most_processors = 65536;

struct FreeSet {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};
using ProcessorSet = std::unique_ptr<cpu_set_t, FreeSet>;

int topology_of(int processor, const char* what, int fallback) {
  std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu{}/topology/{}", processor, what));
  int number = fallback;
  file >> number;
  return file ? number : fallback;
}

using Place = std::pair<int, int>;  // socket and core; for whole sockets, the core is 0

Place place_of(const Processor& processor, Binding binding) {
  return {processor.socket, binding == Binding::core ? processor.core : 0};
}

}  // namespace

std::vector<int> processors_for(Binding binding, std::vector<Processor> processors, int local_rank, int local_size) {
  std::sort(processors.begin(), processors.end(), [](const Processor& a, const Processor& b) {
    return std::tie(a.socket, a.core, a.id) < std::tie(b.socket, b.core, b.id);
  });
  std::vector<Place> places;
  for (const Processor& processor : processors) {
    const Place place = place_of(processor, binding);
    if (places.empty() || places.back() != place) places.push_back(place);
  }
  const auto boundary = [&](int rank) {
    return static_cast<size_t>(rank) * places.size() / static_cast<size_t>(local_size);
  };
  const size_t first = boundary(local_rank);
  const size_t end = std::max(boundary(local_rank + 1), first + 1);
  std::vector<int> chosen;
  for (const Processor& processor : processors) {
    const auto place = std::find(places.begin(), places.end(), place_of(processor, binding)) - places.begin();
    const bool ours = static_cast<size_t>(place) >= first && static_cast<size_t>(place) < end;
    if (ours || binding == Binding::none) chosen.push_back(processor.id);
  }
  return chosen;
}

std::vector<Processor> usable_processors() {
  const ProcessorSet set(CPU_ALLOC(most_processors));
  const size_t bytes = CPU_ALLOC_SIZE(most_processors);
  CPU_ZERO_S(bytes, set.get());
  std::vector<Processor> processors;
  if (sched_getaffinity(0, bytes, set.get()) != 0) return processors;
  for (int id = 0; id < most_processors; ++id) {
    if (!CPU_ISSET_S(id, bytes, set.get())) continue;
    processors.push_back({id, topology_of(id, "core_id", id), topology_of(id, "physical_package_id", 0)});
  }
  return processors;
}

void bind_this_process(const std::vector<int>& processors) {
  const ProcessorSet set(CPU_ALLOC(most_processors));
  const size_t bytes = CPU_ALLOC_SIZE(most_processors);
  CPU_ZERO_S(bytes, set.get());
  for (const int id : processors) CPU_SET_S(id, bytes, set.get());
  if (sched_setaffinity(0, bytes, set.get()) != 0) {
    throw BackendError(fmt::format("--bind: this host does not allow it: {}; leave it out", std::strerror(errno)));
  }
}

}  // namespace fedrun::launcher
