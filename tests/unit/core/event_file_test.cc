// Takes event files apart again, byte by byte, without the code that wrote them.
#include <fedrun/core/crc32c.h>
#include <fedrun/core/event_file.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>
#include <filesystem>
#include <map>
#include <stdexcept>

#include "support/error_text.h"

namespace fedrun {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Pair;
using testing::StartsWith;

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string up;
  for (char byte = 0; byte < 32; ++byte) up += byte;
  EXPECT_EQ(crc32c(up), 0x46dd794eu);
  EXPECT_EQ(crc32c(std::string(up.rbegin(), up.rend())), 0x113fdb5cu);
}

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) number = number << 8 | static_cast<std::uint8_t>(bytes[i]);
  return number;
}

std::string_view take(std::string_view& from, std::size_t count) {
  if (count > from.size()) throw std::runtime_error("the data ends too early");
  const std::string_view taken = from.substr(0, count);
  from.remove_prefix(count);
  return taken;
}

std::uint64_t take_varint(std::string_view& from) {
  std::uint64_t number = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<std::uint8_t>(take(from, 1)[0]);
    number |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return number;
  }
}

// A message's fields, as numbers or as the bytes that they are.
struct Message {
  std::map<std::uint64_t, std::uint64_t> numbers{};
  std::multimap<std::uint64_t, std::string> texts{};

  explicit Message(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::uint64_t key = take_varint(bytes);
      switch (key & 7) {
        case 0:
          numbers[key >> 3] = take_varint(bytes);
          break;
        case 1:
          numbers[key >> 3] = little_endian(take(bytes, 8));
          break;
        case 2:
          texts.emplace(key >> 3, take(bytes, take_varint(bytes)));
          break;
        case 5:
          numbers[key >> 3] = little_endian(take(bytes, 4));
          break;
        default:
          throw std::runtime_error("an unknown way to write a field");
      }
    }
  }
};

void expect_checksum(std::string_view bytes, std::uint64_t found) {
  const std::uint32_t checksum = crc32c(bytes);
  EXPECT_EQ(static_cast<std::uint32_t>(found), ((checksum >> 15) | (checksum << 17)) + 0xa282ead8u);
}

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Message> events_of(const std::filesystem::path& path) {
  const std::string content = content_of(path);
  std::string_view left = content;
  std::vector<Message> events;
  while (!left.empty()) {
    const std::string_view length = take(left, 8);
    expect_checksum(length, little_endian(take(left, 4)));
    const std::string_view data = take(left, little_endian(length));
    expect_checksum(data, little_endian(take(left, 4)));
    events.emplace_back(data);
  }
  return events;
}

std::vector<std::pair<std::string, float>> scalars_of(const Message& event) {
  std::vector<std::pair<std::string, float>> scalars;
  for (const auto& [field, value] : Message(event.texts.find(5)->second).texts) {
    EXPECT_EQ(field, 1u);
    const Message message(value);
    scalars.emplace_back(message.texts.find(1)->second,
                         std::bit_cast<float>(static_cast<std::uint32_t>(message.numbers.at(2))));
  }
  return scalars;
}

class EventFileTest : public testing::Test {
 protected:
  EventFileTest() {
    std::string name = (std::filesystem::temp_directory_path() / "fedrun_events_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a directory like " + name);
    directory_ = name;
  }
  ~EventFileTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  std::filesystem::path directory_;
};

TEST_F(EventFileTest, HoldsWhatWasWritten) {
  const double before = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  EventFile file(directory_, 0);
  file.write(0, {{"Train/Loss", 2.25}, {"Test/Acc", 0.1}});
  file.write(300, {{"Train/Loss", -1.5}});
  const std::vector<Message> events = events_of(file.path());  // while it is still open
  ASSERT_EQ(events.size(), 4u);
  EXPECT_THAT(events[0].texts, ElementsAre(Pair(3, "brain.Event:2")));
  EXPECT_THAT(scalars_of(events[2]), ElementsAre(Pair("Train/Loss", 2.25F), Pair("Test/Acc", 0.1F)));
  EXPECT_EQ(events[2].numbers.at(2), 0u);
  EXPECT_THAT(scalars_of(events[3]), ElementsAre(Pair("Train/Loss", -1.5F)));
  EXPECT_EQ(events[3].numbers.at(2), 300u);
  for (const Message& event : events) {
    const auto wall_time = std::bit_cast<double>(event.numbers.at(1));
    EXPECT_GE(wall_time, before);
    EXPECT_LE(wall_time, before + 600);
  }
}

// The bytes of the first record, but for its time and the checksum over it, as TensorFlow writes them.
TEST_F(EventFileTest, BeginsAsTensorFlowsFilesDo) {
  const EventFile file(directory_, 0);
  const std::string content = content_of(file.path());
  EXPECT_EQ(content.substr(0, 8), std::string("\x18\0\0\0\0\0\0\0", 8)) << "24 bytes";
  EXPECT_EQ(content.substr(8, 4), "\xa3\x7f\x4b\x22") << "the checksum of that length";
  EXPECT_EQ(content[12], '\x09') << "field 1, eight bytes";
  EXPECT_EQ(content.substr(21, 15),
            "\x1a\x0d"
            "brain.Event:2");
}

TEST_F(EventFileTest, ARunThatGoesOnSaysFromWhere) {
  const EventFile first(directory_, 0);
  const EventFile second(directory_, 7);  // in the same second, so that the names have to differ
  EXPECT_NE(first.path(), second.path());
  EXPECT_LT(first.path(), second.path());
  const std::vector<Message> events = events_of(second.path());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].numbers.at(2), 7u);
  EXPECT_EQ(Message(events[1].texts.find(7)->second).numbers.at(1), 1u) << "a start";
}

TEST_F(EventFileTest, IsNamedAsTensorBoardLooksForIt) {
  std::array<char, 256> host{};
  ASSERT_EQ(gethostname(host.data(), host.size() - 1), 0);
  EXPECT_THAT(EventFile(directory_, 0).path().filename().string(),
              AllOf(StartsWith("events.out.tfevents."), EndsWith("." + std::string(host.data()))));
}

TEST_F(EventFileTest, SaysWhereItCannotWrite) {
  EXPECT_THAT(test::usage_error_of([&] { EventFile(directory_ / "none", 0); }),
              AllOf(HasSubstr((directory_ / "none").string()), HasSubstr("No such file or directory")));
}

}  // namespace
}  // namespace fedrun
