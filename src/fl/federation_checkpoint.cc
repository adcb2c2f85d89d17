// Federation::save and resume: what the next rounds depend on is small and explicit, because all that is random in them
// depends on seeds, rounds and clients alone.
#include <fedrun/collectives/hash.h>
#include <fedrun/core/error.h>
#include <fedrun/fl/federation.h>
#include <fedrun/train/agreement.h>
#include <fedrun/train/byte_exchange.h>
#include <fmt/format.h>

#include <span>
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
// there. A run that was killed then still has nothing else, so it stays until there is a new one.
void put_in_place(const fs::path& directory) {
  if (fs::exists(current_of(directory))) {
    fs::remove_all(last_of(directory));
    fs::rename(current_of(directory), last_of(directory));
  }
  fs::rename(next_of(directory), current_of(directory));
  fs::remove_all(last_of(directory));
}

torch::Tensor read_tensor(torch::serialize::InputArchive& archive, const std::string& key) {
  torch::Tensor tensor;
  archive.read(key, tensor);
  return tensor;
}

std::uint64_t hash_of_numbers(const torch::Tensor& tensor) {
  const torch::Tensor here = tensor.cpu().contiguous();
  return hash_of(std::as_bytes(std::span(here.const_data_ptr<float>(), static_cast<std::size_t>(here.numel()))));
}

}  // namespace

void remove_checkpoint(const fs::path& directory) {
  for (const fs::path& path : {current_of(directory), next_of(directory), last_of(directory)}) fs::remove_all(path);
}

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
  const std::string found =
      is_found ? fmt::format("round {}, weights with hash {:x}", round_, hash_of_numbers(global_state())) : "none";
  check_agreement(groups_.world(), "the checkpoints", {found}, "Give --run-dir a directory that all hosts see.");
  return is_found;
}

// What tells a run from others; a checkpoint has it under these keys.
std::vector<std::pair<std::string, std::string>> Federation::traits() const {
  return {
      {"algorithm", std::string(algorithm_->name())},
      {"numbers", fmt::format("{} weights and running statistics", global_state().numel())},
      {"seeds", fmt::format("seeds {} and {}", options_.seed, options_.sampling.seed)},
      {"clients", fmt::format("{} clients whose sizes have the hash {:x}", clients_.clients(), client_sizes_hash_)}};
}

void Federation::check_is_of_this_run(torch::serialize::InputArchive& archive, const fs::path& directory) const {
  for (const auto& [key, ours] : traits()) {
    c10::IValue theirs;
    // Checkpoints of earlier versions do not have all of them.
    if (!archive.try_read(key, theirs) || theirs.toStringRef() == ours) continue;
    throw UsageError(
        fmt::format("{} is of a run with {}, not with {}: give the flags and data of that run, or another directory, "
                    "or leave --resume out to start anew",
                    directory.string(), theirs.toStringRef(), ours));
  }
}

void Federation::write_files(const fs::path& directory) {
  if (groups_.world().rank() == 0) {
    torch::serialize::OutputArchive archive;
    for (const auto& [key, trait] : traits()) archive.write(key, c10::IValue(trait));
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
  check_is_of_this_run(archive, directory);
  c10::IValue round;
  archive.read("round", round);
  averaging_.set_global_state(read_tensor(archive, "state"));
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
