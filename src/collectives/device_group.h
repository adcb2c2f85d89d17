// What carries out the operations of one group on elements in the memory of GPUs; it speaks of no CUDA, so that the
// engine needs none.
#pragma once

#include <fedrun/collectives/gather.h>
#include <fedrun/collectives/memory.h>
#include <fedrun/collectives/operation.h>
#include <fedrun/collectives/run.h>
#include <fedrun/collectives/streams.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fedrun {

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
};

// One operation of this rank. Made when it is submitted, so that the moment at which its elements are ready is known.
class DeviceRun : public Run {
 public:
  // Puts the operation on the group's stream, or begins to. Once, in the same order on every rank.
  virtual void launch(const DeviceTerms& terms) = 0;
  // Has all of it been put on the stream? advance() brings it about.
  virtual bool is_on_stream() const = 0;
  // Makes the stream, a cudaStream_t, wait for the result. Once it is on the group's stream.
  virtual void let_wait(void* stream) = 0;
};

// Throws when it makes no sense to wait any longer: a rank has ended or has given up.
using Watch = std::function<void()>;

// Where this rank sits in a group that is being made.
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

  // Is the last operation that was launched on the stream, so that the next may be launched?
  virtual bool may_launch() const = 0;

  // How a group is made from this one, in two steps, so that the ranks can tell each other the `id` between them: where
  // nothing is under way on any rank, from the communicator itself, else from the id of the new group's rank 0.
  // Collective over this group.
  using Id = std::array<std::byte, 128>;
  virtual Id make_id() = 0;
  virtual std::shared_ptr<DeviceGroup> split(std::optional<int> color, int key, const DeviceSeat& seat) = 0;
  virtual std::shared_ptr<DeviceGroup> make(const Id& id, const DeviceSeat& seat) = 0;

  virtual Memory allocate(std::size_t bytes) = 0;

  // Ends what is under way, on this rank, without waiting for any other. Nothing can be launched afterwards.
  virtual void give_up() noexcept = 0;
};

// Collective over the world; `gather` is over all its ranks.
using MakeDeviceGroup = std::function<std::shared_ptr<DeviceGroup>(const Gather& gather, const DeviceSeat& seat)>;

}  // namespace fedrun
