// The part of an operation that this rank carries out once every rank has arrived at it.
#pragma once

namespace fedrun {

class Run {
 public:
  enum class Progress {
    none,      // nothing could be done without waiting
    some,      // something was done
    finished,  // everything that this host has to do is done, by whomever
  };

  virtual ~Run() = default;

  // Does what can be done without waiting.
  virtual Progress advance() = 0;

 protected:
  static Progress progress(bool is_finished, bool has_changed) {
    return is_finished ? Progress::finished : has_changed ? Progress::some : Progress::none;
  }
};

}  // namespace fedrun
