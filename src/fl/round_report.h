// What a round was like.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace fedrun::fl {

// Why a client's work does not count.
enum class Outcome { finished, failed, diverged, late };
std::string_view to_string(Outcome outcome);

struct DroppedClient {
  std::size_t client = 0;
  Outcome reason = Outcome::failed;
};

struct RoundReport {
  std::uint64_t round = 0;
  int attempt = 0;                       // more than 0: it was repeated, and this is about the last time
  std::vector<std::size_t> clients{};    // that were chosen
  std::vector<DroppedClient> dropped{};  // of these
  double samples = 0;                    // that the others trained on
  double local_loss = 0;                 // while training, weighted like the clients
  double train_seconds = 0;              // of this rank
  double communicate_seconds = 0;        // of this rank, waiting for others included

  std::size_t finished() const { return clients.size() - dropped.size(); }
};

}  // namespace fedrun::fl
