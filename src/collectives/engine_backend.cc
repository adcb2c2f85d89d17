#include <fedrun/collectives/board_records.h>
#include <fedrun/collectives/engine.h>
#include <fedrun/collectives/engine_backend.h>
#include <fedrun/core/error.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <numeric>
#include <utility>

namespace fedrun {
namespace {

class EngineWork final : public Work {
 public:
  EngineWork(std::shared_ptr<Engine> engine, std::shared_ptr<Flight> flight)
      : engine_(std::move(engine)), flight_(std::move(flight)) {}

  ~EngineWork() override {
    if (flight_->finished || is_handed_over_ || std::uncaught_exceptions() > exceptions_at_start_) return;
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

  void wait_in_stream(void* stream) override {
    engine_->wait_in_stream(*flight_, stream);
    is_handed_over_ = flight_->device != nullptr;
  }

 private:
  std::shared_ptr<Engine> engine_;  // shared: a Work may outlive its communicator
  std::shared_ptr<Flight> flight_;  // shared with the engine
  bool is_handed_over_ = false;     // the stream waits, so nobody else has to
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

// The ranks that NCCL shall connect with this one, by their ranks in its group.
std::vector<int> connected_ranks(const Engine& engine) {
  const Group& group = engine.group();
  switch (engine.reach()) {
    case NcclReach::nobody:
      return {};
    case NcclReach::host:
      return group.neighbours();
    case NcclReach::group:
      break;
  }
  std::vector<int> all(static_cast<std::size_t>(group.size()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Of a rank that waits for its GPU. `parent` is the group that this one comes from, or itself. Throws when it makes no
// sense to wait any longer.
void watch(Engine& engine, Engine& parent) {
  engine.host().scheduler.progress();  // ranks of other hosts say it in records
  engine.check_device();
  parent.check_device();
  engine.host().peers.check_alive();
}

// What this rank of a group needs to know while its devices are made. `parent` is the group that it comes from.
DeviceSeat device_seat(Engine& engine, Engine& parent) {
  const std::vector<int> connected = connected_ranks(engine);
  const auto own = std::ranges::find(connected, engine.group().rank);
  return {.rank = static_cast<int>(own - connected.begin()),
          .ranks = static_cast<int>(connected.size()),
          .watch = [&] { watch(engine, parent); },
          .time_limit = engine.host().scheduler.time_limit()};
}

// Collective over the ranks of `gather`. On all ranks it works, or all of them throw.
void add_devices(Engine& engine, const Gather& gather, int gathering_ranks,
                 const std::function<std::shared_ptr<DeviceGroup>()>& make) {
  std::exception_ptr problem;
  try {
    engine.add_devices(make());
  } catch (const Error& error) {
    problem = std::current_exception();
    engine.give_up_device(error.what());
  }
  const auto failures = gather_values(gather, gathering_ranks, static_cast<std::uint8_t>(problem ? 1 : 0));
  if (problem) std::rethrow_exception(problem);
  const auto failed = std::ranges::find(failures, 1);
  if (failed == failures.end()) return;
  const std::string reason =
      fmt::format("rank {} could not set up its GPU; its own error says why", failed - failures.begin());
  engine.give_up_device(reason);
  throw PeerLostError(reason);
}

// Collective over the ranks of `gather`. `first` is the lowest of those that NCCL shall connect, as `gather` knows it;
// none: nobody.
void make_devices(Engine& engine, Engine& parent, const Gather& gather, std::optional<int> first,
                  const std::function<std::shared_ptr<DeviceGroup>()>& find_maker) {
  const int ranks = parent.group().size();
  // Even a rank that fails must tell the others, who wait to hear.
  DeviceGroup::Id id{};
  std::shared_ptr<DeviceGroup> maker;
  std::exception_ptr problem;
  try {
    maker = find_maker();
    if (first == parent.group().rank) id = maker->make_id();
  } catch (const Error&) {
    problem = std::current_exception();
  }
  const auto ids = gather_values(gather, ranks, id);
  add_devices(engine, gather, ranks, [&] {
    if (problem) std::rethrow_exception(problem);
    std::optional<DeviceGroup::Id> their_id;
    if (first) their_id = ids[static_cast<std::size_t>(*first)];
    return maker->make(their_id, device_seat(engine, parent));
  });
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
  std::optional<int> gpu() const override {
    if (engine_->devices() == nullptr) return std::nullopt;
    return engine_->devices()->gpu();
  }

  std::unique_ptr<Work> start(Operation operation, Then then) override {
    return std::make_unique<EngineWork>(engine_, engine_->submit(std::move(operation), std::move(then)));
  }
  void run(Operation operation) override { engine_->run(std::move(operation)); }

  Memory allocate(std::size_t bytes, Device device) override {
    if (device == Device::cuda) return allocate_on_device(bytes);
    return engine_->host().segments.allocate(bytes, engine_->group(), gather_through_engine());
  }

  std::unique_ptr<Backend> split(std::optional<int> color, int key) override;

 private:
  void split_devices(Engine& engine, bool has_color, const std::vector<int>& members);

  Memory allocate_on_device(std::size_t bytes) {
    if (engine_->devices() == nullptr) throw UsageError("allocate: this group uses no GPUs; ask for memory of the CPU");
    std::optional<Memory> memory;
    engine_->or_give_up([&] {
      for (int looks = 0; !engine_->devices()->may_launch(); ++looks) {
        watch(*engine_, *engine_);
        engine_->host().scheduler.pause(looks);
      }
      memory.emplace(engine_->devices()->allocate(bytes));
    });
    return std::move(*memory);
  }

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
    group.gpu_of.push_back(parent.gpu_of[static_cast<std::size_t>(member)]);
  }
  group.assign_hosts(hosts);
  auto engine = make_engine(engine_->shared_host(), std::move(group), gather, size(), members);
  split_devices(*engine, color.has_value(), members);
  if (!color) return nullptr;
  return std::make_unique<EngineBackend>(std::move(engine));
}

// The new engine is its group's; for a rank without a color, one that is dropped afterwards.
void EngineBackend::split_devices(Engine& engine, bool has_color, const std::vector<int>& members) {
  const Gather gather = gather_through_engine();
  struct State {
    bool has_devices;
    bool can_split;
  };
  const std::shared_ptr<DeviceGroup> mine = engine_->devices();
  const bool can_split_here = mine && mine->is_connected() && !engine_->waits_for_device();
  const auto states = gather_values(gather, size(), State{mine != nullptr, can_split_here});
  if (std::ranges::none_of(states, &State::has_devices)) return;
  if (!std::ranges::all_of(states, &State::has_devices)) {
    return engine.give_up_device("those of the group that this one was made from were given up before");
  }
  const std::vector<int> connected = has_color ? connected_ranks(engine) : std::vector<int>();
  std::optional<int> first;
  if (!connected.empty()) first = members[static_cast<std::size_t>(connected.front())];
  if (!std::ranges::all_of(states, &State::can_split)) {
    return make_devices(engine, *engine_, gather, first, [&] { return mine; });
  }
  add_devices(engine, gather, size(), [&] {
    try {
      return mine->split(first, device_seat(engine, *engine_));
    } catch (const Error& error) {
      engine_->give_up_device(error.what());  // it may be left halfway through the split
      throw;
    }
  });
}

}  // namespace

std::unique_ptr<Backend> make_world_backend(const Layout& layout, const Gather& gather, const HostOptions& options) {
  Group world;
  world.rank = layout.rank;
  for (int rank = 0; rank < static_cast<int>(layout.host_of.size()); ++rank) world.world_ranks.push_back(rank);
  world.assign_hosts(layout.host_of);
  world.gpu_of = gather_values(gather, world.size(), options.devices.gpu_id);
  const int ranks = world.size();
  const std::vector<int> own_ranks = world.world_ranks;
  auto host = std::make_shared<Host>(gather, world, options);
  auto engine = make_engine(host, std::move(world), gather, ranks, own_ranks);
  if (options.devices.make_group) {
    const std::vector<int> connected = connected_ranks(*engine);
    const std::optional<int> first = connected.empty() ? std::nullopt : std::optional(connected.front());
    make_devices(*engine, *engine, gather, first, options.devices.make_group);
  }
  return std::make_unique<EngineBackend>(std::move(engine));
}

std::unique_ptr<Backend> make_self_backend(const DeviceOptions& devices) {
  const Gather copy = [](const void* mine, std::size_t bytes, void* all) { std::memcpy(all, mine, bytes); };
  return make_world_backend({}, copy, {.devices = devices});
}

}  // namespace fedrun
