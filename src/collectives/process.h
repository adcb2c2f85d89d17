// One rank of a run: MPI's life time, where this rank sits, what it may use, and the communicator of all ranks.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <fedrun/collectives/device_group.h>
#include <fedrun/collectives/mpi_runtime.h>
#include <fedrun/collectives/timeline_file.h>
#include <fedrun/collectives/topology.h>
#include <fedrun/core/run_env.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>

namespace fedrun {

// One per process, made and destroyed by the main thread, before and after everything that communicates. It knows no
// Torch; programs that train use Session, which is a Process that also sets Torch up.
class Process {
 public:
  Process();  // as the environment says
  explicit Process(const RunEnv& env);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();  // writes the timeline, if one is being recorded

  Communicator& world() { return *world_; }
  const Topology& topology() const { return topology_; }
  const RunEnv& env() const { return env_; }

  int rank() const { return topology_.rank; }
  int size() const { return topology_.size; }
  int local_rank() const { return topology_.local_rank; }
  int local_size() const { return topology_.local_size; }

  // Compute threads for this rank: FEDRUN_THREADS, else OMP_NUM_THREADS, else its fair share of the host's cores.
  int threads() const { return threads_; }

  // The index of this rank's GPU on its host: by FEDRUN_GPU_OF_RANK, which fedrun --gpu-mapping sets; nothing where no
  // mapping says so.
  std::optional<int> gpu() const { return gpu_; }

  // Whether this run reduces elements on GPUs, each rank on its own, and the index of that on its host.
  std::optional<int> gpu_in_use() const { return gpu_in_use_; }

  // What the world's groups know of this rank's GPU.
  DeviceOptions device_options() const;

  // Records every operation of all groups from here on, and writes those of all ranks into one Chrome trace. Both are
  // collective. FEDRUN_TIMELINE=FILE, and `fedrun --timeline FILE`, do it for the whole run.
  void start_timeline(const std::string& path);
  void stop_timeline();

 private:
  std::unique_ptr<Backend> make_backend() const;
  std::optional<int> choose_gpu();
  TimelineOfRank stop_recording();

  RunEnv env_;
  std::shared_ptr<Timeline> timeline_ = std::make_shared<Timeline>();  // shared with the engines of all groups
  std::optional<MpiRuntime> mpi_;
  Topology topology_;
  std::optional<Communicator> world_;  // after mpi_, so that it is gone before MPI ends
  int threads_ = 1;
  std::optional<int> gpu_;
  std::optional<int> gpu_in_use_;
  std::string why_no_gpu_;    // empty: there is one, or nobody asked
  std::uint64_t gpu_id_ = 0;  // equal where ranks share a GPU
  std::string shared_gpus_;   // what is to be said about that
  std::string timeline_path_;
  std::chrono::nanoseconds clock_offset_{};
  int exceptions_at_start_ = std::uncaught_exceptions();
};

}  // namespace fedrun
