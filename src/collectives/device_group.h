// What carries out the operations of one group on elements in the memory of GPUs; it speaks of no CUDA, so that the
// engine needs none.
#pragma once

#include <fedrun/collectives/memory.h>
#include <fedrun/collectives/operation.h>
#include <fedrun/collectives/run.h>
#include <fedrun/collectives/streams.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fedrun {

// Which way the elements of an operation on devices take.
enum class DeviceWay : std::uint8_t {
  direct,   // from GPU to GPU, by NCCL
  staged,   // through the memory of the hosts
  sharded,  // reduced by NCCL inside each host; each rank's shard of the sum goes through the memory of the hosts
};

// What all ranks have agreed about, and this rank's part of it.
struct DeviceTerms {
  Collective kind = Collective::allreduce;
  DataType type = DataType::f32;
  std::size_t count = 0;                      // elements of the input; of a gather, this rank's
  int root = 0;                               // of broadcast and gather
  std::optional<DataType> wire{};             // of a reduction
  ReducePlan plan{};                          // of a reduction
  std::vector<std::size_t> counts{};          // by rank, as in Operation
  std::vector<std::size_t> receive_counts{};  // of alltoall
  int rank = 0;                               // in the group, of which NCCL may connect only those of this host,
  int ranks = 1;
  // Of a sharded reduction.
  std::vector<std::size_t> shards{};  // elements of each rank that NCCL connects
  void* shard_memory = nullptr;       // of the host, for this rank's
};

// One operation of this rank. Made when it is submitted, so that the moment at which its elements are ready is known.
class DeviceRun : public Run {
 public:
  // Puts the operation on the group's stream, or begins to. Once, in the same order on every rank. What is staged needs
  // no launch.
  virtual void launch(const DeviceTerms& terms) = 0;

  // Of what goes through host memory: is what this rank brings there? advance() brings it about.
  virtual bool is_in_host_memory() = 0;
  // The result is in host memory: puts the rest of the operation on the stream, or begins to. Once; what is sharded in
  // the same order on every rank of the host.
  virtual void go_back() = 0;

  // Has all of it been put on the stream? advance() brings it about.
  virtual bool is_on_stream() const = 0;
  // Makes the stream, a cudaStream_t, wait for the result. Once it is on the group's stream.
  virtual void let_wait(void* stream) = 0;
};

// Throws when it makes no sense to wait any longer: a rank has ended or has given up.
using Watch = std::function<void()>;

// Where this rank sits among those that NCCL shall connect.
struct DeviceSeat {
  int rank = 0;
  int ranks = 1;
  Watch watch{};
  std::chrono::seconds time_limit{0};  // for making it; 0: none
};

// Used by one thread at a time.
class DeviceGroup {
 public:
  virtual ~DeviceGroup() = default;

  virtual int gpu() const = 0;  // of this rank, by its index on the host

  virtual std::unique_ptr<DeviceRun> prepare(ConstBuffer input, Buffer output) = 0;
  virtual std::unique_ptr<DeviceRun> prepare_answer() = 0;  // of a rank that has joined: it has no elements
  // Copies the input to pinned host memory of the same size, and the output from there when it goes back. Null: this
  // rank brings, or takes, nothing. The memory must stay until the run has finished or settle() has returned.
  virtual std::unique_ptr<DeviceRun> prepare_staged(ConstBuffer input, void* host_input, Buffer output,
                                                    const void* host_output) = 0;

  // Is the last operation that was launched on the stream, so that the next may be launched?
  virtual bool may_launch() const = 0;

  // Does NCCL connect any ranks of this group? Else its operations are staged.
  virtual bool is_connected() const = 0;

  // How a group is made from this one, in two steps, so that the ranks can tell each other the `id` between them: where
  // nothing is under way on any rank, from the communicator itself, else from the id of the lowest rank of the seats.
  // Without a color, or id, the new group is not connected. A split is collective over the ranks that NCCL connects.
  using Id = std::array<std::byte, 128>;
  virtual Id make_id() = 0;
  virtual std::shared_ptr<DeviceGroup> split(std::optional<int> color, const DeviceSeat& seat) = 0;
  virtual std::shared_ptr<DeviceGroup> make(const std::optional<Id>& id, const DeviceSeat& seat) = 0;

  virtual Memory allocate(std::size_t bytes) = 0;  // when may_launch()
  // Lets the GPU copy to and from memory of the host, while the host goes on, until the last owner lets go. Where that
  // cannot be had, copies are slower.
  virtual std::shared_ptr<void> pin(void* data, std::size_t bytes) = 0;  // shared: any number of blocks may hold it

  // Ends what is under way on this rank, which may take until the others do the same. Nothing can be launched
  // afterwards.
  virtual void give_up() noexcept = 0;
  // Returns when nothing that was put on the streams for staging uses host memory any more, or, if what was before it
  // on the callers' streams does not end, after some seconds.
  virtual void settle() noexcept = 0;
};

// A group of this rank's GPU alone, which is not connected, to make others from.
using MakeDeviceGroup = std::function<std::shared_ptr<DeviceGroup>()>;

struct DeviceOptions {
  MakeDeviceGroup make_group{};         // none: this run uses no GPUs
  std::uint64_t gpu_id = 0;             // equal where ranks share a GPU; 0: this rank shares it with nobody
  bool mpi_across_hosts = false;        // else NCCL
  std::size_t staged_below = 64 << 10;  // bytes of an allreduce, where MPI is used across hosts
};

}  // namespace fedrun
