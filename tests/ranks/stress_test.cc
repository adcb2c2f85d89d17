// Random operations on random groups, in another order on every rank, for two seconds; all results are checked.
// All ranks draw the plan from one seed, so each knows what the others do; --gtest_random_seed repeats it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/rank_test.h"
#include "support/rank_values.h"
#include "support/shared_seed.h"

namespace fedrun {
namespace {

using namespace test;

using Counts = std::vector<std::size_t>;

constexpr auto duration = std::chrono::seconds(2);
constexpr std::size_t most_operations = 40;
constexpr std::size_t most_elements = 30'000;

// Allocated memory, handed out piece by piece and taken back all at once.
class Pool {
 public:
  Pool() : memory_(world().allocate(2 * most_operations * 10 * most_elements * sizeof(std::int32_t))) {}
  std::span<std::int32_t> take(std::size_t count) {
    const std::span<std::int32_t> piece(static_cast<std::int32_t*>(memory_.data()) + used_, count);
    used_ += count;
    return piece;
  }
  void take_back_all() { used_ = rank_index(); }  // at other offsets on every rank

 private:
  Memory memory_;
  std::size_t used_ = 0;
};

// What all ranks know about an operation.
struct Plan {
  Collective kind;
  ReduceOp op;
  std::size_t group;
  std::size_t count;
  int root;
  std::uint32_t allocated_inputs;  // by world rank, one bit: the memory is from the pool
  std::uint32_t allocated_outputs;
};

Plan draw_plan(Random& random, std::size_t groups) {
  constexpr std::array kinds = {Collective::allreduce, Collective::allreduce, Collective::reduce_scatter,
                                Collective::broadcast, Collective::allgather, Collective::gather,
                                Collective::alltoall,  Collective::barrier};
  constexpr std::array<std::size_t, 7> limits = {2, 20, 300, 1'100, 1'100, 5'000, most_elements};
  Plan plan{};
  plan.kind = kinds[random() % kinds.size()];
  plan.op = reduce_ops[random() % reduce_ops.size()];
  plan.group = random() % groups;
  plan.count = random() % limits[random() % limits.size()];
  plan.root = static_cast<int>(random() % 1'000);  // modulo the size of the group
  plan.allocated_inputs = random();
  plan.allocated_outputs = random();
  return plan;
}

// One operation of this rank.
class Trial {
 public:
  Trial(const Plan& plan, Communicator& group, Pool& pool)
      : plan_(plan), group_(group), pool_(pool), root_(plan.root % group.size()) {}

  void start(const std::string& name) {
    const auto own = static_cast<std::size_t>(group_.rank());
    switch (plan_.kind) {
      case Collective::allreduce:
        bring(plan_.count);
        output_ = plan_.count % 2 == 0 ? input_ : memory(plan_.count, own_output_, plan_.allocated_outputs);
        work_ = group_.allreduce_async(as_const_buffer(input_), as_buffer(output_), {.op = plan_.op, .name = name});
        break;
      case Collective::reduce_scatter:
        bring(total(counts()));
        take(counts()[own]);
        work_ = group_.reduce_scatter_async(as_const_buffer(input_), as_buffer(output_), counts(),
                                            {.op = plan_.op, .name = name});
        break;
      case Collective::broadcast:
        bring(plan_.count);
        output_ = input_;
        work_ = group_.broadcast_async(as_buffer(output_), {.root = root_, .name = name});
        break;
      case Collective::allgather:
        bring(counts()[own]);
        take(total(counts()));
        work_ = group_.allgather_async(as_const_buffer(input_), as_buffer(output_), counts(), {.name = name});
        break;
      case Collective::gather:
        bring(counts()[own]);
        take(is_root() ? total(counts()) : 0);
        work_ =
            group_.gather_async(as_const_buffer(input_), as_buffer(output_), counts(), {.root = root_, .name = name});
        break;
      case Collective::alltoall:
        bring(total(sent_by(group_.rank())));
        take(total(received()));
        work_ = group_.alltoall_async(as_const_buffer(input_), sent_by(group_.rank()), as_buffer(output_), received(),
                                      {.name = name});
        break;
      default:
        work_ = group_.barrier_async({.name = name});
    }
  }

  void wait() { work_->wait(); }
  bool done() { return work_->done(); }

  testing::AssertionResult is_right() const {
    const std::span<const std::int32_t> output = output_;
    const auto sum = [&](std::size_t i) { return reduced<std::int32_t>(plan_.op, first_ranks(group_.size()), i); };
    const Counts all = counts();
    switch (plan_.kind) {
      case Collective::allreduce:
        return match(output, sum);
      case Collective::reduce_scatter:
        return match(output, sum, total({all.begin(), all.begin() + group_.rank()}));
      case Collective::broadcast:
        return are_elements_of(root_, output);
      case Collective::allgather:
        return are_parts(output, all);
      case Collective::gather:
        return is_root() ? are_parts(output, all) : testing::AssertionSuccess();
      case Collective::alltoall:
        return are_parts(output, received(), [&](int from) {
          const Counts sent = sent_by(from);
          return total({sent.begin(), sent.begin() + group_.rank()});
        });
      default:
        return testing::AssertionSuccess();
    }
  }

 private:
  bool is_root() const { return group_.rank() == root_; }

  std::span<std::int32_t> memory(std::size_t count, std::vector<std::int32_t>& own, std::uint32_t allocated) {
    if ((allocated >> rank()) % 2 == 1) return pool_.take(count);
    own.resize(count);
    return own;
  }
  void bring(std::size_t count) {
    input_ = memory(count, own_input_, plan_.allocated_inputs);
    for (std::size_t i = 0; i < count; ++i) input_[i] = element<std::int32_t>(group_.rank(), i);
  }
  void take(std::size_t count) { output_ = memory(count, own_output_, plan_.allocated_outputs); }

  // Uneven, and nothing for some.
  Counts counts() const {
    Counts all;
    for (int each = 0; each < group_.size(); ++each) {
      all.push_back((each + plan_.root) % 3 == 0 ? 0 : plan_.count / 2 + static_cast<std::size_t>(each));
    }
    return all;
  }
  Counts sent_by(int from) const {
    Counts all;
    for (int to = 0; to < group_.size(); ++to)
      all.push_back(plan_.count / 4 * static_cast<std::size_t>((2 * from + to) % 4));
    return all;
  }
  Counts received() const {
    Counts all;
    for (int from = 0; from < group_.size(); ++from) {
      all.push_back(sent_by(from)[static_cast<std::size_t>(group_.rank())]);
    }
    return all;
  }

  Plan plan_;
  Communicator& group_;
  Pool& pool_;
  int root_;
  std::vector<std::int32_t> own_input_{};
  std::vector<std::int32_t> own_output_{};
  std::span<std::int32_t> input_{};
  std::span<std::int32_t> output_{};
  std::unique_ptr<Work> work_{};
};

TEST(Stress, RandomOperations) {
  const std::uint32_t seed = shared_seed();
  Random shared(seed);
  Random own(seed + 1 + static_cast<std::uint32_t>(rank()));
  Communicator reversed = world().split({.key = -rank()});
  Communicator pair = world().split({.color = rank() / 2});
  Communicator others = reversed.split({.color = reversed.rank() % 2, .key = rank()});
  const std::vector<Communicator*> groups = {&world(), &reversed, &pair, &others};
  Pool pool;
  std::size_t operations = 0;
  const auto start = std::chrono::steady_clock::now();
  bool goes_on = true;
  for (int round = 0; goes_on; ++round) {
    pool.take_back_all();
    std::vector<std::unique_ptr<Trial>> trials;
    for (std::size_t left = shared() % most_operations + 1; left > 0; --left) {
      const Plan plan = draw_plan(shared, groups.size());
      trials.push_back(std::make_unique<Trial>(plan, *groups[plan.group], pool));
    }
    for (const std::size_t i : shuffled(trials.size(), own)) trials[i]->start(fmt::format("trial {}", i));
    if (shared() % 4 == 0) {
      Communicator& group = *groups[shared() % groups.size()];
      ASSERT_EQ(sum_over(group, 1), group.size());
    }
    for (const std::size_t i : shuffled(trials.size(), own)) {
      if (own() % 4 == 0) {
        while (!trials[i]->done()) {
        }
      }
      trials[i]->wait();
    }
    for (std::size_t i = 0; i < trials.size(); ++i)
      ASSERT_TRUE(trials[i]->is_right()) << "trial " << i << " of round " << round;
    operations += trials.size();
    if (shared() % 8 == 0) world().join();
    goes_on = std::chrono::steady_clock::now() - start < duration;
    world().broadcast(std::span(&goes_on, 1));  // all stop in the same round
  }
  if (rank() == 0) fmt::print("{} operations\n", operations);
}

}  // namespace
}  // namespace fedrun
