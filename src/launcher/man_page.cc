#include <fedrun/core/run_env.h>
#include <fedrun/core/version.h>
#include <fedrun/launcher/bench_flags.h>
#include <fedrun/launcher/flag_table.h>
#include <fedrun/launcher/man_page.h>
#include <fedrun/launcher/usage.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <vector>

namespace fedrun::launcher {
namespace {

// Text in which roff finds no commands: a dash is a minus to be copied and pasted, and a dot in front no request.
std::string roff(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else if (c == '\'') {
      escaped += "\\(aq";
    } else {
      escaped += c;
    }
  }
  return escaped.starts_with('.') ? "\\&" + escaped : escaped;
}

std::string bold(std::string_view text) { return fmt::format("\\fB{}\\fR", roff(text)); }

std::string flag_entry(const Flag& flag) {
  std::vector<std::string> names;
  for (const std::string_view name : all_names(flag)) names.push_back(bold(name));
  std::string text = fmt::format(".TP\n{}", fmt::join(names, ", "));
  if (flag.value != nullptr) text += fmt::format(" \\fI{}\\fR", roff(flag.value));
  return text + fmt::format("\n{}\n", roff(help_of(flag)));
}

}  // namespace

std::string man_page() {
  std::string text = fmt::format(".TH FEDRUN 1 \"\" \"fedrun {}\" \"User Commands\"\n", version);
  text += ".SH NAME\nfedrun \\- run a program as several ranks, on one machine or on many\n.SH SYNOPSIS\n.nf\n";
  for (const char* synopsis : synopses) text += fmt::format("{}\n", bold(synopsis));
  text += ".fi\n.SH DESCRIPTION\n";
  for (const char* line : description) text += fmt::format("{}\n", roff(line));
  text += ".SH OPTIONS\nFlags may also stand in a YAML file, see " + bold("--config") + ".\n";
  std::string_view group;
  for (const Flag& flag : flag_table()) {
    if (group != flag.group) text += fmt::format(".SS {}\n", roff(group = flag.group));
    text += flag_entry(flag);
  }
  text += ".SS Further options of fedrun bench\n";
  for (const BenchFlag& flag : bench_flags) {
    text += fmt::format(".TP\n{}", bold(flag.name));
    if (flag.value != nullptr) text += fmt::format(" \\fI{}\\fR", roff(flag.value));
    text += fmt::format("\n{}\n", roff(flag.help));
  }
  text += ".SH ENVIRONMENT\nOptions override these variables; they reach every rank.\n";
  for (const RunVariable& variable : run_variables()) {
    text += fmt::format(".TP\n{}\n{} ({}; default: {})\n", bold(variable.name), roff(variable.meaning),
                        roff(variable.values), roff(variable.fallback));
  }
  text += ".SH EXIT STATUS\n";
  for (const char* line : exit_codes) text += fmt::format("{}\n", roff(line));
  text += ".SH EXAMPLES\n";
  for (const auto& [command, meaning] : examples) text += fmt::format(".TP\n{}\n{}\n", bold(command), roff(meaning));
  return text + ".SH SEE ALSO\n" + bold("mpirun") + "(1)\n";
}

}  // namespace fedrun::launcher
