// How the tests of all ranks are run: only rank 0 tells what it does, but every rank shows its failures.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fedrun::test {

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

inline int run_tests_of(int rank) {
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (rank != 0) {
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailuresOnly(rank));  // GoogleTest deletes it
  }
  return RUN_ALL_TESTS();
}

}  // namespace fedrun::test
