// A rank that dies is noticed by those that wait for it, without any launcher.
#include <fedrun/collectives/communicator.h>
#include <fedrun/collectives/engine_backend.h>
#include <fedrun/core/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

namespace fedrun {
namespace {

// Two ranks tell each other what they have through a socket.
Gather through_socket(int socket, int rank) {
  return [socket, rank](const void* mine, std::size_t bytes, void* all) {
    auto* parts = static_cast<std::byte*>(all);
    std::memcpy(parts + static_cast<std::size_t>(rank) * bytes, mine, bytes);
    ASSERT_EQ(::send(socket, mine, bytes, 0), static_cast<ssize_t>(bytes));
    ASSERT_EQ(::recv(socket, parts + static_cast<std::size_t>(1 - rank) * bytes, bytes, MSG_WAITALL),
              static_cast<ssize_t>(bytes));
  };
}

// What the survivor sees while the other rank dies in the middle of `count` elements.
std::string error_of_survivor(std::size_t count) {
  int sockets[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
  const pid_t other = ::fork();
  const int rank = other == 0 ? 1 : 0;
  Communicator world(make_world_backend({rank, {0, 0}}, through_socket(sockets[rank], rank)));
  world.barrier();
  if (rank == 1) ::raise(SIGKILL);
  std::vector<float> values(count, 1);
  const auto begin = std::chrono::steady_clock::now();
  std::string text = "no error";
  try {
    world.allreduce(values);
  } catch (const PeerLostError& error) {
    text = error.what();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  ::waitpid(other, nullptr, 0);
  return text;
}

TEST(LostPeer, IsNamedWithinTwoSeconds) {
  for (const std::size_t count : {1, 1'000'000}) {
    EXPECT_THAT(error_of_survivor(count), testing::MatchesRegex("rank 1 \\(process [0-9]+\\) has ended .*"));
  }
}

}  // namespace
}  // namespace fedrun
