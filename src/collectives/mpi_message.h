// A message that MPI has begun: it may be looked at, and ended although nobody needs it any more. Included by the
// mpi_*.cc files only.
#pragma once

#include <fedrun/collectives/mpi_call.h>
#include <sched.h>

#include <chrono>

namespace fedrun {

// MPI reads or writes the message's memory until it is done or has ended, whoever has freed that memory meanwhile.
class MpiMessage {
 public:
  MpiMessage() = default;
  MpiMessage(const MpiMessage&) = delete;
  MpiMessage& operator=(const MpiMessage&) = delete;

  void send(const void* data, std::size_t bytes, int to, int tag, MPI_Comm communicator) {
    check_mpi("MPI_Isend", MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, to, tag, communicator, &request_));
  }
  void receive(void* data, std::size_t bytes, int from, int tag, MPI_Comm communicator) {
    check_mpi("MPI_Irecv", MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, from, tag, communicator, &request_));
    is_receive_ = true;
  }

  bool done(MPI_Status* status = MPI_STATUS_IGNORE) {
    int complete = 0;
    check_mpi("MPI_Test", MPI_Test(&request_, &complete, status));
    return complete != 0;
  }

  // False: the other side has begun the message, too, and does not go on with it, or it is one of ours that nobody
  // takes. Then MPI may touch its memory for as long as the process lives.
  bool end(std::chrono::milliseconds patience) {
    using Clock = std::chrono::steady_clock;
    if (request_ == MPI_REQUEST_NULL) return true;
    if (is_receive_) MPI_Cancel(&request_);  // Open MPI cancels no sends
    const auto enough = Clock::now() + patience;
    while (true) {
      int complete = 0;
      if (MPI_Test(&request_, &complete, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
      if (complete != 0) return true;
      if (Clock::now() >= enough) return false;
      ::sched_yield();
    }
  }

 private:
  MPI_Request request_ = MPI_REQUEST_NULL;
  bool is_receive_ = false;
};

}  // namespace fedrun
