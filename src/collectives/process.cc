#include <fedrun/collectives/engine_backend.h>
#include <fedrun/collectives/failure_report.h>
#include <fedrun/collectives/hash.h>
#include <fedrun/collectives/nccl_runtime.h>
#include <fedrun/collectives/process.h>
#include <fedrun/collectives/start_progress.h>
#include <fedrun/core/error.h>
#include <fedrun/core/host_name.h>
#include <fedrun/core/parse.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>

namespace fedrun {
namespace {

// What Open MPI's mpirun, Slurm's srun and other PMI launchers leave in the environment of their processes.
bool started_by_launcher() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

// Good enough to say who failed before MPI has started.
Topology topology_from_open_mpi_environment() {
  Topology topology;
  topology.host = host_name();
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  const char* size = std::getenv("OMPI_COMM_WORLD_SIZE");
  if (rank != nullptr && size != nullptr) {
    topology.rank = std::atoi(rank);
    topology.size = std::atoi(size);
  }
  return topology;
}

RunEnv read_environment() {
  report_uncaught_exceptions(topology_from_open_mpi_environment());
  return RunEnv::from_environment();
}

Topology topology_of_one_process() {
  Topology topology;
  topology.host = host_name();
  const std::string mask = affinity_mask();
  assign_cores(topology, fair_share_of_cores(mask, mask));
  return topology;
}

int choose_threads(const RunEnv& env, const Topology& topology) {
  if (env.threads) return *env.threads;
  const char* openmp = std::getenv("OMP_NUM_THREADS");
  if (openmp == nullptr) return topology.cores;
  try {
    return parse_integer<int>(openmp, 1, 1024);
  } catch (const UsageError&) {
    return topology.cores;  // OpenMP allows lists such as "4,2", which say nothing about one number
  }
}

std::optional<int> mapped_gpu(const RunEnv& env, const Topology& topology) {
  if (env.gpu_of_rank.empty()) return std::nullopt;
  if (std::ssize(env.gpu_of_rank) != topology.size) {
    throw UsageError(
        fmt::format("FEDRUN_GPU_OF_RANK has GPUs for {} ranks, and this run has {}: unset it, and pass the "
                    "mapping by fedrun --gpu-mapping",
                    env.gpu_of_rank.size(), topology.size));
  }
  return env.gpu_of_rank[static_cast<size_t>(topology.rank)];
}

// What the ranks tell each other about their GPUs.
struct GpuSeat {
  std::uint64_t id;  // 0: none
  int index;
  AcrossHosts across_hosts;
  std::size_t staged_below;
  std::array<char, 64> host;
};

// They decide which way elements take, so every rank must have the same.
void check_same_variables(const std::vector<GpuSeat>& seats) {
  const auto words = [](const GpuSeat& seat) {
    return fmt::format("FEDRUN_GPU_ACROSS_HOSTS={} and FEDRUN_GPU_STAGED_BELOW={}",
                       seat.across_hosts == AcrossHosts::mpi ? "mpi" : "nccl", seat.staged_below);
  };
  for (std::size_t rank = 1; rank < seats.size(); ++rank) {
    if (words(seats[rank]) == words(seats.front())) continue;
    throw MismatchError(
        fmt::format("rank 0 has {}, rank {} has {}: every rank needs the same; fedrun's flags --gpu-across-hosts and "
                    "--gpu-staged-below see to it",
                    words(seats.front()), rank, words(seats[rank])));
  }
}

// Empty: each rank has a GPU of its own.
std::string describe_shared_gpus(const std::vector<GpuSeat>& seats) {
  std::vector<std::string> shared;
  for (std::size_t first = 0; first < seats.size(); ++first) {
    std::vector<std::size_t> sharers;
    for (std::size_t rank = 0; rank < seats.size(); ++rank) {
      if (seats[rank].id == seats[first].id) sharers.push_back(rank);
    }
    if (sharers.size() < 2 || sharers.front() != first) continue;
    shared.push_back(fmt::format("ranks {} share GPU {} of host {}", fmt::join(sharers, ", "), seats[first].index,
                                 seats[first].host.data()));
  }
  if (shared.empty()) return {};
  return fmt::format(
      "{}, which NCCL refuses: groups with such ranks stage elements on GPUs through host memory, which is slower; for "
      "speed, start at most as many ranks on a host as it has GPUs",
      fmt::join(shared, "; "));
}

}  // namespace

Process::Process() : Process(read_environment()) {}

std::unique_ptr<Backend> Process::make_backend() const {
  if (!mpi_) return make_self_backend(device_options());
  if (env_.backend == BackendChoice::shm && topology_.cross_size > 1) {
    throw UsageError(
        fmt::format("the shm backend works inside one host, and this run has {}: use FEDRUN_BACKEND=auto or mpi",
                    topology_.cross_size));
  }
  // The mpi backend treats every rank as a host of its own.
  const int host = env_.backend == BackendChoice::mpi ? topology_.rank : topology_.cross_rank;
  const Gather gather = mpi_->gather();
  return make_world_backend({topology_.rank, gather_values(gather, topology_.size, host)}, gather,
                            {.may_reach_ordinary_memory = env_.peer_memory,
                             .wait = {topology_.has_own_core, env_.stall_warning, env_.stall_limit},
                             .make_links = MpiRuntime::make_links,
                             .timeline = timeline_,
                             .devices = device_options()});
}

DeviceOptions Process::device_options() const {
  return {.make_group = gpu_in_use_ ? nccl_groups(*gpu_in_use_) : MakeDeviceGroup{},
          .gpu_id = gpu_id_,
          .mpi_across_hosts = env_.gpu_across_hosts == AcrossHosts::mpi,
          .staged_below = env_.gpu_staged_below};
}

// Collective. A run uses a GPU on every rank or on none.
std::optional<int> Process::choose_gpu() {
  if (env_.device == DeviceChoice::cpu) return std::nullopt;
  const GpuFinding found = find_gpu(gpu_, topology_);
  if (env_.device == DeviceChoice::cuda && !found.gpu) {
    throw BackendError(fmt::format("FEDRUN_DEVICE=cuda: {}; unset it, or use cpu", found.why_not));
  }
  if (!found.is_expected) return std::nullopt;
  if (!found.gpu) why_no_gpu_ = found.why_not;
  gpu_id_ = found.gpu ? hash_of(hash_of(found.bus), static_cast<std::uint64_t>(topology_.cross_rank)) | 1 : 0;
  GpuSeat seat{gpu_id_, found.gpu.value_or(-1), env_.gpu_across_hosts, env_.gpu_staged_below, {}};
  seat.host[topology_.host.copy(seat.host.data(), seat.host.size() - 1)] = '\0';
  std::vector<GpuSeat> seats = {seat};
  if (mpi_) seats = gather_values(mpi_->gather(), topology_.size, seat);
  const auto without = std::ranges::find(seats, 0, &GpuSeat::id);
  if (without != seats.end()) {
    if (found.gpu) why_no_gpu_ = fmt::format("rank {} has none", without - seats.begin());
    return std::nullopt;
  }
  check_same_variables(seats);
  shared_gpus_ = describe_shared_gpus(seats);
  use_gpu(*found.gpu);
  return found.gpu;
}

Process::Process(const RunEnv& env) : env_(env) {
  const bool use_mpi =
      env_.backend == BackendChoice::mpi || (env_.backend != BackendChoice::self && started_by_launcher());
  const StartProgress progress(env_.progress_descriptor);
  progress.tell(progress_begun);
  if (use_mpi) mpi_.emplace();
  topology_ = mpi_ ? mpi_->topology() : topology_of_one_process();
  report_uncaught_exceptions(topology_);
  gpu_ = mapped_gpu(env_, topology_);
  gpu_in_use_ = choose_gpu();
  world_.emplace(make_backend());
  progress.tell(progress_joined);
  threads_ = choose_threads(env_, topology_);
  log::configure({env_.log_level, topology_.size > 1 ? fmt::format("[rank {}] ", topology_.rank) : ""});
  log::info("host {}, local rank {} of {}, host {} of {}, backend {}, {} threads", topology_.host, topology_.local_rank,
            topology_.local_size, topology_.cross_rank, topology_.cross_size, world_->backend_name(), threads_);
  if (!why_no_gpu_.empty() && topology_.rank == 0) log::warn("this run uses the CPU, and no GPU: {}", why_no_gpu_);
  if (!shared_gpus_.empty() && topology_.rank == 0) log::warn("{}", shared_gpus_);
  if (!env_.timeline.empty()) start_timeline(env_.timeline);
}

Process::~Process() {
  const bool is_unwound = std::uncaught_exceptions() > exceptions_at_start_;
  try {
    if (timeline_->is_on() && is_unwound) {
      write_timeline_alone(stop_recording(), timeline_path_);
    } else if (timeline_->is_on()) {
      stop_timeline();
    }
    // An operation that has ended here may still be under way on another rank, which looks for this one's memory. It
    // waits as MPI_Finalize does, which comes too late.
    if (mpi_ && !is_unwound) gather_values(mpi_->gather(), topology_.size, std::uint8_t{0});
  } catch (const Error& error) {
    log::error("{}", error.what());
  }
}

void Process::start_timeline(const std::string& path) {
  if (timeline_->is_on()) {
    throw UsageError(fmt::format("a timeline is being recorded for {}: stop it before the next", timeline_path_));
  }
  check_timeline_path(*world_, path);
  timeline_path_ = path;
  clock_offset_ = find_clock_offset(*world_);
  timeline_->start();
}

void Process::stop_timeline() {
  if (!timeline_->is_on()) throw UsageError("no timeline is being recorded: start one first");
  write_timeline(*world_, stop_recording(), timeline_path_);
}

TimelineOfRank Process::stop_recording() { return {topology_.rank, topology_.host, clock_offset_, timeline_->stop()}; }

}  // namespace fedrun
