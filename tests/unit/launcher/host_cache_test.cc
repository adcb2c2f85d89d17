// What is remembered of hosts that passed, for how long, and that a damaged cache is as good as none.
#include <fedrun/launcher/host_cache.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace fedrun::launcher {
namespace {

namespace fs = std::filesystem;
using std::chrono::minutes;

class Cache : public testing::Test {
 protected:
  Cache() {
    std::string name = testing::TempDir() + "fedrun_cache_test_XXXXXX";
    root = mkdtemp(name.data());
  }
  ~Cache() override { fs::remove_all(root); }

  fs::path only_file() const {
    EXPECT_EQ(std::distance(fs::directory_iterator(directory()), fs::directory_iterator()), 1);
    return fs::directory_iterator(directory())->path();
  }
  fs::path directory() const { return root / "a" / "hosts"; }

  fs::path root;
  HostCache::Time now = std::chrono::system_clock::now();
};

TEST_F(Cache, RemembersForAnHour) {
  const HostCache cache(directory());
  EXPECT_EQ(cache.find("a:2,b:2", now), std::nullopt);
  cache.remember("a:2,b:2", "10.0.0.0/24", now);
  EXPECT_EQ(cache.find("a:2,b:2", now), "10.0.0.0/24");
  EXPECT_EQ(cache.find("a:2,b:2", now + minutes(59)), "10.0.0.0/24");
  EXPECT_EQ(cache.find("a:2,b:2", now + minutes(61)), std::nullopt);
  EXPECT_EQ(cache.find("a:2,b:2", now - minutes(5)), std::nullopt);  // the clock was set back
  EXPECT_EQ(cache.find("a:2,b:1", now), std::nullopt);
}

TEST_F(Cache, KeepsKeysApartAndReplacesThem) {
  const HostCache cache(directory());
  cache.remember("one\nkey", "", now);
  cache.remember("two", "eth0", now);
  cache.remember("two", "eth1", now);
  EXPECT_EQ(cache.find("one\nkey", now), "");
  EXPECT_EQ(cache.find("two", now), "eth1");
}

TEST_F(Cache, ForgetsWhatIsOld) {
  const HostCache cache(directory());
  cache.remember("old", "", now - minutes(90));
  cache.remember("new", "", now);
  EXPECT_EQ(cache.find("new", now), "");
  only_file();
}

TEST_F(Cache, ReadsNoDamagedFile) {
  const HostCache cache(directory());
  cache.remember("key", "eth0", now);
  std::ifstream stream(only_file());
  const std::string whole((std::istreambuf_iterator<char>(stream)), {});
  for (size_t length = 0; length < whole.size(); ++length) {
    std::ofstream(only_file(), std::ios::trunc) << whole.substr(0, length);
    EXPECT_EQ(cache.find("key", now), std::nullopt) << length;
  }
  for (const char* text : {"\n\n\n\n", "garbage", "\xff\xff\n1\n2\n3"}) {
    std::ofstream(only_file(), std::ios::trunc) << text;
    EXPECT_EQ(cache.find("key", now), std::nullopt) << text;
  }
  std::string hostile = whole;
  hostile.replace(hostile.find("eth0"), 4, "$(touch x)");
  std::ofstream(only_file(), std::ios::trunc) << hostile;
  EXPECT_EQ(cache.find("key", now), std::nullopt);
  cache.remember("key", "eth0", now);
  EXPECT_EQ(cache.find("key", now), "eth0");
}

TEST_F(Cache, DoesWithoutADirectory) {
  const HostCache none{fs::path()};
  none.remember("key", "eth0", now);
  EXPECT_EQ(none.find("key", now), std::nullopt);
  std::ofstream(root / "file") << "x";
  const HostCache blocked(root / "file" / "hosts");
  blocked.remember("key", "eth0", now);
  EXPECT_EQ(blocked.find("key", now), std::nullopt);
}

}  // namespace
}  // namespace fedrun::launcher
