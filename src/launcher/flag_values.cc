#include <fedrun/core/error.h>
#include <fedrun/core/parse.h>
#include <fedrun/launcher/flag_values.h>
#include <fedrun/launcher/split_list.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace fedrun::launcher {
namespace {

bool is_address(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) || c == '.'; });
}

bool is_network(std::string_view text) {
  const auto address_and_length = split_list(text, '/');
  const auto numbers = split_list(address_and_length[0], '.');
  if (address_and_length.size() != 2 || numbers.size() != 4) return false;
  try {
    parse_integer(address_and_length[1], 0, 32);
    for (const std::string_view number : numbers) parse_integer(number, 0, 255);
  } catch (const UsageError&) {
    return false;
  }
  return true;
}

void require_network(std::string_view text) {
  if (is_network(text)) return;
  if (is_network(fmt::format("{}/24", text))) {
    throw UsageError(fmt::format("'{}' is an address: add its network's length, such as {}/24", text, text));
  }
  throw UsageError(fmt::format("'{}' is no network such as 10.0.0.0/8", text));
}

void require_interface(std::string_view text) {
  constexpr size_t longest = 15;  // the kernel's limit
  const bool harmless = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) || std::string_view("._-:@").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (text.empty() || text.size() > longest || text[0] == '-' || !harmless) {
    throw UsageError(fmt::format("'{}' is neither an interface such as eth0 nor a network such as 10.0.0.0/8", text));
  }
}

// What splitting has read so far of one word; `begun` tells an empty word in quotes from none.
struct Word {
  std::string text;
  bool begun = false;
};

// Reads up to the closing quote, which `position` is left on.
void read_quoted(std::string_view text, size_t& position, Word& word) {
  const char quote = text[position];
  word.begun = true;
  for (++position; position < text.size() && text[position] != quote; ++position) {
    const bool escapes = quote == '"' && text[position] == '\\' && position + 1 < text.size() &&
                         std::string_view("\"\\$`").find(text[position + 1]) != std::string_view::npos;
    if (escapes) ++position;
    word.text += text[position];
  }
  if (position == text.size()) throw UsageError(fmt::format("the quote {} is not closed in: {}", quote, text));
}

// mpirun must not hear of these behind fedrun's back: its own plan would be wrong.
void require_not_planned_by_fedrun(std::string_view word) {
  constexpr std::array<std::string_view, 3> second_program = {":", "--", "-"};
  if (std::find(second_program.begin(), second_program.end(), word) != second_program.end()) {
    throw UsageError(fmt::format("'{}' would begin a program", word));
  }
  if (!word.starts_with('-')) return;
  const std::string_view name = word.substr(word.starts_with("--") ? 2 : 1);
  constexpr std::array<std::string_view, 5> counts = {"np", "n", "c", "N", "npernode"};
  constexpr std::array<std::string_view, 5> hosts = {"H", "host", "hostfile", "machinefile", "default-hostfile"};
  if (std::find(counts.begin(), counts.end(), name) != counts.end()) {
    throw UsageError(fmt::format("'{}' is for fedrun itself: use its -np", word));
  }
  if (std::find(hosts.begin(), hosts.end(), name) != hosts.end()) {
    throw UsageError(fmt::format("'{}' is for fedrun itself: use its -H or --hostfile", word));
  }
}

void require_harmless_in_a_shell(std::string_view word) {
  const auto found = std::find_if(word.begin(), word.end(), [](unsigned char c) {
    return std::iscntrl(c) || std::string_view("$`;&|<>()'\"\\!").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (found == word.end()) return;
  throw UsageError(fmt::format(
      "'{}' contains {}, which the shells of other hosts would read; to pass such text to the ranks, use -x", word,
      std::iscntrl(static_cast<unsigned char>(*found)) ? "a control character" : fmt::format("'{}'", *found)));
}

}  // namespace

std::string path_value(std::string_view text) {
  if (text.empty()) throw UsageError("an empty text is no path");
  return std::string(text);
}

std::string name_value(std::string_view text) {
  if (text.empty()) throw UsageError("an empty text is no name");
  return std::string(text);
}

std::chrono::seconds seconds_value(std::string_view text, int most) {
  return std::chrono::seconds(parse_integer(text, 1, most));
}

std::string network_interfaces_value(std::string_view text) {
  for (const std::string_view item : split_list(text, ',')) {
    if (item.find('/') != std::string_view::npos || is_address(item)) {
      require_network(item);
    } else {
      require_interface(item);
    }
  }
  return std::string(text);
}

std::string log_level_value(std::string_view text) {
  std::string level(text);
  std::transform(level.begin(), level.end(), level.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (level == "trace") return "debug";
  if (level == "warning") return "warn";
  if (level == "fatal") return "error";
  return level;
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  Word word;
  const auto finish_word = [&] {
    if (word.begun) words.push_back(std::move(word.text));
    word = {};
  };
  for (size_t position = 0; position < text.size(); ++position) {
    const char c = text[position];
    if (c == ' ' || c == '\t' || c == '\n') {
      finish_word();
    } else if (c == '\'' || c == '"') {
      read_quoted(text, position, word);
    } else {
      if (c == '\\' && ++position == text.size()) {
        throw UsageError(fmt::format("there is nothing behind the backslash at the end of: {}", text));
      }
      word.text += text[position];
      word.begun = true;
    }
  }
  finish_word();
  return words;
}

void append_mpi_arguments(std::vector<std::string>& arguments, std::string_view text) {
  std::vector<std::string> words = split_words(text);
  if (words.empty()) throw UsageError("there are no arguments in it");
  if (!words[0].starts_with('-')) {
    throw UsageError(fmt::format("'{}' is no option of mpirun, which would take it for the program", words[0]));
  }
  for (const std::string& word : words) {
    require_not_planned_by_fedrun(word);
    require_harmless_in_a_shell(word);
  }
  arguments.insert(arguments.end(), words.begin(), words.end());
}

}  // namespace fedrun::launcher
