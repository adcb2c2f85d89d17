#include <fedrun/launcher/frame.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

namespace fedrun::launcher {
namespace {

// No text that people write contains it.
constexpr std::string_view magic =
    "\x1e\x02"
    "fr";

struct Header {
  std::array<char, 4> magic;
  std::int32_t rank;
  std::uint16_t payload_bytes;
  FrameKind kind;
  char reserved;
};
constexpr std::size_t most_payload_bytes = frame_bytes - sizeof(Header);
static_assert(4096 % frame_bytes == 0 && sizeof(Header) == 12);

bool is_kind(FrameKind kind) { return std::strchr("oesbjx", static_cast<char>(kind)) != nullptr; }

std::string encode_one(int rank, FrameKind kind, std::string_view payload) {
  Header header = {{}, rank, static_cast<std::uint16_t>(payload.size()), kind, 0};
  std::copy(magic.begin(), magic.end(), header.magic.begin());
  std::string frame(frame_bytes, '\0');
  std::memcpy(frame.data(), &header, sizeof header);
  std::copy(payload.begin(), payload.end(), frame.begin() + sizeof header);
  return frame;
}

std::optional<Frame> decode_one(std::string_view bytes) {
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.payload_bytes > most_payload_bytes || header.rank < 0 || !is_kind(header.kind)) return std::nullopt;
  return Frame{header.rank, header.kind, std::string(bytes.substr(sizeof header, header.payload_bytes))};
}

}  // namespace

std::string encode_frames(const Frame& frame) {
  std::string frames;
  std::string_view payload = frame.payload;
  do {
    const std::string_view part = payload.substr(0, most_payload_bytes);
    frames += encode_one(frame.rank, frame.kind, part);
    payload.remove_prefix(part.size());
  } while (!payload.empty());
  return frames;
}

std::vector<FrameReader::Piece> FrameReader::feed(std::string_view bytes) {
  buffer_ += bytes;
  std::vector<Piece> pieces;
  while (auto piece = next()) pieces.push_back(std::move(*piece));
  return pieces;
}

std::string FrameReader::rest() { return std::exchange(buffer_, {}); }

std::optional<FrameReader::Piece> FrameReader::next() {
  if (buffer_.empty()) return std::nullopt;
  std::size_t text_bytes = std::min(buffer_.find(magic[0]), buffer_.size());
  if (text_bytes == 0) {
    const std::size_t compared = std::min(buffer_.size(), magic.size());
    if (buffer_.compare(0, compared, magic, 0, compared) == 0) {
      if (buffer_.size() < frame_bytes) return std::nullopt;
      if (auto frame = decode_one(buffer_)) {
        buffer_.erase(0, frame_bytes);
        return std::move(*frame);
      }
    }
    text_bytes = std::min(buffer_.find(magic[0], 1), buffer_.size());  // what looked like a frame is text
  }
  std::string text = buffer_.substr(0, text_bytes);
  buffer_.erase(0, text_bytes);
  return text;
}

}  // namespace fedrun::launcher
