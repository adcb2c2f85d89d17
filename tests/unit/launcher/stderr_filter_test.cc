// Feeds the filter with what mpirun 4.1 really writes, whole and in every pair of pieces.
#include <fedrun/launcher/stderr_filter.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fedrun::launcher {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

std::string block(const std::string& text) {
  const std::string ruler = std::string(74, '-') + "\n";
  return ruler + text + ruler;
}

const std::string says_nothing = block(
    "Primary job  terminated normally, but 1 process returned\n"
    "a non-zero exit code. Per user-direction, the job has been aborted.\n");
const std::string exited = block(
    "mpirun detected that one or more processes exited with non-zero status, thus causing\n"
    "the job to be terminated. The first process to do so was:\n"
    "\n"
    "  Process name: [[30140,1],1]\n"
    "  Exit code:    4\n");
const std::string killed =
    block("mpirun noticed that process rank 2 with PID 0 on node vm exited on signal 9 (Killed).\n");
const std::string left = block(
    "mpirun has exited due to process rank 1 with PID 0 on\n"
    "node vm exiting improperly. There are three reasons this could occur:\n"
    "\n"
    "1. this process did not call \"init\" before exiting\n");
const std::string aborted = block(
    "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\n"
    "with errorcode 7.\n"
    "\n"
    "NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.\n");
const std::string aborted_elsewhere = block(
    "MPI_ABORT was invoked on rank 1 in communicator MPI COMMUNICATOR 3 DUP FROM 0\n"
    "with errorcode 7.\n");
const std::string no_slots = block(
    "There are not enough slots available in the system to satisfy the 5\n"
    "slots that were requested by the application:\n"
    "\n"
    "  ./hello\n");
const std::string counted =
    "[vm:11638] 2 more processes have sent help message help-mpi-api.txt / mpi-abort\n"
    "[vm:11638] Set MCA parameter \"orte_base_help_aggregate\" to 0 to see all help / error messages\n";
const std::string complaints =
    "[vm:11651] [[16765,0],0] ORTE_ERROR_LOG: Out of resource in file ../../../orte/util/show_help.c at line 501\n"
    "[warn] Epoll MOD(1) on fd 24 failed. Old events were 6: Bad file descriptor\n";

std::string filtered(const std::string& text, MpirunEnding ending, StderrFilter::Options options = {}) {
  StderrFilter filter(options);
  std::string shown = filter.feed(text);
  return shown + filter.finish(ending);
}

TEST(StderrFilter, ByTable) {
  const std::string report_0 = "fedrun: rank 0 on vm: UsageError: no such file\n  looked in here\n  and there\n";
  const std::string report_1 = "fedrun: rank 1 on other: UsageError: no such file\n  looked in here\n  and there\n";
  const std::string report_2 = "fedrun: rank 2 on vm: UsageError: no such file\n  looked in here\n  and there\n";
  const std::string different = "fedrun: rank 3 on vm: BackendError: out of memory\n";
  const std::string stalled = "fedrun: rank 1 on vm: PeerLostError: rank 1 has waited 3 s\n";
  const std::string victim = "fedrun: rank 0 on vm: PeerLostError: rank 2 has ended\n";
  const struct {
    const char* what;
    std::string written;
    int exit_code;
    std::string shown;
  } cases[] = {
      {"nothing", "", 0, ""},
      {"a victim before the cause", victim + report_1, 1, report_1},
      {"a victim after the cause", report_1 + victim, 1, report_1},
      {"victims of a killed rank", victim + says_nothing + killed, 137,
       "fedrun: rank 2 on vm was ended by signal 9 (Killed)\n"},
      {"a victim and nothing else", victim, 1, victim},
      {"a rank that gives up on another", stalled + says_nothing + exited, 4, stalled},
      {"a victim of a rank that exits", victim + says_nothing + exited, 4, "fedrun: rank 1 exited with code 4\n"},
      {"a program's own lines", "one\n\n  two\nthree\n", 0, "one\n\n  two\nthree\n"},
      {"a last line without newline", "one\ntwo", 0, "one\ntwo\n"},
      {"exit code", "hello\n" + says_nothing + exited, 4, "hello\nfedrun: rank 1 exited with code 4\n"},
      {"signal", says_nothing + killed, 137, "fedrun: rank 2 on vm was ended by signal 9 (Killed)\n"},
      {"abort", aborted + counted, 7, "fedrun: rank 1 called MPI_Abort with code 7\n"},
      {"abort on another communicator", aborted_elsewhere, 7, "fedrun: a rank exited with code 7\n"},
      {"mpirun does not say who", says_nothing, 3, "fedrun: a rank exited with code 3\n"},
      {"nor by what", says_nothing, 139,
       "fedrun: a rank exited with code 139, which stands for signal 11 (Segmentation fault)\n"},
      {"silence", "", 255, "fedrun: a rank exited with code 255\n"},
      {"a cause", no_slots, 1, no_slots},
      {"two causes", no_slots + no_slots, 1, no_slots + no_slots},
      {"a cause and an ending", no_slots + exited, 4, no_slots + "fedrun: rank 1 exited with code 4\n"},
      {"complaints beside an explanation", complaints + exited, 4, "fedrun: rank 1 exited with code 4\n"},
      {"complaints alone", complaints, 1, complaints + "fedrun: a rank exited with code 1\n"},
      {"a report", report_0 + aborted, 2, report_0},
      {"the same report", report_0 + report_1 + aborted + counted + complaints, 2,
       report_0 + "fedrun: the same error on rank 1 as on rank 0\n"},
      {"order of ranks", report_2 + report_1 + report_0, 2,
       report_2 + "fedrun: the same error on ranks 0, 1 as on rank 2\n"},
      {"different reports", report_0 + different + report_1, 2,
       report_0 + different + "fedrun: the same error on rank 1 as on rank 0\n"},
      {"a report between other lines", "a\n" + report_0 + "b\n" + report_1 + "c\n", 2,
       "a\n" + report_0 + "b\nc\nfedrun: the same error on rank 1 as on rank 0\n"},
      {"one rank twice", report_0 + report_0, 2, report_0 + report_0},
      {"almost a report", "fedrun: rank x on vm: a\nfedrun: rank 1: b\n", 0,
       "fedrun: rank x on vm: a\nfedrun: rank 1: b\n"},
      {"rulers of the program", std::string(74, '-') + "\ntable\n" + std::string(74, '-') + "\n", 0,
       std::string(74, '-') + "\ntable\n" + std::string(74, '-') + "\n"},
      {"other dashes", "-----\n---\n-\n", 0, "-----\n---\n-\n"},
      {"brackets of the program", "[12:01] epoch 1\n[warn] low\n", 0, "[12:01] epoch 1\n[warn] low\n"},
      {"success keeps complaints", complaints, 0, complaints},
  };
  for (const auto& example : cases) {
    EXPECT_EQ(filtered(example.written, {.exit_code = example.exit_code}), example.shown) << example.what;
    for (size_t cut = 0; cut <= example.written.size(); ++cut) {
      StderrFilter filter({});
      std::string shown = filter.feed(example.written.substr(0, cut));
      shown += filter.feed(example.written.substr(cut));
      shown += filter.finish({.exit_code = example.exit_code});
      ASSERT_EQ(shown, example.shown) << example.what << ", cut at " << cut;
    }
  }
}

TEST(StderrFilter, LeavingWithoutFinalizeIsExplained) {
  EXPECT_THAT(filtered(left, {.exit_code = 1}),
              HasSubstr("fedrun: rank 1 on vm left while the others were still running"));
}

TEST(StderrFilter, NobodyIsBlamedWhenTheUserStopsTheRun) {
  EXPECT_EQ(filtered(says_nothing + killed, {.exit_code = 1, .stopped_by_user = true}), "");
}

TEST(StderrFilter, MpirunItselfMayDie) {
  EXPECT_EQ(filtered("", {.signal = 9}), "fedrun: mpirun was ended by signal 9 (Killed)\n");
}

TEST(StderrFilter, VerboseShowsAllOfMpirun) {
  const std::string text = says_nothing + exited + counted + complaints;
  EXPECT_EQ(filtered(text, {.exit_code = 4}, {.show_mpirun_messages = true}),
            text + "fedrun: rank 1 exited with code 4\n");
}

TEST(StderrFilter, PromptsAndProgressBarsPassAtOnce) {
  StderrFilter filter({});
  EXPECT_EQ(filter.feed("Continue? "), "Continue? ");
  EXPECT_EQ(filter.feed("yes\r10 %\r"), "yes\r10 %\r");
  EXPECT_FALSE(filter.holds_text());
  EXPECT_EQ(filter.feed("20 %\r"), "20 %\r");
  EXPECT_EQ(filter.feed("--"), "--");  // not the beginning of a line, so not of a ruler
  EXPECT_EQ(filter.feed("done\nnext"), "done\nnext");
}

TEST(StderrFilter, WhatMayBecomeAMessageWaitsUntilReleased) {
  for (const std::string start : {"---", "[vm:1", "fedrun: ra", "fedrun: rank 1 on a: UsageError: ba"}) {
    StderrFilter filter({});
    EXPECT_EQ(filter.feed(start), "") << start;
    EXPECT_TRUE(filter.holds_text()) << start;
    EXPECT_EQ(filter.release(), start);
    EXPECT_FALSE(filter.holds_text()) << start;
    EXPECT_EQ(filter.feed(" rest\n"), " rest\n") << start;
  }
}

TEST(StderrFilter, AReportIsShownWhenReleased) {
  StderrFilter filter({});
  EXPECT_EQ(filter.feed("fedrun: rank 1 on a: UsageError: bad\n  more\n"), "");
  EXPECT_EQ(filter.release(), "fedrun: rank 1 on a: UsageError: bad\n  more\n");
  EXPECT_EQ(filter.feed("fedrun: rank 2 on a: UsageError: bad\n  more\nnext\n"), "next\n");
}

TEST(StderrFilter, AnUnfinishedBlockIsShownWhenReleased) {
  StderrFilter filter({});
  const std::string start = exited.substr(0, 200);
  EXPECT_EQ(filter.feed(start), "");
  EXPECT_EQ(filter.release(), start);
}

TEST(StderrFilter, LinesOfAnyLengthPass) {
  for (const std::string start : {"x", "-", "[", "fedrun: rank 1 on a: UsageError: "}) {
    StderrFilter filter({});
    const std::string line = start + std::string(10 << 20, start[0] == '-' ? '-' : 'y') + "\n";
    std::string shown;
    for (size_t at = 0; at < line.size(); at += 4096) shown += filter.feed(std::string_view(line).substr(at, 4096));
    shown += filter.finish({});
    EXPECT_TRUE(shown == line) << start;
  }
}

TEST(StderrFilter, NeverHoldsMoreThanAMessage) {
  StderrFilter filter({});
  std::string shown = filter.feed("fedrun: rank 1 on a: UsageError: bad\n");
  for (int i = 0; i < 10000; ++i) shown += filter.feed("  a line that continues it\n");
  EXPECT_GT(shown.size(), 100000U);
}

}  // namespace
}  // namespace fedrun::launcher
