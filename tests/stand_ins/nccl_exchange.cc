// Messages go through the mailboxes of the communicator's segment, a piece at a time.
#include "stand_ins/nccl_exchange.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "stand_ins/stand_in_control.h"

namespace stand_in {

namespace {

constexpr int looks_before_sleep = 20;
constexpr unsigned sleep_microseconds = 100;

// Part of a message: which operation of which kind it belongs to, so that ranks that do different things are found out.
struct Head {
  std::uint64_t bytes;
  std::uint32_t kind;
  std::uint32_t type;
  std::uint32_t memory;
};

const char* const kind_names[] = {"ncclAllReduce", "ncclReduce",    "ncclReduceScatter",
                                  "ncclBroadcast", "ncclAllGather", "ncclSend/ncclRecv"};

}  // namespace

const char* name_of(Kind kind) { return kind_names[kind % std::size(kind_names)]; }

bool Exchange::run() {
  for (int idle = 0; !communicator_.is_aborted.load(); ++idle) {
    bool is_done = true;
    bool has_moved = false;
    std::vector<bool> is_busy(most_ranks, false);
    for (Message& message : sends_) {
      if (!is_busy[static_cast<std::size_t>(message.peer)]) has_moved |= send_piece(message);
      is_busy[static_cast<std::size_t>(message.peer)] =
          is_busy[static_cast<std::size_t>(message.peer)] || !is_through(message);
      is_done = is_done && is_through(message);
    }
    is_busy.assign(most_ranks, false);
    for (Message& message : receives_) {
      if (!is_busy[static_cast<std::size_t>(message.peer)]) has_moved |= receive_piece(message);
      is_busy[static_cast<std::size_t>(message.peer)] =
          is_busy[static_cast<std::size_t>(message.peer)] || !is_through(message);
      is_done = is_done && is_through(message);
    }
    if (is_done) return true;
    if (has_moved) idle = 0;
    // With more streams than cores, looking would keep from work those who are waited for.
    idle < looks_before_sleep ? ::sched_yield() : ::usleep(sleep_microseconds);
  }
  return false;
}

bool Exchange::send_piece(Message& message) {
  Mailbox& box = communicator_.segment
                     ->mailboxes[static_cast<std::size_t>(communicator_.rank)][static_cast<std::size_t>(message.peer)];
  if (is_through(message) || box.written.load() != box.read.load()) return false;
  std::size_t used = 0;
  if (!message.has_head) {
    const Head head{message.bytes, kind_, static_cast<std::uint32_t>(type_), memory_};
    std::memcpy(box.data, &head, sizeof head);
    used = sizeof head;
    message.has_head = true;
  }
  const std::size_t piece = std::min(mailbox_bytes - used, message.bytes - message.done);
  if (piece != 0) std::memcpy(box.data + used, message.data + message.done, piece);
  message.done += piece;
  box.bytes = used + piece;
  box.written.fetch_add(1);
  return true;
}

bool Exchange::receive_piece(Message& message) {
  Mailbox& box = communicator_.segment
                     ->mailboxes[static_cast<std::size_t>(message.peer)][static_cast<std::size_t>(communicator_.rank)];
  if (is_through(message) || box.written.load() == box.read.load()) return false;
  std::size_t used = 0;
  if (!message.has_head) {
    Head head;
    std::memcpy(&head, box.data, sizeof head);
    if (head.bytes != message.bytes || head.kind != kind_ || head.type != static_cast<std::uint32_t>(type_)) {
      control().report(std::string("ranks call different things: ") + name_of(kind_) + " of " +
                       std::to_string(message.bytes) + " bytes here, " + name_of(static_cast<Kind>(head.kind)) +
                       " of " + std::to_string(head.bytes) + " on rank " + std::to_string(message.peer));
      communicator_.is_aborted.store(true);
      return false;
    }
    if (head.memory != memory_) {
      control().report(std::string(name_of(kind_)) + ": some ranks bring registered memory, others do not");
    }
    used = sizeof head;
    message.has_head = true;
  }
  const std::size_t piece = box.bytes - used;
  if (piece != 0) std::memcpy(message.data + message.done, box.data + used, piece);
  message.done += piece;
  box.read.fetch_add(1);
  return true;
}

}  // namespace stand_in
