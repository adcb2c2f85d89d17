// Messages between hosts that are only threads of one process.
#pragma once

#include <fedrun/collectives/group.h>
#include <fedrun/collectives/links.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

namespace fedrun::test {

// What is on its way between all ranks, in all groups. Any thread.
class ThreadNetwork {
 public:
  using Bytes = std::vector<std::byte>;
  using Inbox = std::pair<std::uint64_t, int>;             // the group's id, and the rank in it
  using Route = std::tuple<std::uint64_t, int, int, int>;  // the group's id, from, to, tag

  void post(const Inbox& inbox, Bytes record) {
    const std::scoped_lock lock(mutex_);
    records_[inbox].push_back(std::move(record));
  }
  bool take(const Inbox& inbox, Bytes& record) {
    const std::scoped_lock lock(mutex_);
    std::deque<Bytes>& records = records_[inbox];
    if (records.empty()) return false;
    record = std::move(records.front());
    records.pop_front();
    return true;
  }

  // The first message goes to whoever was first to expect one there, and so on, as MPI promises.
  void send(const Route& route, Bytes message) {
    const std::scoped_lock lock(mutex_);
    Stream& stream = streams_[route];
    stream.messages[stream.sent++] = std::move(message);
  }
  std::uint64_t expect(const Route& route) {
    const std::scoped_lock lock(mutex_);
    return streams_[route].expected++;
  }
  bool receive(const Route& route, std::uint64_t number, void* data) {
    const std::scoped_lock lock(mutex_);
    auto& messages = streams_[route].messages;
    const auto message = messages.find(number);
    if (message == messages.end()) return false;
    if (!message->second.empty()) std::memcpy(data, message->second.data(), message->second.size());
    messages.erase(message);
    return true;
  }

 private:
  struct Stream {
    std::uint64_t sent = 0;
    std::uint64_t expected = 0;
    std::map<std::uint64_t, Bytes> messages{};
  };

  std::mutex mutex_;
  std::map<Inbox, std::deque<Bytes>> records_;
  std::map<Route, Stream> streams_;
};

class ThreadLinks final : public Links {
 public:
  ThreadLinks(ThreadNetwork& network, const Group& group) : network_(network), group_id_(group.id), rank_(group.rank) {}

  void post(int to, std::vector<std::byte> record) override { network_.post({group_id_, to}, std::move(record)); }
  bool take(std::vector<std::byte>& record) override { return network_.take({group_id_, rank_}, record); }

  std::unique_ptr<Transfer> send(int to, int tag, const void* data, std::size_t bytes) override {
    const auto* first = static_cast<const std::byte*>(data);
    network_.send({group_id_, rank_, to, tag}, {first, first + bytes});
    return std::make_unique<Sent>();
  }
  std::unique_ptr<Transfer> receive(int from, int tag, void* data, std::size_t) override {
    return std::make_unique<Expected>(network_, ThreadNetwork::Route{group_id_, from, rank_, tag}, data);
  }

 private:
  struct Sent final : Transfer {
    bool done() override { return true; }
    bool end() override { return true; }
  };
  class Expected final : public Transfer {
   public:
    Expected(ThreadNetwork& network, const ThreadNetwork::Route& route, void* data)
        : network_(network), route_(route), number_(network.expect(route)), data_(data) {}
    bool done() override { return is_done_ = is_done_ || network_.receive(route_, number_, data_); }
    bool end() override { return true; }  // memory is written by done() only

   private:
    ThreadNetwork& network_;
    ThreadNetwork::Route route_;
    std::uint64_t number_;
    void* data_;
    bool is_done_ = false;
  };

  ThreadNetwork& network_;
  std::uint64_t group_id_;
  int rank_;
};

}  // namespace fedrun::test
