// Several operations that succeed together or not at all.
#pragma once

#include <fedrun/collectives/backend.h>

#include <memory>
#include <string_view>
#include <vector>

namespace fedrun {

// The operations are of one kind and have been checked. None of them starts before every rank has submitted the whole
// group, under this name or in the order of those without, and all agree about all of it.
std::unique_ptr<Work> start_grouped(Backend& backend, std::vector<Operation> members, std::string_view name);

// What is said about one member when the ranks compare their groups, in 64 bits.
struct GroupMember {
  std::uint64_t type : 8;
  std::uint64_t count : 56;
};
static_assert(sizeof(GroupMember) == sizeof(std::int64_t));

}  // namespace fedrun
