// What a transport must offer; Communicator checks arguments before it calls, so a backend does only the work.
#pragma once

#include <fedrun/collectives/memory.h>
#include <fedrun/collectives/operation.h>
#include <fedrun/collectives/work.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

namespace fedrun {

// One group of ranks on one transport. Calls come from one thread at a time. Operations without a name come in the same
// order on every rank; named ones may come in any.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Called when the operation has succeeded, before its Work is done, with its position in the order of the group.
  using Then = std::function<void(std::uint64_t position)>;
  virtual std::unique_ptr<Work> start(Operation operation, Then then = {}) = 0;
  virtual void run(Operation operation) = 0;  // start and wait, cheaper

  // Collective: ranks with the same color form a group, ordered by key, then by rank. Without a color: nullptr.
  virtual std::unique_ptr<Backend> split(std::optional<int> color, int key) = 0;
  virtual Memory allocate(std::size_t bytes, Device device) = 0;
  // The index of the GPU, on this host, whose elements this rank brings to the group; none: it uses no GPUs.
  virtual std::optional<int> gpu() const { return std::nullopt; }
};

}  // namespace fedrun
