#include <fedrun/collectives/mpi_links.h>
#include <fedrun/collectives/mpi_message.h>

#include <array>
#include <chrono>
#include <deque>
#include <exception>
#include <utility>

namespace fedrun {
namespace {

using namespace std::chrono_literals;

// The largest tag that MPI promises Open MPI's users is 2^31 - 1; data has the tags below 2^30.
constexpr int record_tag = 1 << 30;

// Ranks that are in step take what was sent to them; others may never do.
constexpr std::chrono::milliseconds patience_in_step = 10s;
constexpr std::chrono::milliseconds patience_out_of_step = 20ms;

class MpiTransfer final : public Transfer {
 public:
  MpiMessage& message() { return message_; }
  bool done() override { return message_.done(); }
  bool end() override { return message_.end(patience_out_of_step); }

 private:
  MpiMessage message_;
};

// A short message and its memory, which stays for ever if MPI may still touch it.
struct Record {
  std::vector<std::byte> bytes{};
  MpiMessage message{};

  void end(std::chrono::milliseconds patience) {
    if (!message.end(patience)) static_cast<void>(new std::vector<std::byte>(std::move(bytes)));
  }
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
    for (Record& incoming : incoming_) {
      incoming.bytes.resize(longest_record_bytes);
      expect(incoming);
    }
  }

  ~MpiLinks() override {
    if (std::uncaught_exceptions() > exceptions_at_start_) is_in_step_ = false;
    const auto patience = is_in_step_ ? patience_in_step : patience_out_of_step;
    for (Record& incoming : incoming_) incoming.end(patience);
    for (Record& outgoing : outgoing_) outgoing.end(patience);
    // MPI gives a communicator that is freed everywhere to the next group, which what is still on its way would reach.
    if (is_in_step_) MPI_Comm_free(&communicator_);
  }

  void fall_out_of_step() override { is_in_step_ = false; }

  void post(int to, std::vector<std::byte> record) override {
    forget_sent_records();
    Record& outgoing = outgoing_.emplace_back();
    outgoing.bytes = std::move(record);
    outgoing.message.send(outgoing.bytes.data(), outgoing.bytes.size(), to, record_tag, communicator_);
  }

  bool take(std::vector<std::byte>& record) override {
    forget_sent_records();
    Record& incoming = incoming_[next_];  // they are filled in the order in which they were posted
    MPI_Status status;
    if (!incoming.message.done(&status)) return false;
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    record.assign(incoming.bytes.begin(), incoming.bytes.begin() + bytes);
    expect(incoming);
    next_ = (next_ + 1) % incoming_.size();
    return true;
  }

  std::unique_ptr<Transfer> send(int to, int tag, const void* data, std::size_t bytes) override {
    auto transfer = std::make_unique<MpiTransfer>();
    transfer->message().send(data, bytes, to, tag, communicator_);
    return transfer;
  }

  std::unique_ptr<Transfer> receive(int from, int tag, void* data, std::size_t bytes) override {
    auto transfer = std::make_unique<MpiTransfer>();
    transfer->message().receive(data, bytes, from, tag, communicator_);
    return transfer;
  }

 private:
  void expect(Record& incoming) {
    incoming.message.receive(incoming.bytes.data(), incoming.bytes.size(), MPI_ANY_SOURCE, record_tag, communicator_);
  }

  void forget_sent_records() {
    while (!outgoing_.empty() && outgoing_.front().message.done()) outgoing_.pop_front();
  }

  MPI_Comm communicator_ = MPI_COMM_NULL;
  std::array<Record, 8> incoming_;
  std::size_t next_ = 0;
  std::deque<Record> outgoing_;
  bool is_in_step_ = true;
  int exceptions_at_start_ = std::uncaught_exceptions();
};

}  // namespace

std::unique_ptr<Links> make_mpi_links(const Group& group, std::size_t longest_record_bytes) {
  return std::make_unique<MpiLinks>(group, longest_record_bytes);
}

}  // namespace fedrun
