#include <fcntl.h>
#include <fedrun/core/error.h>
#include <fedrun/core/file_descriptor.h>
#include <fedrun/launcher/flag_values.h>
#include <fedrun/launcher/host_cache.h>
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

namespace fedrun::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view first_line = "fedrun: hosts that passed, form 1\n";
constexpr std::chrono::hours life_time{1};

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

std::int64_t seconds(HostCache::Time time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

struct Entry {
  std::int64_t passed_at = 0;  // in seconds
  std::string network;
  std::string key;

  // A clock that was set back must not make it live longer.
  bool is_valid(HostCache::Time now) const {
    const std::int64_t age = seconds(now) - passed_at;
    return age >= 0 && age < std::chrono::seconds(life_time).count();
  }
};

std::string to_text(const Entry& entry) {
  return fmt::format("{}{}\n{}\n{}", first_line, entry.passed_at, entry.network, entry.key);
}

std::optional<std::string> read_whole(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  if (!(text << stream.rdbuf())) return std::nullopt;
  return text.str();
}

// Nothing for a file that is not ours or has been damaged.
std::optional<Entry> read_entry(const fs::path& file) {
  const std::optional<std::string> content = read_whole(file);
  if (!content || !content->starts_with(first_line)) return std::nullopt;
  std::string_view text = *content;
  text.remove_prefix(first_line.size());
  Entry entry;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), entry.passed_at);
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (problem != std::errc() || !text.starts_with('\n')) return std::nullopt;
  text.remove_prefix(1);
  const size_t line_end = text.find('\n');
  if (line_end == std::string_view::npos) return std::nullopt;
  entry.network = text.substr(0, line_end);
  entry.key = text.substr(line_end + 1);
  try {
    if (!entry.network.empty()) network_interfaces_value(entry.network);  // it goes into commands
  } catch (const UsageError&) {
    return std::nullopt;
  }
  return entry;
}

bool write_all(const FileDescriptor& file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(file.get(), text.data(), text.size());
    if (count <= 0) return false;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

// Others see the old file or the new one, never a part.
void replace(const fs::path& file, std::string_view text) {
  std::string unfinished = file.string() + ".XXXXXX";
  const FileDescriptor descriptor(mkostemp(unfinished.data(), O_CLOEXEC));
  if (descriptor.get() < 0) return;
  if (!write_all(descriptor, text) || rename(unfinished.c_str(), file.c_str()) != 0) unlink(unfinished.c_str());
}

}  // namespace

std::optional<std::string> HostCache::find(const std::string& key, Time now) const {
  if (directory_.empty()) return std::nullopt;
  const std::optional<Entry> entry = read_entry(file_for(key));
  if (!entry || entry->key != key || !entry->is_valid(now)) return std::nullopt;
  return entry->network;
}

void HostCache::remember(const std::string& key, const std::string& network, Time now) const {
  if (directory_.empty()) return;
  std::error_code ignored;
  fs::create_directories(directory_, ignored);
  remove_old(now);
  replace(file_for(key), to_text({seconds(now), network, key}));
}

fs::path HostCache::file_for(const std::string& key) const { return directory_ / fmt::format("{:016x}", fnv1a(key)); }

void HostCache::remove_old(Time now) const {
  std::error_code ignored;
  for (fs::directory_iterator file(directory_, ignored), end; file != end; file.increment(ignored)) {
    const std::optional<Entry> entry = read_entry(file->path());
    if (!entry || !entry->is_valid(now)) fs::remove(file->path(), ignored);
  }
}

}  // namespace fedrun::launcher
