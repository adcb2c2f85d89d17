// The part of the engine that carries out what nothing else is under way beside, without anything to allocate.
#include <fedrun/collectives/call_terms.h>
#include <fedrun/collectives/disagreement.h>
#include <fedrun/collectives/engine.h>
#include <fedrun/collectives/host.h>
#include <fedrun/core/error.h>

namespace fedrun {
namespace {

constexpr int most_looks = 300;  // some ten microseconds

void fetch_for_writing(const void* line) { __builtin_prefetch(line, 1); }

}  // namespace

// For elements that the others see. False: take the long way, with the places if they were looked up.
bool Engine::run_at_once(const Operation& operation, std::optional<Places>& places) {
  const std::uint64_t position = next_;
  CallTerms terms = terms_of(operation);
  if (!is_free(position)) return false;
  if (!terms.is_inlined) {
    if (operation.kind != Collective::allreduce) return false;
    places = find_places(operation);
    if (places->input.how != Place::How::allocated || places->output.how != Place::How::allocated) return false;
    call(position, rank_).places = *places;
    if (places_number_ == 0 || *places != last_places_) {
      last_places_ = *places;
      ++places_number_;
    }
    terms.places_number = places_number_;
    ChunkRun::reserve(surroundings_, position);
  }
  const bool is_recorded = host_->timeline->is_on();
  const auto submitted = is_recorded ? Timeline::Clock::now() : Timeline::Clock::time_point();
  const std::uint64_t key = key_of(operation);
  publish_call(operation, terms, key, position);
  next_ = position + 1;
  line(rank_).placed.store(next_, std::memory_order_release);
  // What this rank writes next is in the others' caches from when the slot was last used: fetch it while it waits.
  fetch_for_writing(&surroundings_.board.progress(position, rank_));
  fetch_for_writing(&call(next_, rank_));
  fetch_for_writing(&call(next_, rank_).places);
  if (!wait_briefly_for_all(position, fingerprint_of(key, position))) {
    if (!terms.is_inlined) ChunkRun::give_back(surroundings_, position);
    run_from_here(operation, key, position);
    return true;
  }
  settled_ = next_;
  const auto all_arrived = is_recorded ? Timeline::Clock::now() : submitted;
  const std::string disagreement = find_disagreement(surroundings_.board, position, ranks_);
  if (disagreement.empty() && terms.is_inlined) {
    run_inlined(surroundings_, position, operation.output.data, plan_, inputs_);
  } else if (disagreement.empty() && !run_chunks_briefly(position)) {
    run_from_here(operation, key, position);
    return true;
  }
  line(rank_).left.store(next_, std::memory_order_release);  // after our last look at the slot
  // Somebody may have gone to sleep before this rank came. Waking them can wait until here, because they could do no
  // more than this rank has done.
  host_->peers.event().notify();
  if (is_recorded) host_->timeline->record(operation, group_.id, position, submitted, all_arrived);
  if (!disagreement.empty()) throw MismatchError(disagreement);
  return true;
}

// It takes longer: go on as if it had been submitted.
void Engine::run_from_here(const Operation& operation, std::uint64_t key, std::uint64_t position) {
  auto flight = std::make_shared<Flight>(operation, key, position);
  if (rank_ == 0) settled_ = next_;
  placed_.push_back(flight);
  host_->peers.event().notify();
  wait(*flight);
}

bool Engine::wait_briefly_for_all(std::uint64_t position, std::uint64_t fingerprint) const {
  int arrived = 0;
  for (int look = 0; look < most_looks; ++look) {
    while (arrived < ranks_ && fingerprint_at(position, arrived) == fingerprint) ++arrived;
    if (arrived == ranks_) return true;
    host_->scheduler.pause(look);
  }
  return false;
}

bool Engine::run_chunks_briefly(std::uint64_t position) {
  if (!chunks_ || !chunks_->repeat(position)) {
    if (needs_windows(position)) return false;
    chunks_ ? chunks_->restart(position) : static_cast<void>(chunks_.emplace(surroundings_, position));
  }
  chunks_->run_reserved();
  for (int look = 0; look < most_looks; ++look) {
    if (chunks_->advance() == Run::Progress::finished) return true;
    host_->scheduler.pause(look);
  }
  return false;
}

}  // namespace fedrun
