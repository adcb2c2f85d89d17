#include <fedrun/collectives/chunk_run.h>
#include <fedrun/collectives/disagreement.h>
#include <fedrun/collectives/engine.h>
#include <fedrun/collectives/host.h>
#include <fedrun/collectives/piece_run.h>
#include <fedrun/collectives/window_run.h>
#include <fedrun/core/error.h>

#include <cstring>

namespace fedrun {

Engine::Engine(std::shared_ptr<Host> host, Group group, SharedMapping board, std::unique_ptr<Links> links)
    : host_(std::move(host)),
      group_(std::move(group)),
      board_mapping_(std::move(board)),
      links_(std::move(links)),
      spare_slots_(board_mapping_.data(), group_),
      surroundings_{group_, host_->peers, host_->segments, spare_slots_.board()},
      rank_(group_.rank),
      ranks_(group_.size()),
      reach_(group_.nccl_reach(host_->devices.mpi_across_hosts)) {
  host_->scheduler.add(*this);
}

Engine::~Engine() {
  // What the host was not asked to wait for may still come from blocks that others are about to get.
  if (devices_) devices_->settle();
  host_->scheduler.remove(*this);
  if (links_ && (!queued_.empty() || !placed_.empty() || !device_problem_.empty())) links_->fall_out_of_step();
}

std::shared_ptr<Flight> Engine::submit(Operation operation, Backend::Then then) {
  check_name_is_free(operation.name);
  auto flight = std::make_shared<Flight>(std::move(operation));
  flight->then = std::move(then);
  prepare_device(*flight);
  flight = enter(std::move(flight));
  // Backward submits bucket after bucket and waits for none: what is ready is launched now, not when somebody waits.
  if (flight->device && !is_progressing_) progress();
  return flight;
}

std::shared_ptr<Flight> Engine::enter(FlightPointer flight) {
  if (flight->operation.kind == Collective::join) begin_join();
  flight->key = key_of(flight->operation);
  flight->has_name = !flight->operation.name.empty();
  if (flight->has_name) names_.insert(flight->operation.name);
  const bool was_waited_for = fill_hole(flight);
  if (!was_waited_for) queued_.push_back(flight);
  if (place() || was_waited_for) host_->peers.event().notify();
  return flight;
}

void Engine::wait(Flight& flight) {
  if (!flight.finished) {
    try {
      host_->scheduler.wait(*this, flight);
    } catch (const Error& error) {
      if (flight.device) give_up_device(error.what());
      throw;
    }
  }
  if (flight.problem) std::rethrow_exception(flight.problem);
}

void Engine::run(Operation operation) {
  std::optional<Places> places;
  if (queued_.empty() && placed_.empty() && holes_.empty() && !links_ && operation.name.empty() &&
      !operation.is_on_device() && operation.kind != Collective::join && host_->scheduler.each_rank_has_a_core() &&
      run_at_once(operation, places)) {
    return;
  }
  check_name_is_free(operation.name);
  auto flight = std::make_shared<Flight>(std::move(operation));
  flight->places = places;
  prepare_device(*flight);
  wait(*enter(std::move(flight)));
}

bool Engine::progress() {
  if (queued_.empty() && placed_.empty() && !links_) return false;
  is_progressing_ = true;
  bool changed = take_records();
  changed |= end_given_up_flights();
  changed |= place();
  for (std::size_t i = 0; i < placed_.size(); ++i) {  // NOLINT(modernize-loop-convert): see below
    // A guess must not be looked at: what others wrote there may be about something else. What finishes may submit more
    // and so change the list: hence the index, and the second look at whether it is finished.
    const FlightPointer flight = placed_[i];
    if (!flight->finished && flight->position < settled_) changed |= advance(*flight);
  }
  const auto leave_if_finished = [&](const FlightPointer& flight) {
    if (flight->finished) spare_slots_.leave(flight->position);
    return flight->finished;
  };
  if (std::erase_if(placed_, leave_if_finished) != 0) {
    leave_finished_positions();
    changed |= place();
  }
  is_progressing_ = false;
  if (changed) host_->peers.event().notify();
  return changed;
}

bool Engine::make_more_room() {
  if (!lacks_room_) return false;
  lacks_room_ = false;
  uses_spare_slots_ = true;
  return progress();
}

bool Engine::needs_windows(std::uint64_t position) const {
  for (int rank = 0; rank < ranks_; ++rank) {
    if (call(position, rank).places.window.how != Place::How::nowhere) return true;
  }
  return false;
}

bool Engine::advance(Flight& flight) {
  try {
    if (!flight.run && !flight.is_agreed) {
      for (int rank = 0; rank < ranks_; ++rank) {
        if (!has_arrived(flight.position, rank)) return false;
      }
      begin(flight);
      if (flight.finished) return true;
    }
    const Run::Progress progress = flight.is_agreed ? advance_on_device(flight) : flight.run->advance();
    if (progress != Run::Progress::finished) return progress == Run::Progress::some;
    if (flight.output_block && !flight.device) {
      std::memcpy(flight.operation.output.data, flight.output_block->mapping.data(), flight.operation.output.bytes());
    }
  } catch (const Error&) {
    flight.problem = std::current_exception();
  }
  finish(flight);
  return true;
}

// Every rank has arrived.
void Engine::begin(Flight& flight) {
  const std::uint64_t position = flight.position;
  if (host_->timeline->is_on()) flight.all_arrived = std::chrono::steady_clock::now();
  const std::string disagreement = find_disagreement(surroundings_.board, position, ranks_);
  const int speaker = first_taking_part(surroundings_.board, position, ranks_);
  if (!disagreement.empty()) {
    flight.problem = std::make_exception_ptr(MismatchError(disagreement));
    finish(flight);
  } else if (call(position, speaker).terms.is_group) {
    finish(flight);
  } else if (call(position, speaker).terms.is_inlined) {
    run_inlined(surroundings_, position, flight.operation.output.data, plan_, inputs_);
    if (flight.operation.kind == Collective::join) end_join(flight);
    finish(flight);
  } else if (call(position, speaker).terms.is_on_device) {
    flight.is_agreed = true;
    flight.way = way_of(call(position, speaker).terms);
  } else if (!links_ && needs_windows(position)) {
    flight.run = std::make_unique<WindowRun>(surroundings_, position, flight.operation.input, flight.operation.output);
  } else {
    flight.run = make_run(position);
  }
}

std::unique_ptr<Run> Engine::make_run(std::uint64_t position) {
  if (links_) return std::make_unique<PieceRun>(surroundings_, *links_, message_blocks_, position);
  return std::make_unique<ChunkRun>(surroundings_, position);
}

void Engine::finish(Flight& flight) {
  try {
    if (const Backend::Then then = std::exchange(flight.then, {}); then && !flight.problem) then(flight.position);
  } catch (const Error&) {
    flight.problem = std::current_exception();
  }
  flight.finished = true;
  if (flight.problem && flight.device) leave_behind(flight);
  flight.run.reset();
  if (std::exchange(flight.is_launched, false)) --launched_flights_;
  flight.input_block.reset();
  flight.output_block.reset();
  flight.window_block.reset();
  free_name(flight);
  if (host_->timeline->is_on() && !flight.is_answer) {
    host_->timeline->record(flight.operation, group_.id, flight.position, flight.submitted, flight.all_arrived);
  }
}

void Engine::leave_finished_positions() {
  std::uint64_t left = settled_;
  for (const FlightPointer& flight : placed_) left = std::min(left, flight->position);
  for (const Hole& hole : holes_) left = std::min(left, hole.position);
  line(rank_).left.store(left, std::memory_order_release);  // after our last look at the slots below
}

}  // namespace fedrun
