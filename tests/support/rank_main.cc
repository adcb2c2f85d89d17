// Runs GoogleTest on every rank; only rank 0 tells what it does, but every rank shows its failures.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>

#include "support/rank_test.h"

namespace {

std::unique_ptr<fedrun::Process> the_process;

class FailuresOnly : public testing::EmptyTestEventListener {
 public:
  explicit FailuresOnly(int rank) : rank_(rank) {}
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    fmt::print(stderr, "[rank {}] {}:{}: {}\n", rank_, result.file_name() == nullptr ? "?" : result.file_name(),
               result.line_number(), result.message());
  }

 private:
  int rank_;
};

}  // namespace

namespace fedrun::test {
Process& process() { return *the_process; }
}  // namespace fedrun::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  the_process = std::make_unique<fedrun::Process>();
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (the_process->rank() != 0) {
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailuresOnly(the_process->rank()));  // GoogleTest deletes it
  }
  const int result = RUN_ALL_TESTS();
  the_process.reset();
  return result;
}
