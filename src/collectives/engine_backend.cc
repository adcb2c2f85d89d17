#include <fedrun/collectives/board_records.h>
#include <fedrun/collectives/engine.h>
#include <fedrun/collectives/engine_backend.h>
#include <fedrun/core/error.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <utility>

namespace fedrun {
namespace {

class EngineWork final : public Work {
 public:
  EngineWork(std::shared_ptr<Engine> engine, std::shared_ptr<Flight> flight)
      : engine_(std::move(engine)), flight_(std::move(flight)) {}

  ~EngineWork() override {
    if (flight_->finished || std::uncaught_exceptions() > exceptions_at_start_) return;
    try {
      engine_->wait(*flight_);
    } catch (const Error&) {
      // A destructor cannot report it; whoever cares about the result calls wait().
    }
  }

  bool done() override {
    if (!flight_->finished) engine_->host().scheduler.poll(*engine_, *flight_);
    return flight_->finished;
  }

  void wait() override { engine_->wait(*flight_); }

 private:
  std::shared_ptr<Engine> engine_;  // shared: a Work may outlive its communicator
  std::shared_ptr<Flight> flight_;  // shared with the engine
  int exceptions_at_start_ = std::uncaught_exceptions();
};

// Collective over the ranks of `gather`, of which those of `group` will share the engine. `parent_ranks` are the
// group's ranks as `gather` knows them.
std::shared_ptr<Engine> make_engine(const std::shared_ptr<Host>& host, Group group, const Gather& gather,
                                    int gathering_ranks, const std::vector<int>& parent_ranks) {
  FileDescriptor descriptor;
  SharedMapping board;
  if (group.is_leader()) board = SharedMapping::create(Board::bytes(group.size()), descriptor);
  const auto handles = gather_values(gather, gathering_ranks, board.handle(descriptor));
  if (!group.is_leader()) {
    const int leader = parent_ranks[static_cast<std::size_t>(group.leader(group.own_host()))];
    board = SharedMapping::open(handles[static_cast<std::size_t>(leader)]);
  }
  gather_values(gather, gathering_ranks, std::uint8_t{0});  // everyone has mapped: the descriptors may close
  std::unique_ptr<Links> links;
  if (group.host_count() > 1) links = host->make_links(group, longest_record_bytes(group.size()));
  return std::make_shared<Engine>(host, std::move(group), std::move(board), std::move(links));
}

class EngineBackend final : public Backend {
 public:
  explicit EngineBackend(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}

  std::string_view name() const override {
    const Group& group = engine_->group();
    if (group.size() == 1) return "self";
    if (group.host_count() == 1) return "shm";
    return group.host_count() == group.size() ? "mpi" : "shm+mpi";
  }
  int rank() const override { return engine_->group().rank; }
  int size() const override { return engine_->group().size(); }

  std::unique_ptr<Work> start(Operation operation, Then then) override {
    return std::make_unique<EngineWork>(engine_, engine_->submit(std::move(operation), std::move(then)));
  }
  void run(Operation operation) override { engine_->run(std::move(operation)); }

  Memory allocate(std::size_t bytes) override {
    return engine_->host().segments.allocate(bytes, engine_->group(), gather_through_engine());
  }

  std::unique_ptr<Backend> split(std::optional<int> color, int key) override;

 private:
  Gather gather_through_engine() {
    return [this](const void* mine, std::size_t bytes, void* all) {
      const auto ranks = static_cast<std::size_t>(size());
      engine_->run({.kind = Collective::allgather,
                    .input = {mine, bytes, DataType::u8},
                    .output = {all, ranks * bytes, DataType::u8},
                    .counts = std::vector<std::size_t>(ranks, bytes)});
    };
  }

  std::shared_ptr<Engine> engine_;  // shared with the Work objects, which may outlive this group
};

std::unique_ptr<Backend> EngineBackend::split(std::optional<int> color, int key) {
  struct Choice {
    std::int64_t color;  // -1: none
    std::int64_t key;
    std::uint64_t id;  // of the new group, if this rank is its first
  };
  const Group& parent = engine_->group();
  const Gather gather = gather_through_engine();
  const auto id = static_cast<std::uint64_t>(parent.world_rank(parent.rank)) << 32 | ++engine_->host().groups_led;
  const auto choices = gather_values(gather, size(), Choice{color.value_or(-1), key, id});
  std::vector<int> members;
  for (int member = 0; member < size(); ++member) {
    if (color && choices[static_cast<std::size_t>(member)].color == *color) members.push_back(member);
  }
  if (!color) members = {parent.rank};  // takes part in what is collective over the parent, and drops the result
  std::ranges::stable_sort(members, {}, [&](int member) { return choices[static_cast<std::size_t>(member)].key; });

  Group group;
  group.id = choices[static_cast<std::size_t>(members.front())].id;
  group.ancestors = parent.ancestors;
  group.ancestors.push_back(parent.id);
  std::vector<int> hosts;
  for (const int member : members) {
    if (member == parent.rank) group.rank = static_cast<int>(group.world_ranks.size());
    group.world_ranks.push_back(parent.world_rank(member));
    hosts.push_back(parent.host(member));
  }
  group.assign_hosts(hosts);
  auto engine = make_engine(engine_->shared_host(), std::move(group), gather, size(), members);
  if (!color) return nullptr;
  return std::make_unique<EngineBackend>(std::move(engine));
}

}  // namespace

std::unique_ptr<Backend> make_world_backend(const Layout& layout, const Gather& gather, const HostOptions& options) {
  Group world;
  world.rank = layout.rank;
  for (int rank = 0; rank < static_cast<int>(layout.host_of.size()); ++rank) world.world_ranks.push_back(rank);
  world.assign_hosts(layout.host_of);
  const int ranks = world.size();
  const std::vector<int> own_ranks = world.world_ranks;
  auto host = std::make_shared<Host>(gather, world, options);
  auto engine = make_engine(host, std::move(world), gather, ranks, own_ranks);
  return std::make_unique<EngineBackend>(std::move(engine));
}

std::unique_ptr<Backend> make_self_backend() {
  const Gather copy = [](const void* mine, std::size_t bytes, void* all) { std::memcpy(all, mine, bytes); };
  return make_world_backend({}, copy);
}

}  // namespace fedrun
