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
    archive.write("state", global_);
    for (const auto& [name, tensor] : algorithm_->memory()) {
      if (tensor->defined()) archive.write("memory." + name, *tensor);
    }
    archive.save_to(directory / global_file);
  }
  if (const auto* memory = algorithm_->client_memory(); memory != nullptr && groups_.inner().rank() == 0) {
    torch::serialize::OutputArchive archive;
    torch::Tensor clients = torch::empty({static_cast<std::int64_t>(memory->size())}, torch::kInt64);
    std::int64_t count = 0;
    for (const auto& [client, tensor] : *memory) {
      clients[count++] = static_cast<std::int64_t>(client);
      archive.write(fmt::format("client.{}", client), tensor);
    }
    archive.write("clients", clients);
    archive.save_to(directory / fmt::format("clients.{}.pt", groups_.group()));
  }
}

void Federation::read_files(const fs::path& directory) {
  const torch::NoGradGuard no_grad;
  torch::serialize::InputArchive archive;
  archive.load_from(directory / global_file);
  c10::IValue algorithm;
  c10::IValue round;
  archive.read("algorithm", algorithm);
  archive.read("round", round);
  const torch::Tensor state = read_tensor(archive, "state");
  if (algorithm.toStringRef() != algorithm_->name() || state.numel() != global_.numel()) {
    throw UsageError(
        fmt::format("{} is of {} with {} numbers, not of {} with {}: give the flags of that run, or another "
                    "directory",
                    directory.string(), algorithm.toStringRef(), state.numel(), algorithm_->name(), global_.numel()));
  }
  global_.copy_(state);
  model_.state().copy_(global_);
  round_ = static_cast<std::uint64_t>(round.toInt());
  for (const auto& [name, tensor] : algorithm_->memory()) {
    *tensor = torch::Tensor();
    archive.try_read("memory." + name, *tensor);
  }
  auto* memory = algorithm_->client_memory();
  if (memory == nullptr) return;
  memory->clear();
  // Whichever group wrote it: this run may have another number of groups.
  for (int group = 0; fs::exists(directory / fmt::format("clients.{}.pt", group)); ++group) {
    torch::serialize::InputArchive of_clients;
    of_clients.load_from(directory / fmt::format("clients.{}.pt", group));
    const torch::Tensor clients = read_tensor(of_clients, "clients");
    for (std::int64_t i = 0; i < clients.numel(); ++i) {
      const auto client = static_cast<std::size_t>(clients[i].item<std::int64_t>());
      if (client % static_cast<std::size_t>(groups_.count()) != static_cast<std::size_t>(groups_.group())) continue;
      memory->emplace(client, read_tensor(of_clients, fmt::format("client.{}", client)));
    }
  }
}

}  // namespace fedrun::fl
