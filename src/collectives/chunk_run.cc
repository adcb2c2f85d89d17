#include <fedrun/collectives/chunk_run.h>
#include <fedrun/collectives/combine.h>

#include <algorithm>
#include <cstring>

namespace fedrun {
namespace {

// A chunk is small enough that its inputs stay in L2 while they are combined, and large enough that taking one is
// cheap.
constexpr std::uint64_t smallest_chunk_bytes = 4 << 10;
constexpr std::uint64_t largest_chunk_bytes = 256 << 10;
// Portions of more bytes have several chunks, so that a rank that comes late finds the rest done by others. Taking
// chunks one by one would cost short operations more than that.
constexpr std::uint64_t largest_portion_in_one_chunk = 128 << 10;
constexpr std::uint64_t fewest_chunks = 2;

std::uint64_t divide_up(std::uint64_t amount, std::uint64_t by) { return (amount + by - 1) / by; }

}  // namespace

ChunkRun::ChunkRun(const Surroundings& surroundings, std::uint64_t position)
    : surroundings_(surroundings), position_(position), elements_(surroundings, position) {
  cut();
}

void ChunkRun::restart(std::uint64_t position) {
  position_ = position;
  elements_.look_at(position);
  cut();
}

bool ChunkRun::repeat(std::uint64_t position) {
  if (freed_ != surroundings_.segments.freed()) return false;
  for (std::size_t rank = 0; rank < terms_.size(); ++rank) {
    const CallTerms& terms = surroundings_.board.call(position, static_cast<int>(rank)).terms;
    if (terms.places_number == 0 || terms != terms_[rank]) return false;
  }
  position_ = position;
  elements_.move_to(position);
  return true;
}

void ChunkRun::cut() {
  list_streams(surroundings_.board, position_, surroundings_.group.size(), streams_);
  plan_reduction(surroundings_.board, position_, surroundings_.group.size(), plan_);
  std::uint64_t elements = 0;
  for (const Stream& stream : streams_) elements += stream.count;
  const auto ranks = static_cast<std::uint64_t>(surroundings_.group.size());
  std::uint64_t share_bytes = divide_up(elements * elements_.element_bytes(), ranks);
  if (share_bytes > largest_portion_in_one_chunk) share_bytes /= fewest_chunks;
  chunk_elements_ = divide_up(std::clamp(share_bytes, smallest_chunk_bytes, largest_chunk_bytes), 64) * 64 /
                    elements_.element_bytes();
  std::uint64_t chunks = 0;
  for (const Stream& stream : streams_) chunks += divide_up(stream.count, chunk_elements_);  // none spans two streams
  portions_.clear();
  for (std::uint64_t rank = 0; rank < ranks; ++rank) {
    const std::uint64_t first = chunks * rank / ranks;
    portions_.push_back(
        {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(chunks * (rank + 1) / ranks - first)});
  }
  freed_ = surroundings_.segments.freed();
  terms_.clear();
  for (int rank = 0; rank < surroundings_.group.size(); ++rank) {
    terms_.push_back(surroundings_.board.call(position_, rank).terms);
  }
}

ChunkRun::Range ChunkRun::range_of(std::uint32_t chunk) const {
  std::uint64_t first = chunk * chunk_elements_;
  for (const Stream& stream : streams_) {
    if (first < stream.count) return {&stream, first, std::min(chunk_elements_, stream.count - first)};
    first -= divide_up(stream.count, chunk_elements_) * chunk_elements_;
  }
  return {};
}

void ChunkRun::run(std::uint32_t chunk) {
  const auto [stream, first, count] = range_of(chunk);
  inputs_.clear();
  outputs_.clear();
  out_of_sight_.clear();
  if (stream->reduces()) {
    for (const int source : plan_.sources) inputs_.push_back(elements_.input(source, stream->first_in + first, count));
  } else {
    inputs_.push_back(elements_.input(stream->from, stream->first_in + first, count));
  }
  for (int rank = 0; rank < surroundings_.group.size(); ++rank) {
    if (!stream->reaches(rank) || !elements_.takes_output(rank)) continue;
    if (std::byte* output = elements_.output(rank, stream->first_out + first)) {
      outputs_.push_back(output);
    } else {
      out_of_sight_.push_back(rank);
    }
  }
  const std::size_t bytes = count * elements_.element_bytes();
  const void* result = inputs_.empty() ? nullptr : inputs_.front();
  if (stream->reduces()) {
    if (outputs_.empty()) outputs_.push_back((result_.resize(bytes), result_.data()));
    combine_sources(plan_, elements_.type(), count, inputs_, outputs_);
    result = outputs_.front();
  } else {
    for (void* output : outputs_) {
      if (output != result) std::memcpy(output, result, bytes);
    }
  }
  for (const int rank : out_of_sight_) elements_.write_output(rank, stream->first_out + first, result, count);
}

// Each rank has a portion of the chunks, which it takes first: its part of the buffers stays in its cache from one
// operation to the next, and ranks that come together do not get into each other's way. Then it helps the others.
Run::Progress ChunkRun::advance() {
  const int ranks = surroundings_.group.size();
  bool changed = false;
  bool is_finished = true;
  for (int i = 0; i < ranks; ++i) {
    const int owner =
        surroundings_.group.rank + i < ranks ? surroundings_.group.rank + i : surroundings_.group.rank + i - ranks;
    changed |= run_portion(owner);
    is_finished = is_done(owner) && is_finished;
  }
  return progress(is_finished, changed);
}

bool ChunkRun::is_done(int owner) const {
  return surroundings_.board.progress(position_, owner).done.count(position_) == portion_of(owner).chunks;
}

bool ChunkRun::run_portion(int owner) {
  const auto [first, chunks] = portion_of(owner);
  RankProgress& shared = surroundings_.board.progress(position_, owner);
  std::uint32_t done = 0;
  while (shared.taken.count(position_) < chunks) {
    const std::uint32_t taken = shared.taken.add(position_, 1);
    if (taken > chunks) break;
    run(first + taken - 1);
    ++done;
  }
  if (done != 0) shared.done.add(position_, done);  // once for all of them, because others look at it
  return done != 0;
}

void ChunkRun::reserve(const Surroundings& surroundings, std::uint64_t position) {
  constexpr std::uint32_t more_than_there_are = 1U << 31;
  surroundings.board.progress(position, surroundings.group.rank).taken.set(position, more_than_there_are);
}

void ChunkRun::give_back(const Surroundings& surroundings, std::uint64_t position) {
  surroundings.board.progress(position, surroundings.group.rank).taken.set(position, 0);
}

void ChunkRun::run_reserved() {
  const auto [first, chunks] = portion_of(surroundings_.group.rank);
  RankProgress& shared = surroundings_.board.progress(position_, surroundings_.group.rank);
  if (chunks == 0) return;
  shared.taken.set(position_, 1);  // the others may help with the rest
  run(first);
  if (chunks == 1) {
    shared.done.set(position_, 1);
  } else {
    shared.done.add(position_, 1);
  }
}

void run_inlined(const Surroundings& surroundings, std::uint64_t position, void* output, ReducePlan& plan,
                 std::vector<const void*>& inputs) {
  const Board& board = surroundings.board;
  const int rank = surroundings.group.rank;
  const CallTerms& terms = board.call(position, first_taking_part(board, position, surroundings.group.size())).terms;
  if (terms.kind == Collective::barrier || terms.kind == Collective::join || output == nullptr) return;
  const std::size_t element_bytes = size_of(terms.type);
  if (terms.kind == Collective::allreduce && terms.op != ReduceOp::adasum) {  // one stream: worth not to be listed
    plan_reduction(board, position, surroundings.group.size(), plan);
    inputs.clear();
    for (const int source : plan.sources) inputs.push_back(board.call(position, source).inline_data);
    return combine_sources(plan, terms.type, terms.count, inputs, {&output, 1});
  }
  plan_reduction(board, position, surroundings.group.size(), plan);
  std::vector<Stream> streams;
  list_streams(board, position, surroundings.group.size(), streams);
  for (const Stream& stream : streams) {
    if (!stream.reaches(rank)) continue;
    void* to = static_cast<std::byte*>(output) + stream.first_out * element_bytes;
    const auto from = [&](int source) {
      return board.call(position, source).inline_data + stream.first_in * element_bytes;
    };
    if (!stream.reduces()) {
      std::memmove(to, from(stream.from), stream.count * element_bytes);
      continue;
    }
    inputs.clear();
    for (const int source : plan.sources) inputs.push_back(from(source));
    combine_sources(plan, terms.type, stream.count, inputs, {&to, 1});
  }
}

}  // namespace fedrun
