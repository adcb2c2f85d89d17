// How many operations a broadcast of many tensors takes: the time of small ones is that of their number.
#include <fedrun/collectives/engine_backend.h>
#include <fedrun/train/broadcast.h>
#include <gtest/gtest.h>

namespace fedrun {
namespace {

// A group of one rank that counts what it is asked for.
class CountingBackend final : public Backend {
 public:
  explicit CountingBackend(int& broadcasts) : broadcasts_(broadcasts) {}

  std::string_view name() const override { return inner_->name(); }
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::unique_ptr<Work> start(Operation operation, Then then) override {
    count(operation);
    return inner_->start(std::move(operation), std::move(then));
  }
  void run(Operation operation) override {
    count(operation);
    inner_->run(std::move(operation));
  }
  std::unique_ptr<Backend> split(std::optional<int> color, int key) override { return inner_->split(color, key); }
  Memory allocate(std::size_t bytes, Device device) override { return inner_->allocate(bytes, device); }

 private:
  void count(const Operation& operation) {
    if (operation.kind == Collective::broadcast) ++broadcasts_;
  }

  std::unique_ptr<Backend> inner_ = make_self_backend();
  int& broadcasts_;
};

int broadcasts_for(int tensors, std::int64_t elements) {
  int broadcasts = 0;
  Communicator group(std::make_unique<CountingBackend>(broadcasts));
  NamedTensors list;
  for (int i = 0; i < tensors; ++i) list.emplace_back(std::to_string(i), torch::zeros({elements}));
  broadcast_tensors(group, list);
  return broadcasts;
}

TEST(BroadcastOperations, SmallTensorsTravelTogether) {
  EXPECT_EQ(broadcasts_for(200, 100), 1);
  EXPECT_EQ(broadcasts_for(200, 50'000), 10) << "40 MB in parcels of at least 4 MiB";
}

TEST(BroadcastOperations, LargeTensorsTravelAlone) { EXPECT_EQ(broadcasts_for(3, 100'000), 3); }

TEST(BroadcastOperations, NothingIsSentForNothing) {
  EXPECT_EQ(broadcasts_for(0, 1), 0);
  EXPECT_EQ(broadcasts_for(5, 0), 0);
}

}  // namespace
}  // namespace fedrun
