// What the federation has to know about the clients' data; the rest is between the data and the trainer.
#pragma once

#include <cstddef>

namespace fedrun::fl {

// Every rank has the same clients. Only read, from one thread.
class ClientData {
 public:
  virtual ~ClientData() = default;

  virtual std::size_t clients() const = 0;

  // How many samples the client trains on: its weight in the average, and what its training costs.
  virtual std::size_t train_samples(std::size_t client) const = 0;
};

}  // namespace fedrun::fl
