// Brings the operations of one group into one order, sees who has arrived, and carries them out.
#pragma once

#include <fedrun/collectives/board.h>
#include <fedrun/collectives/chunk_run.h>
#include <fedrun/collectives/device_group.h>
#include <fedrun/collectives/elements.h>
#include <fedrun/collectives/flight.h>
#include <fedrun/collectives/group.h>
#include <fedrun/collectives/links.h>
#include <fedrun/collectives/message_blocks.h>
#include <fedrun/collectives/shared_mapping.h>
#include <fedrun/collectives/spare_slots.h>
#include <fedrun/collectives/streams.h>

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace fedrun {

struct Host;

// An operation's position is its place in the order in which rank 0 submits. Every rank puts what it brings, its call,
// on the board at that position. The other ranks guess the position of what they submit, because most programs submit
// in the same order everywhere: the guess costs no message. A rank that finds that rank 0 has put something else there
// takes its guess back and puts there what rank 0 asks for, if it has been submitted already.
//
// A rank has arrived at a position when its call has the fingerprint of rank 0's. When all have, they compare the calls
// and carry the operation out, in whatever order the operations become ready.
//
// Positions use the slots of the board's ring in turn. Where the next slot is still in use and nothing has moved for a
// while, the leader of the host lends the position another one (spare_slots.h). Guesses are made on the ring only.
//
// On several hosts every host has a board. Ranks send their calls to the leaders of the other hosts, who put them up.
//
// One thread at a time.
class Engine {
 public:
  // Groups of devices are made after the engine, because making them needs somebody to tell of failures.
  void add_devices(std::shared_ptr<DeviceGroup> devices) { devices_ = std::move(devices); }
  std::shared_ptr<DeviceGroup> devices() const { return device_problem_.empty() ? devices_ : nullptr; }
  NcclReach reach() const { return reach_; }  // which ranks of the group NCCL connects, if they have GPUs

  Engine(std::shared_ptr<Host> host, Group group, SharedMapping board, std::unique_ptr<Links> links);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Group& group() const { return group_; }
  Host& host() const { return *host_; }
  const std::shared_ptr<Host>& shared_host() const { return host_; }

  std::shared_ptr<Flight> submit(Operation operation, Backend::Then then = {});
  void wait(Flight& flight);  // throws what went wrong with it
  void run(Operation operation);

  // Does what can be done without waiting; true if that changed anything.
  bool progress();
  // For whoever would sleep now: uses spare slots if that is what it takes to go on; true if that changed anything.
  bool make_more_room();
  // The leader of a host must look for messages even while it waits for something else: its neighbours rely on it.
  bool waits_for_other_hosts() const { return links_ != nullptr; }

  // A GPU wakes nobody who sleeps.
  bool waits_for_device() const { return launched_flights_ > 0; }
  // Throws PeerLostError if a rank of the group has given up its device or a process of this host has ended, and
  // BackendError with the reason if this one has given it up.
  void check_device();
  // Ends what is under way on the devices of this group, and tells the other ranks.
  void give_up_device(const std::string& reason);
  // Does it; if that fails, gives up the device.
  void or_give_up(const std::function<void()>& use_device);
  // Returns when the result is in place for what is put on the stream from here on.
  void wait_in_stream(Flight& flight, void* stream);

  // Which operation, who is missing, and what each rank did last.
  std::string describe_stall(const Flight& flight, std::chrono::seconds waited) const;

 private:
  using FlightPointer = std::shared_ptr<Flight>;  // shared with the Work that the user holds

  RankLine& line(int rank) const { return surroundings_.board.line(rank); }
  Call& call(std::uint64_t position, int rank) const { return surroundings_.board.call(position, rank); }
  std::uint64_t fingerprint_at(std::uint64_t position, int rank) const {
    // acquire: what the rank says about the operation was written before
    return call(position, rank).fingerprint.load(std::memory_order_acquire);
  }
  bool has_arrived(std::uint64_t position, int rank) const {
    return fingerprint_at(position, rank) == fingerprint_at(position, 0);
  }

  FlightPointer enter(FlightPointer flight);

  // engine_order.cc
  void check_name_is_free(const std::string& name) const;
  void free_name(Flight& flight);
  std::uint64_t key_of(const Operation& operation);
  std::uint64_t key_at(std::uint64_t position, int rank) const;
  bool is_free(std::uint64_t position);
  bool has_room(std::uint64_t position);
  bool place();
  bool place_as_rank_0();
  bool follow_rank_0();
  bool fill(std::uint64_t position, std::uint64_t key);
  bool fill_hole(const FlightPointer& flight);
  bool guess();
  void wish_for(std::uint64_t key);
  void take_back_guesses();
  FlightPointer take_front();
  void advance_next(std::uint64_t next);
  void put(FlightPointer flight, std::uint64_t position);
  void publish_call(const Operation& operation, const CallTerms& terms, std::uint64_t key, std::uint64_t position);
  Places find_places(const Operation& operation) const;
  bool passes_through_windows(const Operation& operation, const Places& places) const;
  Places make_reachable(Flight& flight) const;

  // engine_short_way.cc
  bool run_at_once(const Operation& operation, std::optional<Places>& places);
  void run_from_here(const Operation& operation, std::uint64_t key, std::uint64_t position);
  bool wait_briefly_for_all(std::uint64_t position, std::uint64_t fingerprint) const;
  bool run_chunks_briefly(std::uint64_t position);

  bool advance(Flight& flight);
  bool needs_windows(std::uint64_t position) const;
  void begin(Flight& flight);
  std::unique_ptr<Run> make_run(std::uint64_t position);
  void finish(Flight& flight);
  void leave_finished_positions();

  // engine_join.cc
  // Until the join has a position: what comes after it is this rank's business again, even before it has seen the end.
  bool has_joined() const { return !queued_.empty() && queued_.back()->operation.kind == Collective::join; }
  void begin_join();
  bool everyone_has_joined() const;
  int first_not_joined() const;
  int last_to_join() const;
  bool answer_for_rank_0();
  std::optional<std::uint64_t> key_wanted_by(int rank) const;
  void put_answer(std::uint64_t position, std::uint64_t key);
  void end_join(Flight& flight);

  // engine_device.cc
  void prepare_device(Flight& flight);
  Run::Progress advance_on_device(Flight& flight);
  bool is_its_turn(Turn& turn, std::uint64_t position);
  bool end_given_up_flights();
  void launch(Flight& flight);
  DeviceTerms device_terms(const Flight& flight);

  // engine_staging.cc
  DeviceWay way_of(const CallTerms& terms) const;
  void stage(Flight& flight);
  Segments::BlockLoan borrow_pinned_block(std::size_t bytes);
  void leave_behind(Flight& flight);
  void let_go_of_left_behind();
  Run::Progress advance_through_host(Flight& flight);
  Run::Progress await_elements(Flight& flight);
  std::vector<std::size_t> shard_counts(std::size_t count) const;
  void add_shard(Flight& flight, DeviceTerms& terms);
  std::unique_ptr<Run> make_shard_run(const Flight& flight);

  // engine_relay.cc
  void send_record(const std::vector<std::byte>& record);
  bool take_records();
  bool may_put_up(const std::vector<std::byte>& record);

  // engine_stall.cc
  std::string describe_last(int rank) const;
  std::string describe_missing(std::uint64_t position) const;

  std::shared_ptr<Host> host_;  // shared by all groups of the process; the last one destroys it
  Group group_;
  SharedMapping board_mapping_;
  std::unique_ptr<Links> links_;  // none: the group is on one host
  SpareSlots spare_slots_;
  Surroundings surroundings_;
  int rank_;
  int ranks_;

  MessageBlocks message_blocks_;           // before the flights that hold some
  std::deque<FlightPointer> queued_;       // submitted, without a position
  std::vector<FlightPointer> placed_;      // with a position, in no order
  std::unordered_set<std::string> names_;  // of both
  std::uint64_t unnamed_ = 0;              // how many operations without a name were submitted
  std::uint64_t settled_ = 0;              // positions below this are as rank 0 has them
  std::uint64_t next_ = 0;                 // positions from settled_ up to here are guesses
  struct Hole {
    std::uint64_t position;
    std::uint64_t key;
  };
  std::vector<Hole> holes_;  // below settled_: rank 0 has put something there, this rank has yet to submit it
  std::uint64_t free_below_ = ring_slots;  // positions below this may be written on the ring
  bool lacks_room_ = false;                // the next position must wait for a slot of the ring
  bool uses_spare_slots_ = false;          // until there is room on the ring again
  bool has_wish_ = false;
  std::uint64_t joins_ = 0;
  std::uint64_t joins_finished_ = 0;

  std::map<int, std::deque<std::vector<std::byte>>> held_;  // records by rank whose position has no slot yet
  std::vector<std::byte> record_;

  NcclReach reach_;
  std::shared_ptr<DeviceGroup> devices_;  // shared with the operations and memory that come from it; none: no GPUs
  bool is_progressing_ = false;           // so that what an operation submits at its end does not begin it again
  std::string device_problem_;            // why they were given up
  std::uint32_t turns_ = 0;   // that this rank has taken: every rank takes them in the order of their numbers
  int launched_flights_ = 0;  // that have not finished
  // Of staged operations that failed: their elements may still be on the way to the blocks.
  struct LeftBehind {
    std::unique_ptr<DeviceRun> device;
    Segments::BlockLoan input_block;
    Segments::BlockLoan output_block;
  };
  std::vector<LeftBehind> left_behind_;

  // Used again for each operation that is run at once.
  ReducePlan plan_;
  std::vector<const void*> inputs_;
  std::optional<ChunkRun> chunks_;
  Places last_places_{};             // that this rank said, and
  std::uint32_t places_number_ = 0;  // the number that it gave to them
};

}  // namespace fedrun
