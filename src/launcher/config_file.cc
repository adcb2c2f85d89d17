#include <fedrun/core/error.h>
#include <fedrun/core/parse.h>
#include <fedrun/launcher/config_file.h>
#include <fedrun/launcher/refused_flags.h>
#include <fedrun/launcher/text_file.h>
#include <fedrun/launcher/yaml_text.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

namespace fedrun::launcher {
namespace {

// A few lines of aliases can stand for billions of nodes.
constexpr size_t most_items = 10'000;
constexpr size_t most_bytes = size_t{1} << 20;
constexpr int deepest = 8;

// Flattens the nested maps of one file.
class Reader {
 public:
  explicit Reader(std::string_view file) : file_(file) {}

  void read(const YAML::Node& map, const std::string& prefix, int depth) {
    if (depth > deepest) refuse_yaml(file_, map, "this is nested too deeply");
    for (const auto& item : map) {
      const std::string key = prefix + key_text(item.first);
      count(item.first, key.size());
      if (key == "env" && item.second.IsMap()) {
        read_variables(item.first, item.second);
      } else if (item.second.IsMap()) {
        read(item.second, key + "-", depth + 1);
      } else {
        entries_.push_back(
            {key, values_of(key, item.first, item.second), item.second.IsSequence(), line_of(item.first)});
      }
    }
  }

  std::vector<ConfigEntry> take() && { return std::move(entries_); }

 private:
  void count(const YAML::Node& place, size_t bytes) {
    bytes_ += bytes;
    if (++items_ > most_items || bytes_ > most_bytes) refuse_yaml(file_, place, "this file stands for too many values");
  }

  std::string key_text(const YAML::Node& key) {
    if (!key.IsScalar() || key.Scalar().empty()) refuse_yaml(file_, key, "a key must be a word, such as np");
    std::string text = key.Scalar();
    std::replace(text.begin(), text.end(), '_', '-');
    return text;
  }

  std::string scalar(const std::string& key, const YAML::Node& place, const YAML::Node& node) {
    if (node.IsNull()) refuse_yaml(file_, place, fmt::format("{} has no value", key));
    if (!node.IsScalar())
      refuse_yaml(file_, place, fmt::format("{} has a value that is neither text nor a number", key));
    if (node.Scalar().find('\0') != std::string::npos) {
      refuse_yaml(file_, place, fmt::format("{} has a value with a null character", key));
    }
    count(place, node.Scalar().size());
    return node.Scalar();
  }

  std::vector<std::string> values_of(const std::string& key, const YAML::Node& place, const YAML::Node& node) {
    if (!node.IsSequence()) return {scalar(key, place, node)};
    std::vector<std::string> values;
    for (const YAML::Node& item : node) values.push_back(scalar(key, item, item));
    return values;
  }

  // {A: 1, B: } is -x A=1 -x B
  void read_variables(const YAML::Node& place, const YAML::Node& map) {
    ConfigEntry entry{"env", {}, true, line_of(place)};
    for (const auto& item : map) {
      const std::string name = scalar("env", place, item.first);
      if (name.find('=') != std::string::npos)
        refuse_yaml(file_, item.first, fmt::format("env: '{}' is no name", name));
      entry.values.push_back(item.second.IsNull() ? name
                                                  : name + "=" + scalar("env: " + name, item.first, item.second));
    }
    entries_.push_back(std::move(entry));
  }

  std::string_view file_;
  std::vector<ConfigEntry> entries_;
  size_t items_ = 0;
  size_t bytes_ = 0;
};

// What a key of the file is called on the command line: a flag, or one that fedrun refuses.
struct Meaning {
  const Flag* flag = nullptr;
  const RefusedFlag* refused = nullptr;

  explicit operator bool() const { return flag != nullptr || refused != nullptr; }
};

Meaning find_meaning(const std::string& key) {
  for (const std::string& name : {"--" + key, "-" + key}) {
    if (const Meaning meaning{find_flag(name), find_refused_flag(name)}) return meaning;
  }
  return {};
}

// Horovod's files group some flags under names that are no part of theirs.
Meaning find_meaning_in_section(const std::string& key) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> sections = {
      {{"", ""}, {"params-", ""}, {"library-options-", ""}, {"logging-", "log-"}}};
  for (const auto& [section, stands_for] : sections) {
    if (!key.starts_with(section)) continue;
    if (const Meaning meaning = find_meaning(std::string(stands_for) + key.substr(section.size()))) return meaning;
  }
  return {};
}

std::optional<bool> as_bool(const ConfigEntry& entry) {
  if (entry.is_list) return std::nullopt;
  for (const std::string_view yes : {"true", "True", "TRUE", "yes", "on"}) {
    if (entry.values[0] == yes) return true;
  }
  for (const std::string_view no : {"false", "False", "FALSE", "no", "off"}) {
    if (entry.values[0] == no) return false;
  }
  return std::nullopt;
}

// Turns the entries of one file into flags.
class Translator {
 public:
  explicit Translator(std::string_view file) : file_(file) {}

  void translate(const ConfigEntry& entry) {
    entry_ = &entry;
    place_ = fmt::format("{}:{}: {}", file_, entry.line, entry.key);
    if (entry.key == "env") return give_values(*find_flag("-x"), entry);
    constexpr std::string_view enabled = "-enabled";
    if (const Meaning meaning = find_meaning_in_section(entry.key)) {
      give(meaning, entry.key, entry);
    } else if (entry.key.ends_with(enabled)) {  // Horovod's way to write a switch
      const std::string key = entry.key.substr(0, entry.key.size() - enabled.size());
      if (const Meaning without = find_meaning_in_section(key)) return give(without, key, entry);
      refuse_unknown(entry);
    } else {
      refuse_unknown(entry);
    }
  }

  std::vector<GivenFlag> take() && { return std::move(flags_); }

 private:
  [[noreturn]] void refuse_unknown(const ConfigEntry& entry) {
    const auto nearest = nearest_flag(entry.key);
    const std::string_view key = nearest ? nearest->substr(nearest->find_first_not_of('-')) : "";
    throw UsageError(fmt::format("{}:{}: there is no flag '{}'{}", file_, entry.line, entry.key,
                                 nearest ? fmt::format(": did you mean {}?", key) : "; 'fedrun --help' lists them"));
  }

  void give(const Meaning& meaning, const std::string& key, const ConfigEntry& entry) {
    if (meaning.refused != nullptr) {
      if (as_bool(entry) != false) throw UsageError(fmt::format("{}: {}", place_, meaning.refused->reason));
    } else if (meaning.flag->asks) {
      throw UsageError(fmt::format("{}: this belongs on the command line", place_));
    } else if (meaning.flag->value == nullptr) {
      give_switch(*meaning.flag, key, entry);
    } else {
      give_values(*meaning.flag, entry);
    }
  }

  // false is --no-KEY where there is such a flag, and otherwise as if the key were not there.
  void give_switch(const Flag& flag, const std::string& key, const ConfigEntry& entry) {
    const std::optional<bool> is_on = as_bool(entry);
    if (!is_on) throw UsageError(fmt::format("{}: this is true or false", place_));
    const Flag* given = *is_on ? &flag : find_meaning_in_section("no-" + key).flag;
    if (given != nullptr) add(*given, "");
  }

  void give_values(const Flag& flag, const ConfigEntry& entry) {
    if (!entry.is_list) return add(flag, entry.values[0]);
    if (std::string_view(flag.value) == "LIST") return add(flag, fmt::format("{}", fmt::join(entry.values, ",")));
    if (!flag.repeats) throw UsageError(fmt::format("{}: this takes one value, not a list", place_));
    for (const std::string& value : entry.values) add(flag, value);
  }

  void add(const Flag& flag, const std::string& value) {
    const auto [first, is_new] = first_entries_.emplace(&flag, entry_);
    if (!is_new && first->second != entry_) {
      throw UsageError(fmt::format("{}: this is given in line {} already", place_, first->second->line));
    }
    flags_.push_back({&flag, place_, value});
  }

  std::string_view file_;
  const ConfigEntry* entry_ = nullptr;  // at hand
  std::string place_;                   // of that, for messages
  std::map<const Flag*, const ConfigEntry*> first_entries_;
  std::vector<GivenFlag> flags_;
};

}  // namespace

std::vector<ConfigEntry> parse_config(std::string_view text, std::string_view file) {
  const YAML::Node root = parse_yaml(text, file);
  if (root.IsNull()) return {};
  if (!root.IsMap()) refuse_yaml(file, root, "flags are written one per line, such as 'np: 4'");
  Reader reader(file);
  try {
    reader.read(root, "", 1);
  } catch (const YAML::Exception& error) {
    throw UsageError(fmt::format("{}: this is not YAML: {}", file, error.msg));
  }
  return std::move(reader).take();
}

std::vector<GivenFlag> flags_of_config(const std::vector<ConfigEntry>& entries, std::string_view file) {
  Translator translator(file);
  for (const ConfigEntry& entry : entries) translator.translate(entry);
  return std::move(translator).take();
}

std::vector<GivenFlag> read_config(const std::filesystem::path& file) {
  return flags_of_config(parse_config(read_text_file(file, "the config file"), file.string()), file.string());
}

}  // namespace fedrun::launcher
