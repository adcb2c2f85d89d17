// Times collectives by size, in the columns that nccl-tests users know; the results are checked, not assumed.
#include <fedrun/collectives/process.h>
#include <fedrun/core/error.h>
#include <fmt/format.h>

#include <algorithm>

#include "bare_loop.h"
#include "bench_flags.h"
#include "device_choice.h"
#include "mpi_rival.h"
#include "report.h"

namespace fedrun::bench {
namespace {

std::vector<std::size_t> sizes(const Flags& flags, Collective kind) {
  if (flags.async_operations != 0) return {flags.min_bytes};
  if (kind == Collective::barrier) return {0};
  std::vector<std::size_t> sizes;
  for (std::size_t bytes = flags.min_bytes; bytes <= flags.max_bytes; bytes *= flags.factor) sizes.push_back(bytes);
  return sizes;
}

std::vector<Workload> workloads(const Flags& flags, const Process& process) {
  std::vector<Workload> workloads;
  for (const Collective kind : flags.collectives) {
    for (const std::size_t bytes : sizes(flags, kind)) {
      const std::size_t count = whole_count(kind, flags.type, bytes, process.size());
      for (const Place place : places_of(kind, flags.places)) {
        workloads.push_back({.kind = kind,
                             .op = flags.op,
                             .type = flags.type,
                             .wire = flags.wire,
                             .place = place,
                             .rank = process.rank(),
                             .ranks = process.size(),
                             .count = count * std::max<std::size_t>(flags.async_operations, 1),
                             .async_operations = flags.async_operations});
      }
    }
  }
  return workloads;
}

std::vector<std::unique_ptr<Contender>> make_contenders(Process& process, const Flags& flags, const Workload& workload,
                                                        DeviceCopies* copies) {
  std::vector<std::unique_ptr<Contender>> contenders;
  for (const MemoryKind memory : flags.memories) {
    contenders.push_back(make_fedrun_contender(process.world(), workload, memory, copies));
    if (workload.kind == Collective::barrier) break;  // has no memory to differ in
  }
  if (flags.compare_with_mpi) contenders.push_back(make_mpi_rival(workload));
  if (flags.compare_with_limit) contenders.push_back(make_bare_loop(process.world(), process.topology(), workload));
  return contenders;
}

int run(int argc, char** argv) {
  Process process;
  const std::optional<Flags> flags = read_flags(argc, argv, process.rank());
  if (!flags) return 0;
  if (flags->compare_with_limit && process.topology().cross_size != 1) {
    throw UsageError(fmt::format("--compare limit: the bare loop works inside one host, and this run has {}",
                                 process.topology().cross_size));
  }
  // The others work in the memory of the host, so that is where all are compared.
  const bool has_rivals = flags->compare_with_mpi || flags->compare_with_limit;
  const Device device = choose_device(has_rivals ? DeviceChoice::cpu : flags->device, process);
  const std::unique_ptr<DeviceCopies> copies = device == Device::cuda ? make_device_copies() : nullptr;
  std::optional<Report> report;
  if (process.rank() == 0) {
    report.emplace(Report::Run{.ranks = process.size(),
                               .backend = process.world().backend_name(),
                               .device = name_of(device),
                               .iterations = flags->rounds.iterations},
                   flags->json_path);
  }
  std::int64_t wrong = 0;
  for (const Workload& workload : workloads(*flags, process)) {
    const auto contenders = make_contenders(process, *flags, workload, copies.get());
    const std::vector<Measurement> measurements = measure(process.world(), workload, contenders, flags->rounds);
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      wrong += measurements[i].wrong;
      if (report) report->add(workload, *contenders[i], measurements[i]);
    }
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace fedrun::bench

int main(int argc, char** argv) { return fedrun::bench::run(argc, argv); }
