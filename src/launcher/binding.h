// Which processors a rank may use, for --bind.
#pragma once

#include <string>
#include <vector>

namespace fedrun::launcher {

enum class Binding { none, core, socket };

struct Processor {
  int id = 0;  // as the kernel counts them
  int core = 0;
  int socket = 0;
};

// The processors for one of the ranks on a host. Each rank gets an equal run of neighbouring cores (or sockets), with
// all their hardware threads; where there are fewer than ranks, neighbours share one.
std::vector<int> processors_for(Binding binding, std::vector<Processor> processors, int local_rank, int local_size);

// Those that this process may use.
std::vector<Processor> usable_processors();

void bind_this_process(const std::vector<int>& processors);

}  // namespace fedrun::launcher
