// Feeds the filter with what mpirun 4.1 really writes, whole and in every pair of pieces.
#include <fedrun/launcher/mpirun_text.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fedrun::launcher {
namespace {

using testing::HasSubstr;

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

TEST(MpirunText, ByTable) {
  const struct {
    const char* what;
    std::string written;
    std::string shown;
    std::string explanation;
  } cases[] = {
      {"nothing", "", "", ""},
      {"other lines", "one\n\n  two\n", "one\n\n  two\n", ""},
      {"a last line without newline", "one\ntwo", "one\ntwo\n", ""},
      {"exit code", "hello\n" + says_nothing + exited, "hello\n", "rank 1 exited with code 4"},
      {"signal", says_nothing + killed, "", "rank 2 on vm was ended by signal 9 (Killed)"},
      {"abort", aborted + counted, "", "rank 1 called MPI_Abort with code 7"},
      {"abort on another communicator", aborted_elsewhere, "", ""},
      {"the first explanation counts", exited + killed, "", "rank 1 exited with code 4"},
      {"a cause", no_slots, no_slots, ""},
      {"two causes", no_slots + no_slots, no_slots + no_slots, ""},
      {"a cause and an ending", no_slots + exited, no_slots, "rank 1 exited with code 4"},
      {"complaints", complaints + exited, "", "rank 1 exited with code 4"},
      {"brackets", "[12:01] epoch 1\n[warn] low\n", "[12:01] epoch 1\n[warn] low\n", ""},
      {"other dashes", "-----\n---\n-\n", "-----\n---\n-\n", ""},
  };
  for (const auto& example : cases) {
    for (size_t cut = 0; cut <= example.written.size(); ++cut) {
      MpirunText text(false);
      std::string shown = text.feed(example.written.substr(0, cut));
      shown += text.feed(example.written.substr(cut));
      shown += text.release();
      ASSERT_EQ(shown, example.shown) << example.what << ", cut at " << cut;
      ASSERT_EQ(text.explanation(), example.explanation) << example.what << ", cut at " << cut;
      EXPECT_FALSE(text.holds_text());
    }
  }
}

TEST(MpirunText, LeavingWithoutFinalizeIsExplained) {
  MpirunText text(false);
  text.feed(left);
  EXPECT_THAT(text.explanation(), HasSubstr("rank 1 on vm left while the others were still running"));
}

TEST(MpirunText, ALostHostIsExplainedBriefly) {
  for (const char* first_line : {"ORTE was unable to reliably start one or more daemons.\n",
                                 "ORTE has lost communication with a remote daemon.\n"}) {
    MpirunText text(false);
    EXPECT_EQ(text.feed(block(std::string(first_line) + "This usually is caused by:\n\n* many things\n")), "");
    EXPECT_THAT(text.explanation(), testing::StartsWith("a host could not be reached, or was lost"));
  }
}

TEST(MpirunText, KeepsComplaintsForLater) {
  MpirunText text(false);
  EXPECT_EQ(text.feed(complaints), "");
  EXPECT_EQ(text.complaints(), complaints);
}

TEST(MpirunText, KnowsThatItShowedACause) {
  MpirunText text(false);
  text.feed(exited);
  EXPECT_FALSE(text.showed_other_block());
  text.feed(no_slots);
  EXPECT_TRUE(text.showed_other_block());
}

TEST(MpirunText, ShowsAllWhenAsked) {
  const std::string all = says_nothing + exited + counted + complaints;
  MpirunText text(true);
  EXPECT_EQ(text.feed(all), all);
  EXPECT_EQ(text.explanation(), "rank 1 exited with code 4");
}

TEST(MpirunText, AnUnfinishedBlockIsShownWhenReleased) {
  MpirunText text(false);
  const std::string start = exited.substr(0, 200);
  EXPECT_EQ(text.feed(start), "");
  EXPECT_TRUE(text.holds_text());
  EXPECT_EQ(text.release(), start + "\n");
}

}  // namespace
}  // namespace fedrun::launcher
