// Reads the flags of a benchmark, so that what is wrong with one is said with its name.
#pragma once

#include <fedrun/core/flags.h>
#include <fedrun/core/parse.h>
#include <fedrun/core/run_env.h>
#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fedrun::bench {

class FlagReader {
 public:
  FlagReader(std::string program, const cxxopts::ParseResult& parsed) : program_(std::move(program)), parsed_(parsed) {}

  bool has(const std::string& name) const { return parsed_.count(name) != 0; }
  std::string text(const std::string& name) const { return parsed_[name].as<std::string>(); }

  template <typename Parse>
  auto read(const std::string& name, Parse parse) const {
    return named(name, [&] { return parse(std::string_view(text(name))); });
  }

  template <typename Value>
  Value word(const std::string& name, std::initializer_list<std::pair<std::string_view, Value>> words) const {
    return named(name, [&] { return parse_word<Value>(text(name), words); });
  }

  // Of --device.
  DeviceChoice device() const {
    return word<DeviceChoice>(
        "device", {{"auto", DeviceChoice::automatic}, {"cpu", DeviceChoice::cpu}, {"cuda", DeviceChoice::cuda}});
  }

  // What becomes of each word of a list.
  template <typename Parse>
  auto each(const std::string& name, Parse parse) const {
    std::vector<decltype(parse(std::string_view()))> values;
    for (const std::string& text : parsed_[name].as<std::vector<std::string>>()) {
      values.push_back(named(name, [&] { return parse(text); }));
    }
    return values;
  }

  template <typename Value>
  std::vector<Value> list(const std::string& name,
                          std::initializer_list<std::pair<std::string_view, Value>> words) const {
    return each(name, [&](std::string_view text) { return parse_word<Value>(text, words); });
  }

 private:
  template <typename Read>
  auto named(const std::string& name, Read read) const {
    try {
      return read();
    } catch (const UsageError& problem) {
      throw UsageError(fmt::format("--{}: {}; see {} --help", name, problem.what(), program_));
    }
  }

  std::string program_;
  const cxxopts::ParseResult& parsed_;
};

}  // namespace fedrun::bench
