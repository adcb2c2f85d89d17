// The part of the engine that brings operations on devices into one order, and notices when a rank cannot go on.
#include <fedrun/collectives/board_records.h>
#include <fedrun/collectives/call_terms.h>
#include <fedrun/collectives/engine.h>
#include <fedrun/collectives/host.h>
#include <fedrun/core/error.h>
#include <fmt/format.h>

#include <algorithm>

namespace fedrun {

void Engine::prepare_device(Flight& flight) {
  if (!flight.operation.is_on_device()) return;
  check_device();
  if (!devices_) {
    throw UsageError(
        fmt::format("{}: its elements lie on a GPU, and this run uses none: see the first lines of its log",
                    to_string(flight.operation.kind)));
  }
  for (const int gpu : {flight.operation.input.gpu, flight.operation.output.gpu}) {
    if (gpu == -1 || gpu == devices_->gpu()) continue;
    throw UsageError(fmt::format("{}: its elements lie on GPU {}, and this rank uses GPU {}: move them there",
                                 to_string(flight.operation.kind), gpu, devices_->gpu()));
  }
  flight.way = way_of(terms_of(flight.operation));
  or_give_up([&] {
    if (flight.way == DeviceWay::staged) return stage(flight);
    flight.device = devices_->prepare(flight.operation.input, flight.operation.output);
  });
}

// The other ranks must learn of what fails here: they would wait for this one.
void Engine::or_give_up(const std::function<void()>& use_device) {
  try {
    use_device();
  } catch (const Error& error) {
    give_up_device(error.what());
    throw;
  }
}

void Engine::check_device() {
  if (!device_problem_.empty()) {
    throw BackendError(fmt::format("the GPUs of this group were given up: {}", device_problem_));
  }
  for (int rank = 0; rank < ranks_; ++rank) {
    if (rank == rank_ || line(rank).gave_up_device.load(std::memory_order_acquire) == 0) continue;
    const std::string reason =
        fmt::format("rank {} of the group has given up its GPU; its own error says why", group_.world_rank(rank));
    give_up_device(reason);
    throw PeerLostError(reason);
  }
}

void Engine::give_up_device(const std::string& reason) {
  if (!device_problem_.empty()) return;
  device_problem_ = reason;
  line(rank_).gave_up_device.store(1, std::memory_order_release);
  if (links_) send_record(record_of_given_up_device(rank_));
  host_->peers.event().notify();
  // Last, because NCCL may wait until the other ranks give up as well, or for what is before it on a stream.
  if (devices_) devices_->give_up();
}

// Also those at which a rank that has given up will never arrive.
bool Engine::end_given_up_flights() {
  if (!devices_) return false;
  const auto is_on_device = [](const FlightPointer& flight) { return flight->device || flight->is_agreed; };
  if (std::ranges::none_of(queued_, is_on_device) && std::ranges::none_of(placed_, is_on_device)) return false;
  try {
    check_device();
    return false;
  } catch (const Error&) {
    const auto end = [&](const FlightPointer& flight) {
      if (!is_on_device(flight) || flight->finished) return;
      flight->problem = std::current_exception();
      finish(*flight);
    };
    std::ranges::for_each(queued_, end);
    std::ranges::for_each(placed_, end);
    std::erase_if(queued_, [](const FlightPointer& flight) { return flight->finished; });
    return true;
  }
}

// Every rank takes the turns in the order of their numbers. Any rank may give the next one to an operation that is
// ready, so that nobody waits for rank 0 while it computes: any of rank 0's host, or, where NCCL connects the ranks of
// a host only, any of that.
bool Engine::is_its_turn(Turn& turn, std::uint64_t position) {
  const bool is_of_host = reach_ == NcclReach::host;
  const int host = is_of_host ? group_.own_host() : group_.host(0);
  if (group_.own_host() == host && turn.number.count(position) == 0 && turn.claims.count(position) == 0 &&
      turn.claims.add(position, 1) == 1) {
    // relaxed: the number itself is all that others learn from it
    const std::uint64_t turns = line(group_.leader(host)).turns.fetch_add(1, std::memory_order_relaxed) + 1;
    const auto number = static_cast<std::uint32_t>(turns);
    turn.number.set(position, number);
    if (links_ && !is_of_host) send_record(record_of_launch(position, number, rank_));
    host_->peers.event().notify();
  }
  return turn.number.count(position) == turns_ + 1 && devices_->may_launch();
}

Run::Progress Engine::advance_on_device(Flight& flight) {
  Run::Progress progress = Run::Progress::none;
  or_give_up([&] {
    if (flight.way != DeviceWay::direct) {
      progress = advance_through_host(flight);
    } else if (flight.is_launched || is_its_turn(surroundings_.board.slot(flight.position).launch, flight.position)) {
      if (!flight.is_launched) launch(flight);
      progress = flight.device->advance();
    }
  });
  return progress;
}

void Engine::launch(Flight& flight) {
  if (!flight.device) flight.device = devices_->prepare_answer();
  DeviceTerms terms = device_terms(flight);
  if (flight.way == DeviceWay::sharded) add_shard(flight, terms);
  flight.device->launch(terms);
  flight.is_launched = true;
  ++launched_flights_;
  ++turns_;
}

DeviceTerms Engine::device_terms(const Flight& flight) {
  const std::uint64_t position = flight.position;
  const int speaker = first_taking_part(surroundings_.board, position, ranks_);
  const CallTerms& agreed = call(position, speaker).terms;
  DeviceTerms terms{.kind = agreed.kind,
                    .type = agreed.type,
                    .count = agreed.count,
                    .root = agreed.root,
                    .counts = flight.operation.counts,
                    .receive_counts = flight.operation.receive_counts,
                    .rank = rank_,
                    .ranks = ranks_};
  if (agreed.wire != agreed.type) terms.wire = agreed.wire;
  if (agreed.kind == Collective::allreduce || agreed.kind == Collective::reduce_scatter) {
    plan_reduction(surroundings_.board, position, ranks_, terms.plan);
  }
  if (agreed.kind == Collective::reduce_scatter) {
    const std::uint64_t* counts = surroundings_.board.counts(position, speaker);
    terms.counts.assign(counts, counts + ranks_);
  }
  return terms;
}

void Engine::wait_in_stream(Flight& flight, void* stream) {
  if (!flight.device) return wait(flight);
  or_give_up([&] {
    for (int looks = 0; !flight.finished && !flight.device->is_on_stream(); ++looks) {
      host_->scheduler.poll(*this, flight);
      host_->scheduler.pause(looks);
    }
    if (!flight.problem) flight.device->let_wait(stream);
  });
  if (flight.problem) std::rethrow_exception(flight.problem);
  free_name(flight);  // the host may be steps ahead of the device, and uses its names again
}

}  // namespace fedrun
