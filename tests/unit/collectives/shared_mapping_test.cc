#include <fedrun/collectives/peer_memory.h>
#include <fedrun/collectives/shared_mapping.h>
#include <fedrun/core/error.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace fedrun {
namespace {

TEST(SharedMapping, IsSeenByAnotherProcessAndZeroed) {
  FileDescriptor descriptor;
  const SharedMapping mapping = SharedMapping::create(4096, descriptor);
  EXPECT_EQ(mapping.data()[4095], std::byte{0});
  const SegmentHandle handle{::getpid(), descriptor.get(), 4096};
  const pid_t child = ::fork();
  if (child == 0) {
    const SharedMapping theirs = SharedMapping::open(handle);
    theirs.data()[7] = std::byte{42};
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(mapping.data()[7], std::byte{42});
}

TEST(SharedMapping, OutlivesItsDescriptorAndMoves) {
  FileDescriptor descriptor;
  SharedMapping first = SharedMapping::create(100, descriptor);
  descriptor = FileDescriptor();
  first.data()[0] = std::byte{1};
  const SharedMapping second = std::move(first);
  EXPECT_EQ(second.data()[0], std::byte{1});
  EXPECT_EQ(second.bytes(), 100U);
}

TEST(SharedMapping, SaysWhoseMemoryCannotBeOpened) {
  EXPECT_THROW(SharedMapping::open({::getppid(), 9999, 4096}), BackendError);
}

TEST(PeerMemory, CopiesFromAndToAnotherProcess) {
  if (!can_read_peer(::getpid(), &errno, sizeof errno)) GTEST_SKIP() << "this system forbids process_vm_readv";
  std::int32_t here = 5;
  std::int32_t there = 6;
  read_peer(::getpid(), &there, &here, sizeof here);
  EXPECT_EQ(here, 6);
  here = 7;
  write_peer(::getpid(), &there, &here, sizeof here);
  EXPECT_EQ(there, 7);
}

TEST(PeerMemory, NoticesThatTheProcessIsGone) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  std::int32_t value = 0;
  EXPECT_THROW(read_peer(child, &value, &value, sizeof value), PeerLostError);
}

}  // namespace
}  // namespace fedrun
