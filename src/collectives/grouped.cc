#include <fedrun/collectives/grouped.h>
#include <fedrun/collectives/hash.h>
#include <fedrun/collectives/work_chain.h>
#include <fmt/format.h>

namespace fedrun {
namespace {

// The parts that ranks bring to an allgather may differ; their sum may not.
std::uint64_t count_to_compare(const Operation& member) {
  return member.kind == Collective::allgather ? member.output.count : member.input.count;
}

struct Grouped {
  std::vector<Operation> members;
  std::vector<GroupMember> descriptions;
};

}  // namespace

std::unique_ptr<Work> start_grouped(Backend& backend, std::vector<Operation> members, std::string_view name) {
  if (members.empty()) return std::make_unique<WorkChain>(std::make_shared<WorkChain::Steps::element_type>());
  const auto grouped = std::make_shared<Grouped>();  // shared: lives until the ranks have agreed
  std::uint64_t digest = 0;
  for (const Operation& member : members) {
    grouped->descriptions.push_back({static_cast<std::uint64_t>(member.input.type), count_to_compare(member)});
    digest = hash_of(digest, static_cast<std::uint64_t>(member.input.type) << 56 | count_to_compare(member));
    digest = hash_of(digest, member.shape);
    for (const std::size_t count : member.counts) digest = hash_of(digest, count);
  }
  Operation agreement{.kind = members.front().kind,
                      .name = std::string(name),
                      .input = {grouped->descriptions.data(), grouped->descriptions.size(), DataType::i64},
                      .reduction = members.front().reduction,
                      .group_digest = digest | 1};
  grouped->members = std::move(members);
  const auto steps = std::make_shared<WorkChain::Steps::element_type>();
  steps->push_back(backend.start(std::move(agreement), [&backend, grouped, steps](std::uint64_t position) {
    for (std::size_t i = 0; i < grouped->members.size(); ++i) {
      grouped->members[i].name = fmt::format("{}group {}.{}", internal_name, position, i);
      steps->push_back(backend.start(std::move(grouped->members[i])));
    }
  }));
  return std::make_unique<WorkChain>(steps);
}

}  // namespace fedrun
