// Sends and receives messages between the ranks of a communicator of the stand-in for NCCL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stand_ins/nccl_communicator.h"

namespace stand_in {

enum Kind : std::uint32_t { all_reduce, reduce, reduce_scatter, broadcast, all_gather, send_receive };
const char* name_of(Kind kind);

// All messages go in any order, but those to or from one rank one after the other.
class Exchange {
 public:
  // `memory` says which of the call's buffers are registered, where that must be the same on all ranks.
  Exchange(ncclComm& communicator, Kind kind, ncclDataType_t type, std::uint32_t memory = 0)
      : communicator_(communicator), kind_(kind), type_(type), memory_(memory) {}
  void send(int peer, std::byte* data, std::size_t bytes) { sends_.push_back({peer, data, bytes}); }
  void receive(int peer, std::byte* data, std::size_t bytes) { receives_.push_back({peer, data, bytes}); }
  bool run();  // false: the communicator was aborted

 private:
  struct Message {
    int peer;
    std::byte* data;
    std::size_t bytes;
    std::size_t done = 0;
    bool has_head = false;
  };

  static bool is_through(const Message& message) { return message.has_head && message.done == message.bytes; }
  bool send_piece(Message& message);
  bool receive_piece(Message& message);

  ncclComm& communicator_;
  Kind kind_;
  ncclDataType_t type_;
  std::uint32_t memory_;
  std::vector<Message> sends_;
  std::vector<Message> receives_;
};

}  // namespace stand_in
