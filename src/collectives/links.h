// Messages between the hosts of one group.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace fedrun {

// A message under way. Its memory must stay until it is done or has ended.
class Transfer {
 public:
  virtual ~Transfer() = default;
  virtual bool done() = 0;  // never blocks
  // Ends it although it may not be done, and waits for the other side only for a moment. False: it goes on all the
  // same, and its memory must stay for as long as the process lives.
  virtual bool end() = 0;
};

// Ranks are those of the group. One thread at a time; nothing blocks.
class Links {
 public:
  virtual ~Links() = default;

  // Operations have been left unfinished: the other ranks may never take what was sent, nor send what is awaited here.
  virtual void fall_out_of_step() {}

  // Records are short, at most as long as the links were made for, and arrive in the order in which one rank posts them
  // to another.
  virtual void post(int to, std::vector<std::byte> record) = 0;
  // The next record that has arrived here; false: none.
  virtual bool take(std::vector<std::byte>& record) = 0;

  // Tags tell apart what is under way between two ranks at the same time; they have 30 bits.
  virtual std::unique_ptr<Transfer> send(int to, int tag, const void* data, std::size_t bytes) = 0;
  virtual std::unique_ptr<Transfer> receive(int from, int tag, void* data, std::size_t bytes) = 0;
};

}  // namespace fedrun
