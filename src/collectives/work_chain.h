// Work that is made of steps, of which some start when others have finished.
#pragma once

#include <fedrun/collectives/work.h>
#include <fedrun/core/error.h>

#include <exception>
#include <memory>
#include <utility>
#include <vector>

namespace fedrun {

// A step may add further ones before it is done, which whoever carries it out does; so the chain goes on while this
// rank waits for anything.
class WorkChain final : public Work {
 public:
  // shared: those who add steps may do so after the user has dropped the chain
  using Steps = std::shared_ptr<std::vector<std::shared_ptr<Work>>>;

  explicit WorkChain(Steps steps) : steps_(std::move(steps)) {}

  ~WorkChain() override {
    if (is_handed_over_ || std::uncaught_exceptions() > exceptions_at_start_) return;
    try {
      wait();
    } catch (const Error&) {
      // A destructor cannot report it; whoever cares about the result calls wait().
    }
  }

  bool done() override {
    for (std::size_t i = 0; i < steps_->size(); ++i) {
      if (!(*steps_)[i]->done()) return false;
    }
    return true;
  }

  void wait() override {
    for_each_step([](Work& step) { step.wait(); });
  }

  void wait_in_stream(void* stream) override {
    for_each_step([stream](Work& step) { step.wait_in_stream(stream); });
    is_handed_over_ = true;
  }

 private:
  template <typename Action>
  void for_each_step(Action action) {
    std::exception_ptr first;
    for (std::size_t i = 0; i < steps_->size(); ++i) {
      const std::shared_ptr<Work> step = (*steps_)[i];  // the list may grow meanwhile
      try {
        action(*step);
      } catch (const Error&) {
        if (!first) first = std::current_exception();
      }
    }
    if (first) std::rethrow_exception(first);
  }

  Steps steps_;
  bool is_handed_over_ = false;  // the stream waits, so nobody else has to
  int exceptions_at_start_ = std::uncaught_exceptions();
};

}  // namespace fedrun
