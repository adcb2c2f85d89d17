// What --sync refuses, what counts as the system's own, and how rsync is told about ssh.
#include <fedrun/launcher/sync.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"

namespace fedrun::launcher {
namespace {

using test::usage_error_of;
using testing::HasSubstr;

TEST(Sync, QuotesForRsync) { EXPECT_EQ(rsync_shell({"ssh", "-i", "my key's"}), "'ssh' '-i' 'my key''s'"); }

TEST(Sync, SystemFiles) {
  for (const char* path :
       {"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2", "/usr/lib/liba.so", "/usr/bin/env"})
    EXPECT_TRUE(is_system_file(path)) << path;
  for (const char* path : {"/usr/local/lib/liba.so", "/opt/lib/a.so", "/home/u/lib/a.so", "/library/a.so", "lib/a.so"})
    EXPECT_FALSE(is_system_file(path)) << path;
}

TEST(Sync, RefusesWhatIsNotThere) {
  EXPECT_THAT(usage_error_of([] {
                sync_to_hosts({.paths = {"/no/such/folder"}, .hosts = {{"localhost", 1}}});
              }),
              HasSubstr("--sync: /no/such/folder does not exist"));
  EXPECT_THAT(usage_error_of([] {
                sync_to_hosts({.paths = {""}, .hosts = {{"localhost", 1}}});
              }),
              HasSubstr("--sync: '' does not exist"));
  EXPECT_THAT(usage_error_of([] {
                sync_to_hosts({.paths = {"/usr/.."}, .hosts = {{"localhost", 1}}});
              }),
              HasSubstr("the whole machine"));
}

TEST(Sync, CopiesNothingToThisMachine) {
  std::vector<std::string> said;
  sync_to_hosts({.paths = {"/etc/hostname"},
                 .hosts = {{"localhost", 1}, {"127.0.0.1", 1}},
                 .say = [&](std::string_view text) { said.emplace_back(text); }});
  EXPECT_THAT(said, testing::IsEmpty());
}

}  // namespace
}  // namespace fedrun::launcher
