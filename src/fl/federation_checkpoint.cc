// Federation::save and resume: what the next rounds depend on is small and explicit, because all that is random in them
// depends on seeds, rounds and clients alone.
#include <fedrun/core/error.h>
#include <fedrun/fl/federation.h>
#include <fedrun/train/byte_exchange.h>
#include <fmt/format.h>

#include <string>

namespace fedrun::fl {
namespace {

namespace fs = std::filesystem;

constexpr const char* global_file = "global.pt";

fs::path current_of(const fs::path& directory) { return directory / "checkpoint"; }
fs::path next_of(const fs::path& directory) { return directory / "checkpoint.next"; }
fs::path last_of(const fs::path& directory) { return directory / "checkpoint.last"; }

// What a rank group remembers of its clients.
std::string memory_file(const char* kind, int group) { return fmt::format("{}.{}.pt", kind, group); }

// A checkpoint is a directory, so putting a new one in place takes two renames; between them only the last one is
// there.
void put_in_place(const fs::path& directory) {
  fs::remove_all(last_of(directory));
  if (fs::exists(current_of(directory))) fs::rename(current_of(directory), last_of(directory));
  fs::rename(next_of(directory), current_of(directory));
  fs::remove_all(last_of(directory));
}

torch::Tensor read_tensor(torch::serialize::InputArchive& archive, const std::string& key) {
  torch::Tensor tensor;
  archive.read(key, tensor);
  return tensor;
}

}  // namespace

void Federation::save(const fs::path& directory) {
  Communicator& world = groups_.world();
  const auto on_rank_0 = [&](const auto& action) {
    run_everywhere(world, "saving a checkpoint", [&] {
      if (world.rank() == 0) action();
    });
  };
  on_rank_0([&] {
    fs::remove_all(next_of(directory));
    fs::create_directories(next_of(directory));
  });
  run_everywhere(world, "saving a checkpoint", [&] { write_files(next_of(directory)); });
  on_rank_0([&] { put_in_place(directory); });
}

bool Federation::resume(const fs::path& directory) {
  bool is_found = false;
  run_everywhere(groups_.world(), "resuming from a checkpoint", [&] {
    const fs::path checkpoint = fs::exists(current_of(directory)) ? current_of(directory) : last_of(directory);
    is_found = fs::exists(checkpoint);
    if (is_found) read_files(checkpoint);
  });
  if (is_found) check_ranks_agree();
  return is_found;
}

void Federation::write_files(const fs::path& directory) {
  if (groups_.world().rank() == 0) {
    torch::serialize::OutputArchive archive;
    archive.write("algorithm", c10::IValue(std::string(algorithm_->name())));
    archive.write("round", c10::IValue(static_cast<std::int64_t>(round_)));
    archive.write("state", global_state());
    for (const auto& [name, tensor] : algorithm_->memory()) {
      if (tensor->defined()) archive.write("memory." + name, *tensor);
    }
    archive.save_to(directory / global_file);
  }
  if (groups_.inner().rank() != 0) return;
  for (const auto& [kind, memory] : averaging_.client_memories()) {
    torch::serialize::OutputArchive archive;
    torch::Tensor clients = torch::empty({static_cast<std::int64_t>(memory->size())}, torch::kInt64);
    std::int64_t count = 0;
    for (const auto& [client, tensor] : *memory) {
      clients[count++] = static_cast<std::int64_t>(client);
      archive.write(fmt::format("client.{}", client), tensor);
    }
    archive.write("clients", clients);
    archive.save_to(directory / memory_file(kind, groups_.group()));
  }
}

void Federation::read_files(const fs::path& directory) {
  const torch::NoGradGuard no_grad;
  torch::serialize::InputArchive archive;
  const torch::Device device = global_state().device();  // whichever it was saved from
  archive.load_from(directory / global_file, device);
  c10::IValue algorithm;
  c10::IValue round;
  archive.read("algorithm", algorithm);
  archive.read("round", round);
  const torch::Tensor state = read_tensor(archive, "state");
  if (algorithm.toStringRef() != algorithm_->name() || state.numel() != global_state().numel()) {
    throw UsageError(fmt::format(
        "{} is of {} with {} numbers, not of {} with {}: give the flags of that run, or another "
        "directory",
        directory.string(), algorithm.toStringRef(), state.numel(), algorithm_->name(), global_state().numel()));
  }
  averaging_.set_global_state(state);
  round_ = static_cast<std::uint64_t>(round.toInt());
  for (const auto& [name, tensor] : algorithm_->memory()) {
    *tensor = torch::Tensor();
    archive.try_read("memory." + name, *tensor);
  }
  for (const auto& [kind, memory] : averaging_.client_memories()) {
    memory->clear();
    // Whichever group wrote it: this run may have another number of groups.
    for (int group = 0; fs::exists(directory / memory_file(kind, group)); ++group) {
      torch::serialize::InputArchive of_clients;
      of_clients.load_from(directory / memory_file(kind, group), device);
      const torch::Tensor clients = read_tensor(of_clients, "clients").cpu();
      for (std::int64_t i = 0; i < clients.numel(); ++i) {
        const auto client = static_cast<std::size_t>(clients[i].item<std::int64_t>());
        if (averaging_.home_of(client) != groups_.group()) continue;
        memory->emplace(client, read_tensor(of_clients, fmt::format("client.{}", client)));
      }
    }
  }
}

}  // namespace fedrun::fl
