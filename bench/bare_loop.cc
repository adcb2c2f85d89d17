// Each rank adds its slice of all buffers and writes the sum to all of them, between two barriers. It knows no calls to
// compare, no memory to find and no rank that may be late or gone, so nothing general can be much faster.
#include "bare_loop.h"

#include <fedrun/collectives/shared_mapping.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <span>

namespace fedrun::bench {
namespace {

// Lies in shared memory, zero-initialised; all ranks call wait().
class SpinBarrier {
 public:
  void wait(std::uint32_t ranks, bool each_rank_has_a_core) {
    const std::uint32_t round = round_.load(std::memory_order_relaxed);   // cannot change before we have arrived
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == ranks) {  // passes on what all of us have written
      arrived_.store(0, std::memory_order_relaxed);                       // is ordered before the next round
      round_.store(round + 1, std::memory_order_release);
      return;
    }
    // 10 to 50 µs, by CPU. Who waits longer may have the core of the rank that it waits for, if the host is busy.
    constexpr int patience = 1000;
    for (int looks = 0; round_.load(std::memory_order_acquire) == round; ++looks) {
      if (each_rank_has_a_core && looks < patience) {
        __builtin_ia32_pause();
      } else {
        sched_yield();
      }
    }
  }

 private:
  alignas(64) std::atomic<std::uint32_t> arrived_;
  alignas(64) std::atomic<std::uint32_t> round_;
};

// The compiler's own vectors, for the CPU that this runs on.
#define FEDRUN_FOR_EVERY_CPU __attribute__((target_clones("default", "avx2", "avx512f")))

FEDRUN_FOR_EVERY_CPU void add(float* __restrict sum, const float* __restrict summand, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sum[i] += summand[i];
}

FEDRUN_FOR_EVERY_CPU void add_to_both(float* __restrict a, float* __restrict b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) a[i] = b[i] = a[i] + b[i];
}

// One block of every rank's buffer fits into L1, where it is written after it was read.
constexpr std::size_t block_elements = 1024;
constexpr std::size_t elements_per_cache_line = 16;
constexpr std::size_t header_bytes = 4096;  // the barrier's page, so that the elements begin a page as well
static_assert(sizeof(SpinBarrier) <= header_bytes);

void allreduce_block(std::span<float* const> buffers, std::size_t first, std::size_t count) {
  float* sum = buffers.front() + first;
  const auto between = buffers.subspan(1, buffers.size() - 2);
  for (const float* buffer : between) add(sum, buffer + first, count);
  add_to_both(sum, buffers.back() + first, count);
  for (float* buffer : between) std::memcpy(buffer + first, sum, count * sizeof(float));
}

// Maps a segment of every rank, by rank.
std::vector<SharedMapping> share_segments(Communicator& world, std::size_t bytes) {
  using Words = std::array<std::int64_t, sizeof(SegmentHandle) / sizeof(std::int64_t)>;
  FileDescriptor descriptor;
  SharedMapping own = SharedMapping::create(bytes, descriptor);
  auto words = std::bit_cast<Words>(own.handle(descriptor));
  std::vector<SharedMapping> segments(static_cast<std::size_t>(world.size()));
  const std::vector<std::vector<std::int64_t>> words_by_rank = world.allgather(words);
  const auto own_rank = static_cast<std::size_t>(world.rank());
  for (std::size_t rank = 0; rank < segments.size(); ++rank) {
    std::ranges::copy(words_by_rank[rank], words.begin());
    if (rank != own_rank) segments[rank] = SharedMapping::open(std::bit_cast<SegmentHandle>(words));
  }
  segments[own_rank] = std::move(own);
  world.barrier();  // now all have mapped it, and the descriptor may be closed
  return segments;
}

class BareLoop final : public Contender {
 public:
  BareLoop(Communicator& world, const Topology& topology, const Workload& workload)
      : workload_(workload),
        each_rank_has_a_core_(topology.has_own_core),
        segments_(share_segments(world, header_bytes + workload.bytes())),
        buffers_(workload, [this](std::size_t bytes) { return own_elements(bytes); }) {
    for (const SharedMapping& segment : segments_) {
      elements_.push_back(reinterpret_cast<float*>(segment.data() + header_bytes));
    }
    const auto rank = static_cast<std::size_t>(workload.rank);
    first_ = begin_of_slice(rank);
    last_ = begin_of_slice(rank + 1);
  }

  std::string_view system() const override { return "limit"; }
  std::string_view memory() const override { return "allocated"; }
  const WorkBuffers& buffers() const override { return buffers_; }

  void run() override {
    if (workload_.ranks == 1) return;
    synchronize();
    for (std::size_t first = first_; first < last_; first += block_elements) {
      allreduce_block(elements_, first, std::min(block_elements, last_ - first));
    }
    synchronize();
  }

 private:
  Memory own_elements(std::size_t bytes) const {
    const SharedMapping& own = segments_[static_cast<std::size_t>(workload_.rank)];
    return Memory(own.data() + header_bytes, bytes, nullptr);
  }

  // Whole cache lines, so that no two ranks write to the same one.
  std::size_t begin_of_slice(std::size_t rank) const {
    const std::size_t lines = (workload_.count + elements_per_cache_line - 1) / elements_per_cache_line;
    const std::size_t first_line = lines * rank / static_cast<std::size_t>(workload_.ranks);
    return std::min(first_line * elements_per_cache_line, workload_.count);
  }

  void synchronize() {
    auto* barrier = reinterpret_cast<SpinBarrier*>(segments_.front().data());
    barrier->wait(static_cast<std::uint32_t>(workload_.ranks), each_rank_has_a_core_);
  }

  Workload workload_;
  bool each_rank_has_a_core_;
  std::vector<SharedMapping> segments_;
  WorkBuffers buffers_;
  std::vector<float*> elements_;  // by rank
  std::size_t first_ = 0;         // of this rank's slice
  std::size_t last_ = 0;
};

}  // namespace

std::unique_ptr<Contender> make_bare_loop(Communicator& world, const Topology& topology, const Workload& workload) {
  return std::make_unique<BareLoop>(world, topology, workload);
}

}  // namespace fedrun::bench
