#include <fedrun/collectives/cast_kernels.h>
#include <fedrun/collectives/combine.h>
#include <fedrun/collectives/piece_run.h>

#include <algorithm>
#include <cstring>

namespace fedrun {
namespace {

// A piece fits into a block. Pieces are long enough that a message's fixed costs do not matter, and short enough that
// each rank has some to do.
constexpr std::size_t smallest_piece_bytes = 64 << 10;
constexpr std::size_t pieces_under_way = 3;  // per worker: bounds the memory for what is on its way

enum Phase { to_owner = 0, from_owner = 1 };

// Sums of integers that are weighted or scaled have fractions until the very end.
DataType travelling_type(const CallTerms& terms, const ReducePlan& plan) {
  const bool is_integer = terms.type == DataType::u8 || terms.type == DataType::i8 || terms.type == DataType::i32 ||
                          terms.type == DataType::i64;
  return is_integer && !plan.weights.empty() ? DataType::f64 : terms.wire;
}

}  // namespace

PieceRun::PieceRun(const Surroundings& surroundings, Links& links, MessageBlocks& blocks, std::uint64_t position)
    : surroundings_(surroundings),
      links_(links),
      blocks_(blocks),
      position_(position),
      elements_(surroundings, position),
      contributes_(surroundings.group.hosts.size()) {
  const Group& group = surroundings_.group;
  list_streams(surroundings.board, position, group.size(), streams_);
  const int speaker = first_taking_part(surroundings.board, position, group.size());
  plan_reduction(surroundings.board, position, group.size(), plan_);
  for (const int source : plan_.sources) contributes_[static_cast<std::size_t>(group.host(source))] = true;
  travelling_type_ = travelling_type(surroundings.board.call(position, speaker).terms, plan_);
  cut();
}

PieceRun::PieceRun(const Surroundings& surroundings, Links& links, MessageBlocks& blocks, std::uint64_t position,
                   const ShardedReduction& sharded)
    : surroundings_(surroundings),
      links_(links),
      blocks_(blocks),
      position_(position),
      elements_(surroundings, position),
      plan_{.sources = {surroundings.group.rank}, .op = sharded.op},
      contributes_(surroundings.group.hosts.size(), true),
      travelling_type_(sharded.travelling_type) {
  elements_.look_at_own(sharded.memory, sharded.type);
  for (std::size_t shard = 0; shard < sharded.counts.size(); ++shard) {
    if (sharded.counts[shard] == 0) continue;
    streams_.push_back({.count = sharded.counts[shard], .shard = static_cast<int>(shard)});
  }
  cut();
}

void PieceRun::cut() {
  const Group& group = surroundings_.group;
  std::uint64_t elements = 0;
  for (const Stream& stream : streams_) elements += stream.count;
  const std::size_t widest = std::max(elements_.element_bytes(), size_of(travelling_type_));
  const std::uint64_t share_bytes = elements * widest / (2 * static_cast<std::uint64_t>(group.size()));
  piece_elements_ = std::clamp(share_bytes, smallest_piece_bytes, MessageBlocks::block_bytes) / widest;
  for_each_piece([&](Piece&& piece) {
    if (!concerns(piece, group.own_host())) return;
    ++pieces_of_host_;
    if (worker(piece, group.own_host()) == group.rank) mine_.push_back(std::move(piece));
  });
}

// Blocks are used again by the next operations: none may be given back while a message can still arrive in it.
PieceRun::~PieceRun() {
  for (Piece& piece : mine_) {
    bool has_ended = true;
    for (const auto& transfer : piece.transfers) has_ended = transfer->end() && has_ended;
    if (has_ended) continue;
    for (Block& partial : piece.partials) partial.leave_for_ever();
    piece.result_block.leave_for_ever();
  }
}

template <typename Use>
void PieceRun::for_each_piece(Use use) const {
  std::uint64_t number = 0;
  for (const Stream& stream : streams_) {
    for (std::uint64_t first = 0; first < stream.count; first += piece_elements_, ++number) {
      Piece piece{.number = number, .stream = &stream, .first = first};
      piece.count = std::min(piece_elements_, stream.count - first);
      piece.owner = !stream.reduces()               ? surroundings_.group.host(stream.from)
                    : stream.to != Stream::everyone ? surroundings_.group.host(stream.to)
                                                    : static_cast<int>(number % surroundings_.group.hosts.size());
      use(std::move(piece));
    }
  }
}

bool PieceRun::is_reached(const Piece& piece, int host) const {
  return piece.stream->to == Stream::everyone || surroundings_.group.host(piece.stream->to) == host;
}

bool PieceRun::concerns(const Piece& piece, int host) const {
  return piece.owner == host || is_reached(piece, host) || (piece.stream->reduces() && contributes(host));
}

int PieceRun::worker(const Piece& piece, int host) const {
  const std::vector<int>& ranks = surroundings_.group.ranks_of_host(host);
  if (piece.stream->shard >= 0) return ranks[static_cast<std::size_t>(piece.stream->shard)];
  return ranks[piece.number % ranks.size()];
}

// Pieces of one operation whose numbers are further apart than this arrive in the order in which they were sent.
constexpr std::uint64_t pieces_told_apart = 1 << 12;
static_assert(positions_told_apart * pieces_told_apart * 2 <= 1 << 30);

int PieceRun::tag(const Piece& piece, int phase) const {
  return static_cast<int>((position_ % positions_told_apart * pieces_told_apart + piece.number % pieces_told_apart)
                              << 1 |
                          static_cast<std::uint64_t>(phase));
}

Run::Progress PieceRun::advance() {
  bool changed = false;
  for (; next_ < mine_.size() && next_ < first_unfinished_ + pieces_under_way; changed = true) start(mine_[next_++]);
  for (std::size_t i = first_unfinished_; i < next_; ++i) {
    Piece& piece = mine_[i];
    if (piece.step == Piece::Step::finished || !advance(piece)) continue;
    changed = true;
    piece = Piece{.step = Piece::Step::finished};  // gives its memory back
    const std::uint32_t done = surroundings_.board.slot(position_).finished.add(position_, 1);
    if (done == pieces_of_host_) surroundings_.peers.event().notify();
  }
  while (first_unfinished_ < next_ && mine_[first_unfinished_].step == Piece::Step::finished) ++first_unfinished_;
  return progress(surroundings_.board.slot(position_).finished.count(position_) >= pieces_of_host_, changed);
}

void PieceRun::start(Piece& piece) {
  const int own_host = surroundings_.group.own_host();
  if (piece.stream->reduces()) {
    start_reducing(piece);
  } else if (piece.owner != own_host) {
    make_room_for_result(piece);
    piece.transfers.push_back(
        links_.receive(worker(piece, piece.owner), tag(piece, from_owner), piece.result, travelling_bytes(piece)));
  }
}

void PieceRun::start_reducing(Piece& piece) {
  const int own_host = surroundings_.group.own_host();
  if (piece.owner == own_host) {
    piece.partials.resize(surroundings_.group.hosts.size());
    for (int host = 0; host < surroundings_.group.host_count(); ++host) {
      if (!contributes(host)) continue;
      Block& partial = piece.partials[static_cast<std::size_t>(host)];
      partial = blocks_.take();
      if (host == own_host) continue;
      piece.transfers.push_back(
          links_.receive(worker(piece, host), tag(piece, to_owner), partial.data(), travelling_bytes(piece)));
    }
    if (contributes(own_host)) combine_own(piece, piece.partials[static_cast<std::size_t>(own_host)]);
    return;
  }
  const int owner = worker(piece, piece.owner);
  if (contributes(own_host)) {
    Block& partial = piece.partials.emplace_back(blocks_.take());
    combine_own(piece, partial);
    piece.transfers.push_back(links_.send(owner, tag(piece, to_owner), partial.data(), travelling_bytes(piece)));
  }
  if (is_reached(piece, own_host)) {
    make_room_for_result(piece);  // it may be where the elements just combined lay: they are not needed any more
    piece.transfers.push_back(links_.receive(owner, tag(piece, from_owner), piece.result, travelling_bytes(piece)));
  }
}

// The elements of this host's ranks, combined in rank order.
void PieceRun::combine_own(const Piece& piece, Block& partial) {
  std::vector<const void*> inputs;
  std::vector<double> weights;
  for (std::size_t i = 0; i < plan_.sources.size(); ++i) {
    if (!surroundings_.group.is_neighbour(plan_.sources[i])) continue;
    inputs.push_back(elements_.input(plan_.sources[i], piece.stream->first_in + piece.first, piece.count));
    if (!plan_.weights.empty()) weights.push_back(plan_.weights[i]);
  }
  void* const output = partial.data();
  reduce({.inputs = inputs,
          .outputs = {&output, 1},
          .count = piece.count,
          .type = elements_.type(),
          .output_type = travelling_type_,
          .op = plan_.op,
          .weights = weights});
}

// The ranks of this host that get the result where this rank sees it.
std::vector<void*> PieceRun::visible_outputs(const Piece& piece) const {
  std::vector<void*> outputs;
  for (const int rank : surroundings_.group.neighbours()) {
    if (!piece.stream->reaches(rank) || !elements_.takes_output(rank)) continue;
    if (void* output = elements_.output(rank, piece.stream->first_out + piece.first)) outputs.push_back(output);
  }
  return outputs;
}

// In an output, if it arrives as it is to be there.
void PieceRun::make_room_for_result(Piece& piece) {
  const std::vector<void*> outputs = visible_outputs(piece);
  if (!outputs.empty() && travelling_type_ == elements_.type()) {
    piece.result = static_cast<std::byte*>(outputs.front());
  } else {
    piece.result_block = blocks_.take();
    piece.result = piece.result_block.data();
  }
}

// What the hosts sent, combined in host order.
void PieceRun::combine_partials(Piece& piece) {
  make_room_for_result(piece);
  std::vector<const void*> inputs;
  for (const Block& partial : piece.partials) {
    if (partial) inputs.push_back(partial.data());
  }
  if (inputs.empty()) {  // nobody takes part
    std::memset(piece.result, 0, travelling_bytes(piece));
    return;
  }
  // Integers that travelled as f64 become integers again here, before anyone sees them.
  const DataType type = travelling_type_ == DataType::f64 ? elements_.type() : travelling_type_;
  void* const output = piece.result;
  reduce({.inputs = inputs,
          .outputs = {&output, 1},
          .count = piece.count,
          .type = travelling_type_,
          .output_type = type,
          .op = plan_.op,
          .factor = plan_.postscale,
          .divisor = plan_.divisor});
}

bool PieceRun::all_done(std::vector<std::unique_ptr<Transfer>>& transfers) {
  // One look at a time: each makes MPI look at all its connections.
  while (!transfers.empty() && transfers.back()->done()) transfers.pop_back();
  return transfers.empty();
}

bool PieceRun::advance(Piece& piece) {
  if (!all_done(piece.transfers)) return false;
  if (piece.step == Piece::Step::exchange) {
    if (piece.owner == surroundings_.group.own_host()) {
      piece.stream->reduces() ? combine_partials(piece) : read_source(piece);
      send_result(piece);
    }
    if (is_reached(piece, surroundings_.group.own_host())) give_out(piece);
    piece.step = Piece::Step::send;
  }
  return all_done(piece.transfers);
}

void PieceRun::read_source(Piece& piece) {
  const std::uint64_t first = piece.stream->first_in + piece.first;
  // Only read from; it is not const where a result is received.
  piece.result = const_cast<std::byte*>(elements_.visible_input(piece.stream->from, first));
  if (piece.result != nullptr) return;
  make_room_for_result(piece);
  elements_.read_input(piece.stream->from, first, piece.count, piece.result);
}

void PieceRun::send_result(Piece& piece) {
  for (int host = 0; host < surroundings_.group.host_count(); ++host) {
    if (host == piece.owner || !is_reached(piece, host)) continue;
    piece.transfers.push_back(
        links_.send(worker(piece, host), tag(piece, from_owner), piece.result, travelling_bytes(piece)));
  }
}

void PieceRun::give_out(Piece& piece) {
  const void* result = piece.result;
  Block converted;
  if (is_converted()) {
    converted = blocks_.take();
    cast({result, piece.count, travelling_type_}, {converted.data(), piece.count, elements_.type()});
    result = converted.data();
  }
  const std::uint64_t first = piece.stream->first_out + piece.first;
  for (const int rank : surroundings_.group.neighbours()) {
    if (!piece.stream->reaches(rank) || !elements_.takes_output(rank)) continue;
    std::byte* output = elements_.output(rank, first);
    if (output == nullptr) {
      elements_.write_output(rank, first, result, piece.count);
    } else if (output != result) {
      std::memcpy(output, result, piece.count * elements_.element_bytes());
    }
  }
}

}  // namespace fedrun
