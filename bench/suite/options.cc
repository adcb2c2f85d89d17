#include "options.h"

#include <fedrun/core/error.h>
#include <fedrun/core/parse.h>
#include <fedrun/launcher/bench_flags.h>
#include <fedrun/launcher/command_line.h>
#include <fedrun/launcher/flag.h>
#include <fedrun/launcher/split_list.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace fedrun::bench::suite {
namespace {

// Only for the suite itself, so that --help need not explain it.
constexpr std::string_view describe_host_flag = "--describe-host";

constexpr std::array all_models = {"convnet", "mlp", "resnet18", "resnet50"};
constexpr std::size_t quick_models = 2;  // the first ones

// The suite reads what its launches print, and says itself where that goes.
constexpr std::array refused = {"--output-dir", "--timestamps", "--no-prefix", "--verbose",
                                "--debug-rank", "--debug-with", "--timeline",  "--check-build",
                                "--completion", "--man-page",   "--version"};

// Decided by the suite, launch by launch.
constexpr std::array decided = {"-np", "--device", "--threads", "--timeout"};

bool is_one_of(const launcher::Flag& flag, std::span<const char* const> names) {
  return std::ranges::any_of(names, [&](const char* name) { return launcher::find_flag(name) == &flag; });
}

const launcher::BenchFlag* find_own_flag(std::string_view name) {
  const auto found =
      std::ranges::find_if(launcher::bench_flags, [&](const launcher::BenchFlag& flag) { return flag.name == name; });
  return found == launcher::bench_flags.end() ? nullptr : &*found;
}

const launcher::Flag& require_launch_flag(std::string_view name) {
  const launcher::Flag* flag = launcher::find_flag(name);
  if (flag == nullptr) {
    const auto nearest = launcher::nearest_flag(name);
    throw UsageError(
        fmt::format("unknown option '{}'{}", name, nearest ? fmt::format(": did you mean {}?", *nearest) : ""));
  }
  if (is_one_of(*flag, refused)) {
    throw UsageError(fmt::format("{}: the suite has no use for it; what its launches print goes to DIR/logs", name));
  }
  return *flag;
}

Section parse_section(std::string_view text) {
  std::vector<std::string_view> names;
  for (const SectionName& known : section_names) {
    if (known.name == text) return known.section;
    names.push_back(known.name);
  }
  throw UsageError(fmt::format("--only: '{}' is not one of {}", text, fmt::join(names, ", ")));
}

std::vector<std::string> parse_models(std::string_view list) {
  std::vector<std::string> models;
  for (const std::string_view name : launcher::split_list(list, ',')) {
    if (std::ranges::find(all_models, name) == all_models.end()) {
      throw UsageError(fmt::format("--models: '{}' is not one of {}", name, fmt::join(all_models, ", ")));
    }
    models.emplace_back(name);
  }
  return models;
}

void apply_own(std::string_view name, std::string_view value, Options& options) {
  if (name == "--help") options.show_help = true;
  if (name == "--quick") options.quick = true;
  if (name == "--dry-run") options.dry_run = true;
  if (name == "--models") options.models = parse_models(value);
  if (name == "--only") {
    for (const std::string_view word : launcher::split_list(value, ',')) {
      options.sections.push_back(parse_section(word));
    }
  }
  if (name == "--out") {
    if (value.empty()) throw UsageError("--out: where shall the results go?");
    options.out = value;
  }
}

void fill_in(Options& options) {
  if (options.sections.empty()) {
    for (const SectionName& known : section_names) options.sections.push_back(known.section);
  }
  std::ranges::sort(options.sections);
  options.sections.erase(std::ranges::unique(options.sections).begin(), options.sections.end());
  if (options.models.empty()) {
    options.models.assign(all_models.begin(), options.quick ? all_models.begin() + quick_models : all_models.end());
  }
}

}  // namespace

bool Options::wants(Section section) const { return std::ranges::find(sections, section) != sections.end(); }

Options parse_options(const std::vector<std::string>& arguments) {
  Options options;
  std::vector<std::string> all_launch_words;
  for (std::size_t next = 0; next < arguments.size();) {
    const std::string_view word = arguments[next++];
    if (word == describe_host_flag) {
      options.describe_host = true;
      continue;
    }
    if (!word.starts_with('-')) throw UsageError(fmt::format("unexpected argument '{}'", word));
    const std::size_t equals = word.starts_with("--") ? word.find('=') : std::string_view::npos;
    const std::string_view name = word.substr(0, equals);
    const launcher::BenchFlag* own = find_own_flag(name == "-h" ? "--help" : name);
    const launcher::Flag* launch = own == nullptr ? &require_launch_flag(name) : nullptr;
    const bool takes_value = own != nullptr ? own->value != nullptr : launch->value != nullptr;
    std::optional<std::string> value;
    if (equals != std::string_view::npos) value = word.substr(equals + 1);
    if (!takes_value && value) throw UsageError(fmt::format("{} takes no value", name));
    if (takes_value && !value) {
      if (next == arguments.size()) throw UsageError(fmt::format("{} needs a value", name));
      value = arguments[next++];
    }
    if (own != nullptr) {
      apply_own(own->name, value.value_or(""), options);
      continue;
    }
    const bool is_decided = is_one_of(*launch, decided);
    std::vector<std::string> words = {std::string(name)};
    if (value) words.push_back(*value);
    all_launch_words.insert(all_launch_words.end(), words.begin(), words.end());
    if (!is_decided) options.launch_words.insert(options.launch_words.end(), words.begin(), words.end());
  }
  fill_in(options);
  all_launch_words.emplace_back("bench");  // a launch has a program
  options.launch = launcher::parse_options(all_launch_words);
  if (options.launch.timestamps || options.launch.output_directory || options.launch.debug_rank ||
      options.launch.dry_run) {
    throw UsageError(
        "--config: the suite has no use for timestamps, output-dir, debug-rank and dry-run; leave them out");
  }
  return options;
}

std::string help_text() {
  std::string text =
      "Usage: fedrun bench [OPTIONS]\n\n"
      "Measures collectives by size, training throughput, how much of the communication is hidden, batch sizes,\n"
      "precisions, compression, strong and weak scaling, and federated rounds, one after the other, on the ranks, "
      "hosts\n"
      "and devices that the options say. Writes results.json, results.csv and report.html, which opens from disk.\n\n"
      "Examples:\n"
      "  fedrun bench -np 2 --quick --out results\n"
      "  fedrun bench -H a:8,b:8 --device cuda --out results\n"
      "  fedrun bench -np 4 --only collectives,scaling\n\n"
      "Options:\n";
  for (const launcher::BenchFlag& flag : launcher::bench_flags) {
    const std::string left = flag.value ? fmt::format("{} {}", flag.name, flag.value) : flag.name;
    text += fmt::format("  {:<18}{}\n", left, flag.help);
  }
  return text +
         "\nAll options of a launch that say where and how ranks run, such as -np, -H, --hostfile, --device, "
         "--threads, -x\n"
         "and --bind; 'fedrun --help' has them. -np is the largest number of ranks; default: one per slot of the "
         "hosts, or\n"
         "per GPU, or per core, but no more than 8. --device: default cuda where there are GPUs for the ranks, else "
         "cpu.\n"
         "--threads: default on the CPU the cores of a host shared among its ranks, the same for every number of "
         "ranks.\n"
         "--timeout: of each launch; default 900 s.\n\n"
         "Exit code:\n"
         "  0 when everything was measured; 1 when something failed, which the end of the output and the page name;\n"
         "  128 + n after signal n, with what was measured until then; 2 for a wrong command line.\n";
}

}  // namespace fedrun::bench::suite
