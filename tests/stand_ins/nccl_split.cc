// NCCL's ncclCommSplit: the ranks write what they want into the memory that they share, and read what the others do.
#include <algorithm>

#include "stand_ins/nccl_communicator.h"
#include "stand_ins/nccl_errors.h"
#include "stand_ins/stand_in_control.h"

namespace stand_in {

namespace {

// The ranks of the new group, by their ranks in the old one; empty for a rank without a color.
std::vector<int> members_of(const Segment& segment, int rank, int ranks) {
  std::vector<int> members;
  const int color = segment.choices[static_cast<std::size_t>(rank)].color;
  for (int each = 0; each < ranks && color != NCCL_SPLIT_NOCOLOR; ++each) {
    if (segment.choices[static_cast<std::size_t>(each)].color == color) members.push_back(each);
  }
  std::ranges::stable_sort(members, {}, [&](int each) { return segment.choices[static_cast<std::size_t>(each)].key; });
  return members;
}

// Looked at again and again, because nothing here blocks. True: the new communicator is there.
bool go_on_with_split(ncclComm& parent, std::uint64_t number, ncclComm_t* made) {
  Segment& segment = *parent.segment;
  const auto all_have_come_to = [&](std::uint64_t step) {
    return std::all_of(segment.choices.begin(), segment.choices.begin() + parent.ranks,
                       [&](const SplitChoice& choice) { return choice.number.load() >= step; });
  };
  if (segment.choices[static_cast<std::size_t>(parent.rank)].number.load() > number)
    return all_have_come_to(number + 1);
  if (!all_have_come_to(number)) return false;
  const std::vector<int> members = members_of(segment, parent.rank, parent.ranks);
  SplitChoice& mine = segment.choices[static_cast<std::size_t>(parent.rank)];
  SegmentHandle handle{0, -1};
  if (!members.empty()) {
    SplitChoice& first = segment.choices[static_cast<std::size_t>(members.front())];
    if (members.front() == parent.rank && first.opened.load() < number) {
      first.handle = Segment::make();
      first.opened.store(number);
    }
    if (first.opened.load() < number) return false;
    handle = first.handle;
  }
  if (*made == nullptr && !members.empty()) {
    auto child = std::make_shared<ncclComm>();
    child->handle = handle;
    child->ranks = static_cast<int>(members.size());
    child->rank = static_cast<int>(std::ranges::find(members, parent.rank) - members.begin());
    child->looks_left = 1;
    *made = child.get();
    remember(child);
  }
  // Choices may be written over by the next split only when everyone has read them.
  mine.number.store(number + 1);
  return all_have_come_to(number + 1);
}

}  // namespace

}  // namespace stand_in

using namespace stand_in;

extern "C" {

ncclResult_t ncclCommSplit(ncclComm_t handle, int color, int key, ncclComm_t* made, ncclConfig_t*) {
  if (control().shall_fail("ncclCommSplit")) return failure("ncclCommSplit");
  ncclComm& parent = *shared(handle);
  if (parent.tasks.load() != 0 || parent.looks_left != 0)
    control().report("ncclCommSplit while something is under way");
  *made = nullptr;
  SplitChoice& mine = parent.segment->choices[static_cast<std::size_t>(parent.rank)];
  const std::uint64_t number = 2 * parent.splits++ + 1;
  mine.color = color;
  mine.key = key;
  mine.number.store(number);
  parent.unfinished = [&parent, number, made] { return go_on_with_split(parent, number, made); };
  parent.looks_left = looks_until_done;
  return ncclInProgress;
}

}  // extern "C"
