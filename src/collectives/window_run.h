// Carries out an allreduce of memory that the other ranks of this host do not see: it passes through windows that they
// do see. Reading it through the kernel, where that is allowed, is slower.
#pragma once

#include <fedrun/collectives/elements.h>
#include <fedrun/collectives/run.h>
#include <fedrun/collectives/streams.h>

#include <cstdint>
#include <vector>

namespace fedrun {

// A window is small enough that it is still in the cache when the next step comes to it; with several of them the ranks
// need not go in step.
inline constexpr std::size_t window_bytes = 64 << 10;
inline constexpr std::size_t window_count = 4;

// For each window, each rank
//
//   fills     copies its own elements into its window,
//   combines  its slice of all ranks' windows, and stores the result into all of them,
//   empties   copies the result out of its own window
//
// A rank whose memory the others see has nothing to fill and to empty: its memory is its windows.
class WindowRun final : public Run {
 public:
  // input and output are this rank's own; none if it only answers.
  WindowRun(const Surroundings& surroundings, std::uint64_t position, ConstBuffer input, Buffer output);
  Progress advance() override;

 private:
  struct Participant {
    int rank;
    bool is_source;
    std::byte* windows;  // nullptr: the others see its memory
    const std::byte* input;
    std::byte* output;
  };
  RankProgress& progress_of(const Participant& participant) const {
    return surroundings_.board.progress(position_, participant.rank);
  }
  std::uint64_t elements_in(std::uint64_t window) const;
  std::uint64_t offset_of(std::uint64_t window) const { return window * window_bytes; }
  static std::byte* window_at(const Participant& participant, std::uint64_t number);
  const std::byte* input_at(const Participant& participant, std::uint64_t number) const;
  std::byte* output_at(const Participant& participant, std::uint64_t number) const;
  bool all_have_filled(std::uint64_t number) const;
  bool all_have_combined(std::uint64_t number) const;
  bool fill();
  bool combine();
  bool empty();

  Surroundings surroundings_;
  std::uint64_t position_;
  ConstBuffer input_;
  Buffer output_;
  ReducePlan plan_;
  std::vector<Participant> participants_;  // in rank order
  std::size_t own_index_ = 0;
  std::uint64_t windows_ = 0;
  std::uint64_t filled_ = 0;  // windows that this rank is through with, step by step
  std::uint64_t combined_ = 0;
  std::uint64_t emptied_ = 0;
  std::vector<const void*> inputs_;  // these two are used again for each window
  std::vector<void*> outputs_;
};

}  // namespace fedrun
