#include <fedrun/collectives/mpi_call.h>
#include <fedrun/collectives/mpi_links.h>

#include <array>
#include <deque>
#include <exception>

namespace fedrun {
namespace {

// The largest tag that MPI promises Open MPI's users is 2^31 - 1; data has the tags below 2^30.
constexpr int record_tag = 1 << 30;

class MpiTransfer final : public Transfer {
 public:
  MPI_Request* request() { return &request_; }
  bool done() override {
    int complete = 0;
    check_mpi("MPI_Test", MPI_Test(&request_, &complete, MPI_STATUS_IGNORE));
    return complete != 0;
  }

 private:
  MPI_Request request_ = MPI_REQUEST_NULL;
};

class MpiLinks final : public Links {
 public:
  MpiLinks(const Group& group, std::size_t longest_record_bytes) {
    MPI_Group world = MPI_GROUP_NULL;
    MPI_Group members = MPI_GROUP_NULL;
    check_mpi("MPI_Comm_group", MPI_Comm_group(MPI_COMM_WORLD, &world));
    check_mpi("MPI_Group_incl", MPI_Group_incl(world, group.size(), group.world_ranks.data(), &members));
    check_mpi("MPI_Comm_create_group", MPI_Comm_create_group(MPI_COMM_WORLD, members, 0, &communicator_));
    MPI_Group_free(&members);
    MPI_Group_free(&world);
    MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
    for (Incoming& incoming : incoming_) {
      incoming.record.resize(longest_record_bytes);
      expect(incoming);
    }
  }

  ~MpiLinks() override {
    // Freeing waits for the other ranks, which will not come while an exception ends this one.
    if (std::uncaught_exceptions() > exceptions_at_start_) return;
    for (Incoming& incoming : incoming_) {
      MPI_Cancel(&incoming.request);
      MPI_Wait(&incoming.request, MPI_STATUS_IGNORE);
    }
    for (Outgoing& outgoing : outgoing_) MPI_Wait(&outgoing.request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&communicator_);
  }

  void post(int to, std::vector<std::byte> record) override {
    forget_sent_records();
    Outgoing& outgoing = outgoing_.emplace_back();
    outgoing.record = std::move(record);
    check_mpi("MPI_Isend", MPI_Isend(outgoing.record.data(), static_cast<int>(outgoing.record.size()), MPI_BYTE, to,
                                     record_tag, communicator_, &outgoing.request));
  }

  bool take(std::vector<std::byte>& record) override {
    forget_sent_records();
    Incoming& incoming = incoming_[next_];  // they are filled in the order in which they were posted
    int complete = 0;
    MPI_Status status;
    check_mpi("MPI_Test", MPI_Test(&incoming.request, &complete, &status));
    if (complete == 0) return false;
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    record.assign(incoming.record.begin(), incoming.record.begin() + bytes);
    expect(incoming);
    next_ = (next_ + 1) % incoming_.size();
    return true;
  }

  std::unique_ptr<Transfer> send(int to, int tag, const void* data, std::size_t bytes) override {
    auto transfer = std::make_unique<MpiTransfer>();
    check_mpi("MPI_Isend",
              MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, to, tag, communicator_, transfer->request()));
    return transfer;
  }

  std::unique_ptr<Transfer> receive(int from, int tag, void* data, std::size_t bytes) override {
    auto transfer = std::make_unique<MpiTransfer>();
    check_mpi("MPI_Irecv",
              MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, from, tag, communicator_, transfer->request()));
    return transfer;
  }

 private:
  struct Incoming {
    std::vector<std::byte> record;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  struct Outgoing {
    std::vector<std::byte> record;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  void expect(Incoming& incoming) {
    check_mpi("MPI_Irecv", MPI_Irecv(incoming.record.data(), static_cast<int>(incoming.record.size()), MPI_BYTE,
                                     MPI_ANY_SOURCE, record_tag, communicator_, &incoming.request));
  }

  void forget_sent_records() {
    while (!outgoing_.empty()) {
      int complete = 0;
      check_mpi("MPI_Test", MPI_Test(&outgoing_.front().request, &complete, MPI_STATUS_IGNORE));
      if (complete == 0) return;
      outgoing_.pop_front();
    }
  }

  MPI_Comm communicator_ = MPI_COMM_NULL;
  std::array<Incoming, 8> incoming_;
  std::size_t next_ = 0;
  std::deque<Outgoing> outgoing_;
  int exceptions_at_start_ = std::uncaught_exceptions();
};

}  // namespace

std::unique_ptr<Links> make_mpi_links(const Group& group, std::size_t longest_record_bytes) {
  return std::make_unique<MpiLinks>(group, longest_record_bytes);
}

}  // namespace fedrun
