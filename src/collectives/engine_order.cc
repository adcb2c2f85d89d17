// The part of the engine that finds an operation's place in the order of the group, and puts up this rank's call there.
#include <fedrun/collectives/board_records.h>
#include <fedrun/collectives/call_terms.h>
#include <fedrun/collectives/engine.h>
#include <fedrun/collectives/hash.h>
#include <fedrun/collectives/host.h>
#include <fedrun/collectives/piece_run.h>
#include <fedrun/collectives/window_run.h>
#include <fedrun/core/error.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace fedrun {

void Engine::check_name_is_free(const std::string& name) const {
  if (name.empty() || !names_.contains(name)) return;
  throw UsageError(fmt::format(
      "an operation named '{}' is under way: wait for it before the name is used again, or choose another name", name));
}

void Engine::free_name(Flight& flight) {
  if (std::exchange(flight.has_name, false)) names_.erase(flight.operation.name);
}

std::uint64_t Engine::key_of(const Operation& operation) {
  if (!operation.name.empty()) return hash_of(operation.name);
  if (operation.kind == Collective::join) return hash_of(joins_, 0x6A6F696E);
  // A rank that had joined did not count what it answered, so after every join they count from 0 again.
  return hash_of(hash_of(unnamed_++, joins_finished_), 0x756E6E616D6564);
}

std::uint64_t Engine::key_at(std::uint64_t position, int rank) const {
  return fingerprint_of(fingerprint_at(position, rank), position);
}

// A position may be written on the ring when every rank of this host has left the operation that used the slot before.
bool Engine::is_free(std::uint64_t position) {
  if (position < free_below_) return true;
  std::uint64_t left = line(rank_).left.load(std::memory_order_relaxed);
  for (const int rank : group_.neighbours()) {
    left = std::min(left, line(rank).left.load(std::memory_order_acquire));  // its last look at the slot came before
  }
  free_below_ = left + ring_slots;
  return position < free_below_;
}

// For the leader of the host, as it announces position after position: sees to it that there is a slot.
bool Engine::has_room(std::uint64_t position) {
  if (is_free(position)) {
    uses_spare_slots_ = false;
    return true;
  }
  // The messages between hosts must be told apart.
  const std::uint64_t oldest = free_below_ - ring_slots;
  if (links_ && position >= oldest + positions_told_apart) return false;
  if (uses_spare_slots_) return spare_slots_.lend(position);
  lacks_room_ = true;
  return false;
}

bool Engine::place() {
  if (rank_ == 0) return place_as_rank_0();
  const bool has_followed = follow_rank_0();
  return guess() || has_followed;
}

bool Engine::place_as_rank_0() {
  bool changed = false;
  while (!queued_.empty()) {
    if (queued_.front()->operation.kind == Collective::join && !everyone_has_joined()) {
      return answer_for_rank_0() || changed;
    }
    if (!has_room(next_)) break;
    put(take_front(), next_);
    advance_next(next_ + 1);
    changed = true;
  }
  return changed;
}

bool Engine::follow_rank_0() {
  bool changed = false;
  if (!holes_.empty() && has_joined()) {
    for (const Hole& hole : holes_) put_answer(hole.position, hole.key);
    holes_.clear();
    changed = true;
  }
  // acquire: rank 0's calls were written before, and so was where their slots are
  const std::uint64_t announced = line(0).placed.load(std::memory_order_acquire);
  if (settled_ < announced && !group_.is_leader()) spare_slots_.read_lendings();
  while (settled_ < announced) {
    changed = true;
    if (next_ > settled_) {
      if (has_arrived(settled_, rank_)) {
        ++settled_;
        continue;
      }
      take_back_guesses();
    }
    const std::uint64_t key = key_at(settled_, 0);
    if (!fill(settled_, key)) holes_.push_back({settled_, key});
    ++settled_;
    advance_next(settled_);
  }
  return changed;
}

// Brings to this position what rank 0 has put there; false: this rank has not submitted it yet.
bool Engine::fill(std::uint64_t position, std::uint64_t key) {
  const auto wanted = std::ranges::find_if(queued_, [&](const FlightPointer& flight) { return flight->key == key; });
  if (wanted != queued_.end()) {
    FlightPointer flight = *wanted;
    queued_.erase(wanted);
    put(std::move(flight), position);
    return true;
  }
  if (!has_joined()) return false;
  put_answer(position, key);
  return true;
}

// Brings what was just submitted to where rank 0 has put it already.
bool Engine::fill_hole(const FlightPointer& flight) {
  const auto hole = std::ranges::find(holes_, flight->key, &Hole::key);
  if (hole == holes_.end()) return false;
  put(flight, hole->position);
  holes_.erase(hole);
  return true;
}

bool Engine::guess() {
  bool changed = false;
  while (!queued_.empty() && queued_.front()->operation.kind != Collective::join) {
    if (!is_free(next_)) {
      wish_for(queued_.front()->key);
      break;
    }
    put(take_front(), next_);
    advance_next(next_ + 1);
    changed = true;
  }
  return changed;
}

// A guess for which there is no room. Rank 0 looks for it when it has joined, because then it has no order of its own.
void Engine::wish_for(std::uint64_t key) {
  RankLine& mine = line(rank_);
  if (has_wish_ && mine.wished_at.load(std::memory_order_relaxed) == next_ + 1) return;
  has_wish_ = true;
  mine.wish.store(key, std::memory_order_relaxed);
  mine.wished_at.store(next_ + 1, std::memory_order_release);  // publishes the key
  if (links_ && group_.host(0) != group_.own_host()) links_->post(0, record_of_wish(mine, rank_));
}

void Engine::take_back_guesses() {
  std::ranges::sort(placed_, {}, &Flight::position);
  while (!placed_.empty() && placed_.back()->position >= settled_) {
    // 0 is nobody's fingerprint. relaxed: nobody acts on it before it sees what comes after.
    call(placed_.back()->position, rank_).fingerprint.store(0, std::memory_order_relaxed);
    placed_.back()->position = Flight::no_position;
    queued_.push_front(std::move(placed_.back()));
    placed_.pop_back();
  }
  advance_next(settled_);
  if (links_) send_record(record_of_taken_back(settled_, rank_));
}

std::shared_ptr<Flight> Engine::take_front() {
  FlightPointer flight = std::move(queued_.front());
  queued_.pop_front();
  return flight;
}

void Engine::advance_next(std::uint64_t next) {
  next_ = next;
  if (rank_ == 0) settled_ = next_;
  line(rank_).placed.store(next_, std::memory_order_release);  // publishes the calls below
}

void Engine::put(FlightPointer flight, std::uint64_t position) {
  const Operation& operation = flight->operation;
  CallTerms terms = terms_of(operation);
  if (operation.kind == Collective::join) terms.weight = last_to_join();  // rank 0 knows
  if (!terms.is_inlined)
    call(position, rank_).places =
        operation.is_on_device() ? flight->places.value_or(Places{}) : make_reachable(*flight);
  flight->position = position;
  publish_call(operation, terms, flight->key, position);
  placed_.push_back(std::move(flight));
}

void Engine::publish_call(const Operation& operation, const CallTerms& terms, std::uint64_t key,
                          std::uint64_t position) {
  // Before the wish comes true, lest it be granted twice.
  if (std::exchange(has_wish_, false)) line(rank_).wished_at.store(0, std::memory_order_relaxed);
  Call& mine = call(position, rank_);
  mine.terms = terms;
  if (terms.is_inlined && brings_input(operation, rank_) && terms.count != 0) {
    std::memcpy(mine.inline_data, operation.input.data, operation.input.bytes());
  }
  if (terms.is_named) {
    mine.name[operation.name.copy(mine.name, name_bytes - 1)] = '\0';
  }
  if (terms.kind == Collective::reduce_scatter || terms.kind == Collective::alltoall) {
    std::uint64_t* counts = surroundings_.board.counts(position, rank_);
    std::ranges::copy(operation.receive_counts, std::ranges::copy(operation.counts, counts).out);
  }
  mine.fingerprint.store(fingerprint_of(key, position), std::memory_order_release);  // publishes all of it
  line(rank_).called.store(position + 1, std::memory_order_release);                 // likewise, for messages
  if (links_) send_record(record_of_call(surroundings_.board, ranks_, position, rank_));
}

// Where this rank's elements lie for the others of its host.
Places Engine::find_places(const Operation& operation) const {
  const ConstBuffer& input = operation.input;
  const Buffer& output = operation.output;
  Places places{};
  if (brings_input(operation, rank_) && input.count != 0) {
    places.input = host_->segments.place(input.data, input.bytes(), group_);
  }
  if (takes_output(operation, rank_) && output.count != 0) {
    const bool is_in_place =
        places.input.how != Place::How::nowhere && output.data == input.data && output.bytes() == input.bytes();
    places.output = is_in_place ? places.input : host_->segments.place(output.data, output.bytes(), group_);
  }
  return places;
}

// Inside a host an allreduce passes through windows unless the others see this rank's memory.
bool Engine::passes_through_windows(const Operation& operation, const Places& places) const {
  return operation.kind == Collective::allreduce && operation.reduction.op != ReduceOp::adasum && !links_ &&
         ranks_ > 1 && operation.group_digest == 0 &&
         (places.input.how != Place::How::allocated || places.output.how != Place::How::allocated);
}

// Lends it what the others need to reach its elements.
Places Engine::make_reachable(Flight& flight) const {
  const ConstBuffer& input = flight.operation.input;
  const Buffer& output = flight.operation.output;
  if (!flight.places) flight.places = find_places(flight.operation);
  Places& places = *flight.places;
  if (passes_through_windows(flight.operation, places)) {
    const std::size_t bytes = std::min(output.bytes(), window_count * window_bytes);
    if (!flight.window_block) flight.window_block = host_->segments.borrow_block(bytes);
    return {{}, {}, Segments::place_of(*flight.window_block)};
  }
  if (places.input.how == Place::How::staged && !flight.input_block) {
    flight.input_block = host_->segments.borrow_block(input.bytes());
    std::memcpy(flight.input_block->mapping.data(), input.data, input.bytes());
    places.input = Segments::place_of(*flight.input_block);
  }
  if (places.output.how == Place::How::staged && !flight.output_block) {
    flight.output_block = host_->segments.borrow_block(output.bytes());
    places.output = Segments::place_of(*flight.output_block);
  }
  return places;
}

}  // namespace fedrun
