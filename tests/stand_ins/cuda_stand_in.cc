// Has the functions of the CUDA runtime that fedrun calls, and carries them out on the host: streams are threads,
// device memory is hidden from the program, and every access is checked for its order.
#include <cuda_runtime_api.h>
#include <fedrun/collectives/device_elements.h>
#include <sys/mman.h>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "stand_ins/order_checker.h"
#include "stand_ins/stand_in_control.h"
#include "stand_ins/stand_in_device.h"

namespace stand_in {
namespace {

constexpr std::size_t host_index = 0;  // in vector clocks; streams come after it

struct Allocation {
  std::byte* seen = nullptr;  // by the device
  std::size_t bytes = 0;
  AccessHistory history{};
};

// One use of an event: recording it again makes another.
struct Record {
  VectorClock clock;
  bool has_happened = false;
};

struct Stream {
  std::size_t index;
  VectorClock clock{};
  std::deque<std::function<void()>> tasks{};
  bool is_busy = false;
  bool is_ending = false;
  std::thread worker{};
};

struct Event {
  std::shared_ptr<Record> record{};
};

// Everything that the library knows. Never destroyed: threads of streams may outlive main().
class Machine {
 public:
  std::mutex mutex;
  std::condition_variable changed;
  std::map<const std::byte*, Allocation> allocations;  // by address
  std::set<Stream*> streams;
  Stream* default_stream = nullptr;
  VectorClock host_clock;
  std::map<const void*, std::string> kernels;  // by the address of the host's function
  std::size_t next_index = host_index + 1;

  Stream* make_stream() {
    const std::lock_guard lock(mutex);
    auto* made = new Stream{next_index++};
    streams.insert(made);
    made->worker = std::thread([this, made] { work(*made); });
    return made;
  }

  Stream* stream_of(void* handle) {
    if (handle != nullptr) return static_cast<Stream*>(handle);
    if (default_stream == nullptr) default_stream = make_stream();
    return default_stream;
  }

  void put(Stream& stream, std::function<void()> task) {  // with the mutex
    stream.tasks.push_back(std::move(task));
    changed.notify_all();
  }

  // The stream is through with all that is on it.
  void wait_for(Stream& stream, std::unique_lock<std::mutex>& lock) {
    changed.wait(lock, [&] { return stream.tasks.empty() && !stream.is_busy; });
  }

  std::map<const std::byte*, Allocation>::iterator allocation_of(const void* data) {
    const auto* address = static_cast<const std::byte*>(data);
    auto found = allocations.upper_bound(address);
    if (found == allocations.begin()) return allocations.end();
    --found;
    return address < found->first + found->second.bytes ? found : allocations.end();
  }

  void check(Stream& stream, const std::string& what, const Access& access) {
    const auto found = allocation_of(access.data);
    if (found == allocations.end() ||
        static_cast<const std::byte*>(access.data) + access.bytes > found->first + found->second.bytes) {
      return control().report(what + " touches memory that is not the device's");
    }
    const auto first = static_cast<std::size_t>(static_cast<const std::byte*>(access.data) - found->first);
    const AccessHistory::Entry entry{first,        first + access.bytes,          access.is_write,
                                     stream.index, stream.clock.of(stream.index), what};
    AccessHistory& history = found->second.history;
    if (const AccessHistory::Entry* before = history.find_conflict(entry, stream.clock)) {
      control().report(what + " on stream " + std::to_string(stream.index) + (access.is_write ? " writes" : " reads") +
                       " what " + before->what + " on stream " + std::to_string(before->stream) +
                       (before->is_write ? " writes" : " reads") + ", and no event orders them");
    }
    history.add(entry, stream.clock);
  }

 private:
  void work(Stream& stream) {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return !stream.tasks.empty() || stream.is_ending; });
      if (stream.tasks.empty()) break;
      auto task = std::move(stream.tasks.front());
      stream.tasks.pop_front();
      stream.is_busy = true;
      lock.unlock();
      task();
      lock.lock();
      stream.is_busy = false;
      changed.notify_all();
    }
    streams.erase(&stream);
    stream.worker.detach();
    delete &stream;
  }
};

Machine& machine() {
  static auto* the_machine = new Machine;
  return *the_machine;
}

thread_local cudaError_t last_error = cudaSuccess;
cudaError_t answer(cudaError_t result) {
  if (result != cudaSuccess) last_error = result;
  return result;
}

// Leaks and violations make the program fail, whatever it thinks of itself.
struct AtExit {
  ~AtExit() {
    const std::string live = control().describe_live();
    if (!live.empty()) control().report("still alive at the end: " + live);
    if (control().violations() != 0) std::_Exit(97);
  }
} at_exit;

template <typename Arguments>
Arguments arguments_of(void** args) {
  Arguments arguments;
  std::memcpy(&arguments, args[0], sizeof arguments);
  return arguments;
}

// As each thread of the grid does it.
template <typename Share>
void run_grid(dim3 grid, dim3 block, Share share) {
  const std::uint64_t stride = std::uint64_t{grid.x} * block.x;
  for (unsigned row = 0; row < grid.y; ++row) {
    for (std::uint64_t first = 0; first < stride; ++first) share(row, first, stride);
  }
}

void launch_copy(dim3 grid, dim3 block, void** args, void* stream) {
  auto arguments = arguments_of<fedrun::CopyArguments>(args);
  std::vector<Access> accesses;
  if (grid.y != arguments.piece_count) control().report("fedrun_copy_pieces has not one row of blocks for each piece");
  for (unsigned i = 0; i < arguments.piece_count; ++i) {
    fedrun::CopyPiece& piece = arguments.pieces[i];
    accesses.push_back({piece.from, piece.count * fedrun::size_of(arguments.from_type), false});
    accesses.push_back({piece.to, piece.count * fedrun::size_of(arguments.to_type), true});
  }
  put_on_stream(stream, "fedrun_copy_pieces", accesses, [arguments, grid, block]() mutable {
    for (unsigned i = 0; i < arguments.piece_count; ++i) {
      arguments.pieces[i].from = seen_by_device(arguments.pieces[i].from);
      arguments.pieces[i].to = seen_by_device(arguments.pieces[i].to);
    }
    run_grid(grid, block, [&](unsigned row, std::uint64_t first, std::uint64_t stride) {
      fedrun::copy_share(arguments, arguments.pieces[row], first, stride);
    });
  });
}

void launch_fill(dim3 grid, dim3 block, void** args, void* stream) {
  auto arguments = arguments_of<fedrun::FillArguments>(args);
  const Access access{arguments.data, arguments.count * fedrun::size_of(arguments.type), true};
  put_on_stream(stream, "fedrun_fill", {access}, [arguments, grid, block]() mutable {
    arguments.data = seen_by_device(arguments.data);
    run_grid(grid, block, [&](unsigned, std::uint64_t first, std::uint64_t stride) {
      fedrun::fill_share(arguments, first, stride);
    });
  });
}

cudaError_t launch(const void* function, dim3 grid, dim3 block, void** args, cudaStream_t stream) {
  if (control().shall_fail("cudaLaunchKernel")) return answer(cudaErrorLaunchFailure);
  const std::string& name = machine().kernels[function];
  if (name == "fedrun_copy_pieces") {
    launch_copy(grid, block, args, stream);
  } else if (name == "fedrun_fill") {
    launch_fill(grid, block, args, stream);
  } else {
    control().report("nobody knows a kernel called " + name);
  }
  return cudaSuccess;
}

}  // namespace

Control& control() {
  static auto* the_control = new Control;
  return *the_control;
}

void put_on_stream(void* handle, const std::string& what, const std::vector<Access>& accesses,
                   std::function<void()> task) {
  Machine& all = machine();
  Stream& stream = *all.stream_of(handle);
  const std::lock_guard lock(all.mutex);
  stream.clock.merge(all.host_clock);
  stream.clock.advance(stream.index);
  for (const Access& access : accesses) {
    if (access.bytes != 0) all.check(stream, what, access);
  }
  all.put(stream, std::move(task));
}

void* seen_by_device(const void* data) {
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  const auto found = all.allocation_of(data);
  if (found == all.allocations.end()) return nullptr;
  return found->second.seen + (static_cast<const std::byte*>(data) - found->first);
}

void* allocate_device_memory(std::size_t bytes) {
  const std::size_t pages = (bytes + 4095) / 4096 * 4096;
  void* const address = ::mmap(nullptr, pages, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* const seen = ::mmap(nullptr, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memset(seen, 0xA5, bytes);  // whoever relies on zeros shall notice
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  all.allocations[static_cast<const std::byte*>(address)] = {static_cast<std::byte*>(seen), bytes};
  control().add("allocation", 1);
  return address;
}

namespace {

void unmap(void* data) {
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  const auto found = all.allocations.find(static_cast<const std::byte*>(data));
  const std::size_t pages = (found->second.bytes + 4095) / 4096 * 4096;
  ::munmap(found->second.seen, pages);
  ::munmap(data, pages);
  all.allocations.erase(found);
}

}  // namespace

bool free_device_memory(void* data) {
  Machine& all = machine();
  {
    std::unique_lock lock(all.mutex);
    if (!all.allocations.contains(static_cast<const std::byte*>(data))) return false;
    all.changed.wait(lock, [&] {
      return std::ranges::all_of(all.streams, [](Stream* stream) { return stream->tasks.empty() && !stream->is_busy; });
    });
  }
  unmap(data);
  control().add("allocation", -1);
  return true;
}

}  // namespace stand_in

using namespace stand_in;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  if (control().shall_fail("cudaGetDeviceCount")) return answer(cudaErrorNoDevice);
  const char* gpus = std::getenv("STAND_IN_GPUS");
  *count = gpus == nullptr ? 8 : std::atoi(gpus);
  return *count == 0 ? answer(cudaErrorNoDevice) : cudaSuccess;
}

cudaError_t cudaSetDevice(int) {
  return answer(control().shall_fail("cudaSetDevice") ? cudaErrorInvalidDevice : cudaSuccess);
}

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorNoDevice ? "cudaErrorNoDevice" : "cudaError";
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorNoDevice ? "no device, says the stand-in" : "an error of the stand-in";
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  if (control().shall_fail("cudaStreamCreateWithFlags")) return answer(cudaErrorMemoryAllocation);
  control().add("stream", 1);
  *stream = reinterpret_cast<cudaStream_t>(machine().make_stream());
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  control().add("stream", -1);
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  reinterpret_cast<Stream*>(handle)->is_ending = true;  // its thread ends when it is through
  all.changed.notify_all();
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  if (control().shall_fail("cudaStreamSynchronize")) return answer(cudaErrorUnknown);
  Machine& all = machine();
  Stream& stream = *all.stream_of(handle);
  std::unique_lock lock(all.mutex);
  all.wait_for(stream, lock);
  all.host_clock.merge(stream.clock);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  if (control().shall_fail("cudaEventCreateWithFlags")) return answer(cudaErrorMemoryAllocation);
  control().add("event", 1);
  *event = reinterpret_cast<cudaEvent_t>(new Event);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  control().add("event", -1);
  delete reinterpret_cast<Event*>(event);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  if (control().shall_fail("cudaEventRecord")) return answer(cudaErrorUnknown);
  Machine& all = machine();
  Stream& stream = *all.stream_of(handle);
  const std::lock_guard lock(all.mutex);
  stream.clock.merge(all.host_clock);
  stream.clock.advance(stream.index);
  auto record = std::make_shared<Record>(stream.clock);
  reinterpret_cast<Event*>(event)->record = record;
  all.put(stream, [&all, record] {
    const std::lock_guard inner(all.mutex);
    record->has_happened = true;
    all.changed.notify_all();
  });
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  if (control().shall_fail("cudaStreamWaitEvent")) return answer(cudaErrorUnknown);
  Machine& all = machine();
  Stream& stream = *all.stream_of(handle);
  const std::lock_guard lock(all.mutex);
  const auto record = reinterpret_cast<Event*>(event)->record;
  if (!record) return cudaSuccess;
  stream.clock.merge(record->clock);
  all.put(stream, [&all, record] {
    std::unique_lock inner(all.mutex);
    all.changed.wait(inner, [&] { return record->has_happened; });
  });
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (control().shall_fail("cudaEventQuery")) return answer(cudaErrorUnknown);
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  const auto record = reinterpret_cast<Event*>(event)->record;
  if (record && !record->has_happened) return answer(cudaErrorNotReady);
  if (record) all.host_clock.merge(record->clock);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** data, size_t bytes) {
  *data = allocate_device_memory(bytes);
  return cudaSuccess;
}

cudaError_t cudaFree(void* data) {
  return data == nullptr || free_device_memory(data) ? cudaSuccess : answer(cudaErrorInvalidValue);
}

cudaError_t cudaMallocAsync(void** data, size_t bytes, cudaStream_t) {
  if (control().shall_fail("cudaMallocAsync")) return answer(cudaErrorMemoryAllocation);
  *data = allocate_device_memory(bytes);
  return cudaSuccess;
}

cudaError_t cudaFreeAsync(void* data, cudaStream_t stream) {
  control().add("allocation", -1);
  std::size_t bytes = 0;
  {
    const std::lock_guard lock(machine().mutex);
    bytes = machine().allocations.at(static_cast<const std::byte*>(data)).bytes;
  }
  put_on_stream(stream, "cudaFreeAsync", {{data, bytes, true}}, [data] { unmap(data); });
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* data, int value, size_t bytes, cudaStream_t stream) {
  if (control().shall_fail("cudaMemsetAsync")) return answer(cudaErrorUnknown);
  put_on_stream(stream, "cudaMemsetAsync", {{data, bytes, true}},
                [=] { std::memset(seen_by_device(data), value, bytes); });
  return cudaSuccess;
}

// Host memory is read and written when the copy's turn comes, as for memory that is pinned.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  std::vector<Access> accesses;
  if (kind != cudaMemcpyHostToDevice) accesses.push_back({from, bytes, false});
  if (kind != cudaMemcpyDeviceToHost) accesses.push_back({to, bytes, true});
  put_on_stream(stream, "cudaMemcpyAsync", accesses, [=] {
    if (bytes == 0) return;
    std::memcpy(kind == cudaMemcpyDeviceToHost ? to : seen_by_device(to),
                kind == cudaMemcpyHostToDevice ? from : seen_by_device(from), bytes);
  });
  return cudaSuccess;
}

// What code that nvcc compiles calls behind the scenes.

struct CallConfiguration {
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  cudaStream_t stream;
};
static thread_local CallConfiguration configuration;

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char* function, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  machine().kernels[function] = name;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, CUstream_st* stream) {
  configuration = {grid, block, shared_bytes, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream) {
  *grid = configuration.grid;
  *block = configuration.block;
  *shared_bytes = configuration.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = configuration.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args, size_t, cudaStream_t stream) {
  return launch(reinterpret_cast<const void*>(kernel), grid, block, args, stream);
}
cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** args, size_t, cudaStream_t stream) {
  return launch(function, grid, block, args, stream);
}

}  // extern "C"
