// Carries out an operation whose ranks all share this host: each chunk is taken by any rank that waits.
#pragma once

#include <fedrun/collectives/elements.h>
#include <fedrun/collectives/run.h>
#include <fedrun/collectives/streams.h>

#include <cstdint>
#include <vector>

namespace fedrun {

// A chunk is what one rank reduces or copies at a time. Each element is combined in rank order, so the result is the
// same bits whoever computes it.
class ChunkRun final : public Run {
 public:
  ChunkRun(const Surroundings& surroundings, std::uint64_t position);
  // Another allreduce, with the memory of this object.
  void restart(std::uint64_t position);
  // The same, if it is like the last one in everything: most programs reduce the same buffers again and again.
  bool repeat(std::uint64_t position);
  Progress advance() override;

  // A rank that will carry out its portion as soon as all have arrived may say so before it arrives: then it need not
  // compete for it. Until it has run it, or given it back, nobody else will.
  static void reserve(const Surroundings& surroundings, std::uint64_t position);
  static void give_back(const Surroundings& surroundings, std::uint64_t position);
  void run_reserved();

 private:
  struct Portion {
    std::uint32_t first;  // chunk
    std::uint32_t chunks;
  };
  struct Range {
    const Stream* stream;
    std::uint64_t first;  // element of the stream
    std::uint64_t count;
  };
  void cut();
  Range range_of(std::uint32_t chunk) const;
  void run(std::uint32_t chunk);
  bool run_portion(int owner);
  bool is_done(int owner) const;
  const Portion& portion_of(int owner) const { return portions_[static_cast<std::size_t>(owner)]; }

  Surroundings surroundings_;
  std::uint64_t position_;
  Elements elements_;
  std::vector<Stream> streams_;
  ReducePlan plan_;
  std::uint64_t chunk_elements_ = 1;
  std::vector<Portion> portions_;  // by rank
  std::vector<CallTerms> terms_;   // by rank: the above follows from these
  std::uint64_t freed_ = 0;        // and hold until memory is freed
  // Used again for each chunk.
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  std::vector<int> out_of_sight_;
  std::vector<std::byte> result_;
};

// An operation whose inputs are all on the board: every rank calculates its own output, and nobody waits any more.
void run_inlined(const Surroundings& surroundings, std::uint64_t position, void* output, ReducePlan& plan,
                 std::vector<const void*>& inputs);

}  // namespace fedrun
