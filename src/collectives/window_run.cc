#include <fedrun/collectives/combine.h>
#include <fedrun/collectives/window_run.h>

#include <algorithm>
#include <cstring>

namespace fedrun {

WindowRun::WindowRun(const Surroundings& surroundings, std::uint64_t position, ConstBuffer input, Buffer output)
    : surroundings_(surroundings), position_(position), input_(input), output_(output) {
  const Group& group = surroundings.group;
  plan_reduction(surroundings.board, position, group.size(), plan_);
  for (int rank = 0; rank < group.size(); ++rank) {
    const Call& call = surroundings.board.call(position, rank);
    if (call.terms.has_joined) continue;
    if (rank == group.rank) {
      own_index_ = participants_.size();
      windows_ = (output.bytes() + window_bytes - 1) / window_bytes;
    }
    const int world_rank = group.world_rank(rank);
    Segments& segments = surroundings_.segments;
    const bool is_source = std::ranges::find(plan_.sources, rank) != plan_.sources.end();
    const bool is_seen = call.places.window.how == Place::How::nowhere;
    participants_.push_back({rank, is_source, is_seen ? nullptr : segments.resolve(call.places.window, world_rank),
                             is_seen ? segments.resolve(call.places.input, world_rank) : nullptr,
                             is_seen ? segments.resolve(call.places.output, world_rank) : nullptr});
  }
}

std::uint64_t WindowRun::elements_in(std::uint64_t window) const {
  return std::min(window_bytes, output_.bytes() - offset_of(window)) / size_of(output_.type);
}

std::byte* WindowRun::window_at(const Participant& participant, std::uint64_t number) {
  return participant.windows + number % window_count * window_bytes;
}

const std::byte* WindowRun::input_at(const Participant& participant, std::uint64_t number) const {
  return participant.windows == nullptr ? participant.input + offset_of(number) : window_at(participant, number);
}

std::byte* WindowRun::output_at(const Participant& participant, std::uint64_t number) const {
  return participant.windows == nullptr ? participant.output + offset_of(number) : window_at(participant, number);
}

bool WindowRun::all_have_filled(std::uint64_t number) const {
  return std::ranges::all_of(participants_, [&](const Participant& participant) {
    return participant.windows == nullptr || progress_of(participant).filled.count(position_) > number;
  });
}

bool WindowRun::all_have_combined(std::uint64_t number) const {
  return std::ranges::all_of(participants_, [&](const Participant& participant) {
    return progress_of(participant).combined.count(position_) > number;
  });
}

bool WindowRun::fill() {
  const Participant& self = participants_[own_index_];
  if (self.windows == nullptr || filled_ == windows_ || filled_ == emptied_ + window_count) return false;
  std::memcpy(window_at(self, filled_), static_cast<const std::byte*>(input_.data) + offset_of(filled_),
              elements_in(filled_) * size_of(input_.type));
  filled_ = progress_of(self).filled.add(position_, 1);  // publishes the elements
  return true;
}

bool WindowRun::combine() {
  if (combined_ == windows_ || !all_have_filled(combined_)) return false;
  const std::size_t element_bytes = size_of(output_.type);
  const std::uint64_t elements = elements_in(combined_);
  // Whole cache lines, so that no two ranks write to one.
  const std::uint64_t lines = (elements * element_bytes + 63) / 64;
  const auto slice_start = [&](std::size_t participant) {
    return std::min(elements, lines * participant / participants_.size() * 64 / element_bytes);
  };
  const std::uint64_t first = slice_start(own_index_);
  const std::uint64_t end = own_index_ + 1 == participants_.size() ? elements : slice_start(own_index_ + 1);
  inputs_.clear();
  outputs_.clear();
  for (const Participant& participant : participants_) {
    if (participant.is_source) inputs_.push_back(input_at(participant, combined_) + first * element_bytes);
    outputs_.push_back(output_at(participant, combined_) + first * element_bytes);
  }
  combine_sources(plan_, output_.type, end - first, inputs_, outputs_);
  combined_ = progress_of(participants_[own_index_]).combined.add(position_, 1);  // publishes the results
  return true;
}

bool WindowRun::empty() {
  if (emptied_ == windows_ || !all_have_combined(emptied_)) return false;
  const Participant& self = participants_[own_index_];
  if (self.windows != nullptr) {
    std::memcpy(static_cast<std::byte*>(output_.data) + offset_of(emptied_), window_at(self, emptied_),
                elements_in(emptied_) * size_of(output_.type));
  }
  ++emptied_;
  return true;
}

Run::Progress WindowRun::advance() {
  if (windows_ == 0) return Progress::finished;  // this rank only answers
  bool changed = false;
  for (bool goes_on = true; goes_on; changed |= goes_on) {
    goes_on = fill();
    goes_on |= combine();
    goes_on |= empty();
  }
  OperationCounter& finished = surroundings_.board.slot(position_).finished;
  if (changed && emptied_ == windows_) finished.add(position_, 1);
  if (changed) surroundings_.peers.event().notify();
  // Until all are through, they look at this rank's windows.
  return progress(finished.count(position_) == participants_.size(), changed);
}

}  // namespace fedrun
