// Carries out an operation whose ranks are on several hosts: reduced inside each host, exchanged between them, and
// given out inside each host again, piece by piece, so that these steps of different pieces overlap.
#pragma once

#include <fedrun/collectives/elements.h>
#include <fedrun/collectives/links.h>
#include <fedrun/collectives/message_blocks.h>
#include <fedrun/collectives/run.h>
#include <fedrun/collectives/streams.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace fedrun {

// Messages of operations that are further apart than this cannot be told apart.
inline constexpr std::uint64_t positions_told_apart = 1 << 17;

// What somebody else has reduced inside each host, so that a shard of the sum lies on each rank, or on the first ones.
// Ranks with the same index on their hosts have the same shard: it is reduced among them, and remains where it lies.
struct ShardedReduction {
  std::vector<std::size_t> counts{};  // elements by shard
  std::byte* memory = nullptr;        // of this rank's shard
  DataType type = DataType::f32;
  DataType travelling_type = DataType::f32;
  ReduceOp op = ReduceOp::sum;
};

// A piece is a part of one stream. On each host one rank, its worker, sees to it; workers of the same piece on
// different hosts talk to each other. So hosts may have different numbers of ranks.
//
//   reduced:  every host combines its own ranks' elements, in rank order, and sends them to the piece's owner, a host
//             that changes from piece to piece; the owner combines what the hosts send, in host order, and sends the
//             result back to all. 2 (hosts - 1) / hosts of the bytes leave each host, the least that is possible.
//   copied:   the host of the rank that the piece comes from, its owner, sends it to each host that wants it.
class PieceRun final : public Run {
 public:
  PieceRun(const Surroundings& surroundings, Links& links, MessageBlocks& blocks, std::uint64_t position);
  PieceRun(const Surroundings& surroundings, Links& links, MessageBlocks& blocks, std::uint64_t position,
           const ShardedReduction& sharded);
  ~PieceRun() override;  // of an operation that failed, too
  PieceRun(const PieceRun&) = delete;
  PieceRun& operator=(const PieceRun&) = delete;
  Progress advance() override;

 private:
  using Block = MessageBlocks::Block;
  struct Piece {
    std::uint64_t number = 0;
    const Stream* stream = nullptr;
    std::uint64_t first = 0;  // element of the stream
    std::uint64_t count = 0;
    int owner = 0;
    enum class Step { exchange, send, finished } step = Step::exchange;
    std::vector<Block> partials{};  // of the owner: by host, where that host takes part; else its own
    std::byte* result = nullptr;    // in the type that travels: in an output, or in
    Block result_block{};           // this
    std::vector<std::unique_ptr<Transfer>> transfers{};  // of the current step
  };

  bool concerns(const Piece& piece, int host) const;
  bool is_reached(const Piece& piece, int host) const;
  bool contributes(int host) const { return contributes_[static_cast<std::size_t>(host)]; }
  int worker(const Piece& piece, int host) const;
  int tag(const Piece& piece, int phase) const;
  std::size_t travelling_bytes(const Piece& piece) const { return piece.count * size_of(travelling_type_); }

  void cut();
  template <typename Use>
  void for_each_piece(Use use) const;
  void start(Piece& piece);
  void start_reducing(Piece& piece);
  bool advance(Piece& piece);
  void combine_own(const Piece& piece, Block& partial);
  void combine_partials(Piece& piece);
  void read_source(Piece& piece);
  void send_result(Piece& piece);
  void give_out(Piece& piece);
  bool is_converted() const { return travelling_type_ != elements_.type() && travelling_type_ != DataType::f64; }
  std::vector<void*> visible_outputs(const Piece& piece) const;
  void make_room_for_result(Piece& piece);
  static bool all_done(std::vector<std::unique_ptr<Transfer>>& transfers);

  Surroundings surroundings_;
  Links& links_;
  MessageBlocks& blocks_;
  std::uint64_t position_;
  Elements elements_;
  std::vector<Stream> streams_;
  ReducePlan plan_;
  std::vector<bool> contributes_;  // by host: has it a source of the reduction?
  DataType travelling_type_;
  std::uint64_t piece_elements_ = 1;
  std::uint32_t pieces_of_host_ = 0;
  std::vector<Piece> mine_;  // that this rank is the worker of
  std::size_t first_unfinished_ = 0;
  std::size_t next_ = 0;  // of mine_, not yet started
};

}  // namespace fedrun
