// The four ways in which a run can fail; everything that fedrun throws is one of them.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace fedrun {

// Every message says what is wrong, where, and what to do next.
class Error : public std::runtime_error {
 public:
  // The kind's name, as users see it in front of the message.
  virtual std::string_view kind() const noexcept = 0;

 protected:
  using std::runtime_error::runtime_error;
};

// The caller asked for something that cannot work: a bad flag, a missing file, a wrong argument.
class UsageError final : public Error {
 public:
  explicit UsageError(const std::string& message) : Error(message) {}
  std::string_view kind() const noexcept override { return "UsageError"; }
};

// The ranks disagree about what they are doing together; the message shows both sides.
class MismatchError final : public Error {
 public:
  explicit MismatchError(const std::string& message) : Error(message) {}
  std::string_view kind() const noexcept override { return "MismatchError"; }
};

// Another rank has died or does not answer.
class PeerLostError final : public Error {
 public:
  explicit PeerLostError(const std::string& message) : Error(message) {}
  std::string_view kind() const noexcept override { return "PeerLostError"; }
};

// MPI, NCCL or the operating system refused, or this build lacks what was asked for.
class BackendError final : public Error {
 public:
  explicit BackendError(const std::string& message) : Error(message) {}
  std::string_view kind() const noexcept override { return "BackendError"; }
};

}  // namespace fedrun
