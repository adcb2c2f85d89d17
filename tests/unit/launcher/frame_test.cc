// Frames come out as they went in, however the stream is cut and whatever stands between them.
#include <fedrun/launcher/frame.h>
#include <fedrun/launcher/rank_events.h>
#include <gtest/gtest.h>

namespace fedrun::launcher {
namespace {

struct Read {
  std::vector<Frame> frames;
  std::string text;
};

Read read_in_pieces(std::string_view bytes, size_t piece_bytes) {
  FrameReader reader;
  Read result;
  for (size_t at = 0; at < bytes.size(); at += piece_bytes) {
    for (auto& piece : reader.feed(bytes.substr(at, piece_bytes))) {
      if (auto* frame = std::get_if<Frame>(&piece)) {
        result.frames.push_back(*frame);
      } else {
        result.text += std::get<std::string>(piece);
      }
    }
  }
  result.text += reader.rest();
  return result;
}

TEST(Frame, HasOneSize) {
  EXPECT_EQ(encode_frames({0, FrameKind::output, ""}).size(), frame_bytes);
  EXPECT_EQ(encode_frames({7, FrameKind::errors, std::string(500, 'x')}).size(), frame_bytes);
  EXPECT_EQ(encode_frames({7, FrameKind::errors, std::string(501, 'x')}).size(), 2 * frame_bytes);
}

TEST(Frame, SurvivesAnyCut) {
  const Frame hello = {3, FrameKind::output, "hello\n"};
  const Frame nothing = {65535, FrameKind::joined, ""};
  const std::string all_bytes = [] {
    std::string bytes;
    for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
    return bytes;
  }();
  const Frame binary = {0, FrameKind::errors, all_bytes};
  const std::string stream = "before\n" + encode_frames(hello) + "\x1e between \x1e\x02" + encode_frames(nothing) +
                             encode_frames(binary) + "after";
  for (const size_t piece_bytes : {1, 2, 3, 7, 511, 512, 513, 4096}) {
    const Read result = read_in_pieces(stream, piece_bytes);
    EXPECT_EQ(result.frames, (std::vector<Frame>{hello, nothing, binary})) << piece_bytes;
    EXPECT_EQ(result.text,
              "before\n\x1e between \x1e\x02"
              "after")
        << piece_bytes;
  }
}

TEST(Frame, LongPayloadsComeInOrder) {
  std::string payload;
  for (int i = 0; i < 10000; ++i) payload += static_cast<char>('a' + i % 26);
  std::string together;
  for (const Frame& frame : read_in_pieces(encode_frames({1, FrameKind::output, payload}), 4096).frames) {
    together += frame.payload;
  }
  EXPECT_EQ(together, payload);
}

TEST(Frame, WhatOnlyLooksLikeOneIsText) {
  std::string broken = encode_frames({0, FrameKind::output, "x"});
  broken[8] = '\xff';  // a payload that is longer than a frame
  broken[9] = '\xff';
  const Read result = read_in_pieces(broken, 100);
  EXPECT_TRUE(result.frames.empty());
  EXPECT_EQ(result.text, broken);
}

TEST(RankEvents, RoundTrip) {
  const RankStart start = {"node1.example.org", 4711};
  EXPECT_EQ(parse_rank_start(to_text(start)), start);
  for (const RankEnding& ending :
       {RankEnding{}, RankEnding{.exit_code = 3}, RankEnding{.signal = 9, .out_of_memory = true},
        RankEnding{.exit_code = 126, .told_to_end = true, .problem = "./a b: not allowed"}}) {
    EXPECT_EQ(parse_rank_ending(to_text(ending)), ending);
  }
}

TEST(RankEvents, InWords) {
  EXPECT_EQ(in_words({.exit_code = 3}), "exited with code 3");
  EXPECT_EQ(in_words({.signal = 11}), "was ended by signal 11 (Segmentation fault)");
  EXPECT_EQ(in_words({.exit_code = 126, .problem = "./x: Permission denied"}),
            "could not be started: ./x: Permission denied");
  EXPECT_TRUE(in_words({.signal = 9, .out_of_memory = true}).find("ran out of memory") != std::string::npos);
  EXPECT_EQ((RankEnding{.signal = 9}).code_for_shells(), 137);
}

}  // namespace
}  // namespace fedrun::launcher
