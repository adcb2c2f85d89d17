// What tests ask of the stand-ins for CUDA and NCCL: to fail, and how many things are alive.
#pragma once

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

namespace stand_in {

// One for both libraries; it lives in the stand-in for CUDA.
class Control {
 public:
  // The nth call of this function from now on fails; "async" is an error that NCCL finds by itself, "stuck kernel" a
  // collective that never ends by itself on this rank, "absent" a communicator that this rank never joins, "slow
  // abort" one that takes its time to end.
  void fail(const std::string& function, int nth) {
    const std::lock_guard lock(mutex_);
    failures_[function] = nth;
  }
  void fail_no_more() {
    const std::lock_guard lock(mutex_);
    failures_.clear();
  }
  // Asked by every function of the libraries.
  bool shall_fail(const char* function) {
    const std::lock_guard lock(mutex_);
    ++calls_[function];
    const auto found = failures_.find(function);
    return found != failures_.end() && --found->second == 0;
  }
  int calls(const std::string& function) {
    const std::lock_guard lock(mutex_);
    return calls_[function];
  }

  // Counts what has been made and not ended: "stream", "event", "memory", "communicator", "operator", "registration".
  void add(const std::string& kind, int amount) {
    const std::lock_guard lock(mutex_);
    live_[kind] += amount;
  }
  int live(const std::string& kind) {
    const std::lock_guard lock(mutex_);
    return live_[kind];
  }
  std::string describe_live() {
    const std::lock_guard lock(mutex_);
    std::string text;
    for (const auto& [kind, count] : live_) {
      if (count != 0) text += std::to_string(count) + " " + kind + (count == 1 ? " " : "s ");
    }
    return text;
  }

  // What no correct program does: an access that no event orders, a call while another is in progress, ….
  void report(const std::string& violation) {
    std::fprintf(stderr, "stand-in: %s\n", violation.c_str());
    violations_.fetch_add(1);
  }
  int violations() const { return violations_.load(); }
  void forgive() { violations_.store(0); }  // for tests that commit some

 private:
  std::mutex mutex_;
  std::map<std::string, int> failures_;
  std::map<std::string, int> calls_;
  std::map<std::string, int> live_;
  std::atomic<int> violations_{0};
};

Control& control();

}  // namespace stand_in
