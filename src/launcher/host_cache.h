// Remembers for an hour that hosts have passed the checks, so that the next launch need not ask them again.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

namespace fedrun::launcher {

// A cache is never needed: what it cannot read or write, it does without.
class HostCache {
 public:
  using Time = std::chrono::system_clock::time_point;

  // Empty: nothing is remembered.
  explicit HostCache(std::filesystem::path directory) : directory_(std::move(directory)) {}

  // The network that was chosen when hosts passed under this key; nothing when they did not, or too long ago.
  // The key is any text with everything that the outcome depends on.
  std::optional<std::string> find(const std::string& key, Time now) const;

  // Also removes what is out of date.
  void remember(const std::string& key, const std::string& network, Time now) const;

 private:
  std::filesystem::path file_for(const std::string& key) const;
  void remove_old(Time now) const;

  std::filesystem::path directory_;
};

}  // namespace fedrun::launcher
