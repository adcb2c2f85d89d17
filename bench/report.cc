#include "report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace fedrun::bench {
namespace {

constexpr std::string_view none = "none";

struct Bandwidth {
  double algorithm_gbs;
  double bus_gbs;
};

Bandwidth bandwidth(const Workload& workload, double time_us) {
  constexpr double bytes_per_us_in_gbs = 1e-3;
  const double algorithm_gbs = time_us > 0 ? static_cast<double>(workload.bytes()) / time_us * bytes_per_us_in_gbs : 0;
  return {algorithm_gbs, algorithm_gbs * workload.bus_factor()};
}

std::string_view op_name(const Workload& workload) { return workload.reduces() ? to_string(workload.op) : none; }
std::string_view type_name(const Workload& workload) {
  return workload.kind == Collective::barrier ? none : to_string(workload.type);
}

// Of one call, where there are several.
std::size_t shown_bytes(const Workload& workload) {
  return workload.is_async() ? workload.bytes() / workload.async_operations : workload.bytes();
}

}  // namespace

Report::Report(const Run& run, const std::optional<std::string>& json_path) : run_(run), json_(json_path) {
  fmt::print("# {} ranks, {} backend, median of {}, the slowest rank's time{}\n", run.ranks, run.backend,
             run.iterations, run.device == "cuda" ? "; elements on GPUs, through NCCL" : "");
}

void Report::show_heading(std::string_view collective) {
  fmt::print("#\n# {}\n", collective);
  fmt::print("{:>12} {:>12} {:>5} {:>8} {:>5} {:>9} {:>7} {:>11} {:>12} {:>12} {:>7}\n", "bytes", "count", "type", "op",
             "place", "memory", "system", "time (us)", "algbw (GB/s)", "busbw (GB/s)", "#wrong");
}

void Report::add(const Workload& workload, const Contender& contender, const Measurement& measurement) {
  if (collective_ != workload.name()) {
    collective_ = workload.name();
    show_heading(collective_);
  }
  const auto [algbw_gbs, busbw_gbs] = bandwidth(workload, measurement.time_us);
  const std::size_t bytes = shown_bytes(workload);
  fmt::print("{:>12} {:>12} {:>5} {:>8} {:>5} {:>9} {:>7} {:>11.2f} {:>12.3f} {:>12.3f} {:>7}\n", bytes,
             workload.count_of_one_call(), type_name(workload), op_name(workload), to_string(workload.place),
             contender.memory(), contender.system(), measurement.time_us, algbw_gbs, busbw_gbs, measurement.wrong);
  std::fflush(stdout);  // a row may take a while, and under a launcher the output is a pipe
  json_.add(nlohmann::ordered_json{{"system", contender.system()},
                                   {"collective", workload.name()},
                                   {"op", op_name(workload)},
                                   {"dtype", type_name(workload)},
                                   {"bytes", bytes},
                                   {"ranks", workload.ranks},
                                   {"memory", contender.memory()},
                                   {"time_us", measurement.time_us},
                                   {"algbw_gbs", algbw_gbs},
                                   {"busbw_gbs", busbw_gbs},
                                   {"wrong", measurement.wrong},
                                   {"place", to_string(workload.place)},
                                   {"iterations", run_.iterations},
                                   {"operations", std::max<std::size_t>(workload.async_operations, 1)},
                                   {"device", run_.device},
                                   {"backend", run_.backend},
                                   {"wire", workload.wire ? to_string(*workload.wire) : none}});
}

}  // namespace fedrun::bench
