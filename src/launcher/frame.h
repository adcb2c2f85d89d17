// How the process around each rank sends what belongs to that rank through mpirun.
//
// mpirun forwards standard error in pieces of at most 4096 bytes, cut anywhere, between pieces of other ranks and
// messages of its own. Frames of one size that divides 4096, each written whole, are never cut.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace fedrun::launcher {

enum class FrameKind : char {
  output = 'o',   // bytes of the rank's standard output
  errors = 'e',   // bytes of its standard error
  started = 's',  // the program is about to start; see RankStart
  begun = 'b',    // it has begun to connect to the other ranks
  joined = 'j',   // it is connected to all of them
  ended = 'x'     // see RankEnding
};

struct Frame {
  int rank = 0;
  FrameKind kind = FrameKind::output;
  std::string payload;

  bool operator==(const Frame&) const = default;
};

constexpr std::size_t frame_bytes = 512;

// As many frames as the payload takes, but at least one.
std::string encode_frames(const Frame& frame);

// Takes apart what mpirun writes to standard error: frames, and text of mpirun's own between them.
class FrameReader {
 public:
  using Piece = std::variant<Frame, std::string>;

  std::vector<Piece> feed(std::string_view bytes);

  // Text that might have become a frame; for when nothing more comes.
  std::string rest();
  bool holds_text() const { return !buffer_.empty(); }

 private:
  std::optional<Piece> next();

  std::string buffer_;
};

}  // namespace fedrun::launcher
