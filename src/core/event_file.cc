#include <fcntl.h>
#include <fedrun/core/crc32c.h>
#include <fedrun/core/error.h>
#include <fedrun/core/event_file.h>
#include <fedrun/core/host_name.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <system_error>

namespace fedrun {
namespace {

// A message of protocol buffers is a row of fields: a key, which is the field's number and how its value is written,
// then the value. Those that a file of scalars needs:
//   Event:   1 wall_time (double), 2 step (int64), 3 file_version (text), 5 summary, 7 session_log
//   Summary: 1 value, of which 1 is the tag (text), 2 simple_value (float)
//   SessionLog: 1 status, of which 1 is START
enum class Wire : std::uint64_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

template <typename Number>
void append_little_endian(std::string& to, Number number) {
  for (std::size_t byte = 0; byte < sizeof(Number); ++byte) to += static_cast<char>((number >> (8 * byte)) & 0xff);
}

void append_varint(std::string& to, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) to += static_cast<char>((number & 0x7f) | 0x80);
  to += static_cast<char>(number);
}

void append_key(std::string& to, std::uint64_t field, Wire wire) {
  append_varint(to, field << 3 | static_cast<std::uint64_t>(wire));
}

void append_number(std::string& to, std::uint64_t field, std::uint64_t number) {
  append_key(to, field, Wire::varint);
  append_varint(to, number);
}

void append_double(std::string& to, std::uint64_t field, double number) {
  append_key(to, field, Wire::fixed64);
  append_little_endian(to, std::bit_cast<std::uint64_t>(number));
}

void append_float(std::string& to, std::uint64_t field, float number) {
  append_key(to, field, Wire::fixed32);
  append_little_endian(to, std::bit_cast<std::uint32_t>(number));
}

void append_bytes(std::string& to, std::uint64_t field, std::string_view bytes) {
  append_key(to, field, Wire::bytes);
  append_varint(to, bytes.size());
  to += bytes;
}

std::string event_now() {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  std::string event;
  append_double(event, 1, now.count());
  return event;
}

// Checksums of data that hold checksums would be weak; the format rotates them and adds a constant.
std::uint32_t masked(std::uint32_t checksum) { return std::rotr(checksum, 15) + 0xa282ead8; }

// Made here rather than by ofstream, which cannot refuse a name that is taken.
std::filesystem::path make_file(const std::filesystem::path& directory) {
  using namespace std::chrono;
  const std::string host = host_name();
  for (auto second = duration_cast<seconds>(system_clock::now().time_since_epoch()).count();; ++second) {
    std::filesystem::path path = directory / fmt::format("events.out.tfevents.{}.{}", second, host);
    const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0) {
      close(descriptor);
      return path;
    }
    if (errno != EEXIST) {
      throw UsageError(fmt::format("cannot write {}: {}", path.string(), std::generic_category().message(errno)));
    }
  }
}

}  // namespace

EventFile::EventFile(const std::filesystem::path& directory, std::int64_t first_step)
    : path_(make_file(directory)), file_(path_, std::ios::binary | std::ios::app) {
  std::string version = event_now();
  append_bytes(version, 3, "brain.Event:2");
  append(version);

  std::string log;
  append_number(log, 1, 1);
  std::string start = event_now();
  append_number(start, 2, static_cast<std::uint64_t>(first_step));
  append_bytes(start, 7, log);
  append(start);
}

void EventFile::write(std::int64_t step, const std::vector<EventScalar>& scalars) {
  std::string summary;
  for (const EventScalar& scalar : scalars) {
    std::string value;
    append_bytes(value, 1, scalar.tag);
    append_float(value, 2, static_cast<float>(scalar.value));
    append_bytes(summary, 1, value);
  }
  std::string event = event_now();
  append_number(event, 2, static_cast<std::uint64_t>(step));
  append_bytes(event, 5, summary);
  append(event);
}

// A record: the length of the data, its checksum, the data, its checksum. It is written in one piece, so that a reader
// who looks at the wrong moment sees at most one record cut off.
void EventFile::append(std::string_view event) {
  std::string record;
  append_little_endian(record, std::uint64_t{event.size()});
  append_little_endian(record, masked(crc32c(record)));
  record += event;
  append_little_endian(record, masked(crc32c(event)));
  file_.write(record.data(), static_cast<std::streamsize>(record.size()));
  if (!file_.flush()) throw BackendError(fmt::format("cannot write {}: is the disk full?", path_.string()));
}

}  // namespace fedrun
