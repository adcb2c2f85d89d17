// The streams' threads, and the check that events order what they do.
#include "stand_ins/stand_in_machine.h"

#include <utility>

#include "stand_ins/stand_in_control.h"

namespace stand_in {

Machine& machine() {
  static auto* the_machine = new Machine;
  return *the_machine;
}

Stream* Machine::make_stream() {
  const std::lock_guard lock(mutex);
  auto* made = new Stream{next_index_++};
  streams.insert(made);
  made->worker = std::thread([this, made] { work(*made); });
  return made;
}

Stream* Machine::stream_of(void* handle) {
  if (handle != nullptr) return static_cast<Stream*>(handle);
  if (default_stream_ == nullptr) default_stream_ = make_stream();
  return default_stream_;
}

void Machine::put(Stream& stream, std::function<void()> task) {
  stream.tasks.push_back(std::move(task));
  stream.has_work.notify_one();
}

void Machine::end(Stream& stream) {
  stream.is_ending = true;
  stream.has_work.notify_one();
}

void Machine::wait_for(Stream& stream, std::unique_lock<std::mutex>& lock) {
  changed.wait(lock, [&] { return stream.tasks.empty() && !stream.is_busy; });
}

std::map<const std::byte*, Allocation>::iterator Machine::allocation_of(const void* data) {
  const auto* address = static_cast<const std::byte*>(data);
  auto found = allocations.upper_bound(address);
  if (found == allocations.begin()) return allocations.end();
  --found;
  return address < found->first + found->second.bytes ? found : allocations.end();
}

void Machine::check(Stream& stream, const std::string& what, const Access& access) {
  const auto found = allocation_of(access.data);
  if (found == allocations.end() ||
      static_cast<const std::byte*>(access.data) + access.bytes > found->first + found->second.bytes) {
    return control().report(what + " touches memory that is not the device's");
  }
  const auto first = static_cast<std::size_t>(static_cast<const std::byte*>(access.data) - found->first);
  const AccessHistory::Entry entry{first,        first + access.bytes,          access.is_write,
                                   stream.index, stream.clock.of(stream.index), what};
  AccessHistory& history = found->second.history;
  if (const AccessHistory::Entry* before = history.find_conflict(entry, stream.clock)) {
    control().report(what + " on stream " + std::to_string(stream.index) + (access.is_write ? " writes" : " reads") +
                     " what " + before->what + " on stream " + std::to_string(before->stream) +
                     (before->is_write ? " writes" : " reads") + ", and no event orders them");
  }
  history.add(entry, stream.clock);
}

void Machine::work(Stream& stream) {
  std::unique_lock lock(mutex);
  while (true) {
    stream.has_work.wait(lock, [&] { return !stream.tasks.empty() || stream.is_ending; });
    if (stream.tasks.empty()) break;
    auto task = std::move(stream.tasks.front());
    stream.tasks.pop_front();
    stream.is_busy = true;
    lock.unlock();
    task();
    lock.lock();
    stream.is_busy = false;
    if (stream.tasks.empty()) changed.notify_all();
  }
  streams.erase(&stream);
  stream.worker.detach();
  delete &stream;
}

}  // namespace stand_in
