#include <fedrun/launcher/bench_flags.h>
#include <fedrun/launcher/completion.h>
#include <fedrun/launcher/flag_table.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace fedrun::launcher {
namespace {

// What can be said about a flag's value before it is typed.
enum class ValueKind { none, words, file, directory, host, variable, other };

ValueKind kind_of(const Flag& flag) {
  if (flag.value == nullptr) return ValueKind::none;
  if (!choices_of(flag).empty()) return ValueKind::words;
  const std::string_view value = flag.value;
  if (value == "FILE" || value == "PATH") return ValueKind::file;
  if (value == "DIR") return ValueKind::directory;
  if (value == "NAME[=VALUE]") return ValueKind::variable;
  return all_names(flag)[0] == "-H" ? ValueKind::host : ValueKind::other;
}

std::vector<std::string_view> names_where(bool (*holds)(const Flag& flag)) {
  std::vector<std::string_view> names;
  for (const Flag& flag : flag_table()) {
    if (!holds(flag)) continue;
    const auto of_flag = all_names(flag);
    names.insert(names.end(), of_flag.begin(), of_flag.end());
  }
  return names;
}

// The arguments of compgen that list the flag's values; empty where nothing is known.
std::string bash_source(const Flag& flag) {
  switch (kind_of(flag)) {
    case ValueKind::words:
      return fmt::format("-W '{}'", fmt::join(choices_of(flag), " "));
    case ValueKind::file:
      return "-f";
    case ValueKind::directory:
      return "-d";
    case ValueKind::host:
      return "-A hostname";
    case ValueKind::variable:
      return "-A export";
    case ValueKind::none:
    case ValueKind::other:
      break;
  }
  return "-W ''";
}

std::vector<std::string_view> bench_flag_names() {
  std::vector<std::string_view> names;
  for (const BenchFlag& flag : bench_flags) names.emplace_back(flag.name);
  return names;
}

std::string bash_script() {
  std::vector<std::string_view> shown;
  std::string values;
  for (const Flag& flag : flag_table()) {
    const auto names = shown_names(flag);
    shown.insert(shown.end(), names.begin(), names.end());
    if (flag.value != nullptr) {
      values += fmt::format("    {}) source=({}) ;;\n", fmt::join(all_names(flag), " | "), bash_source(flag));
    }
  }
  const auto with_value = names_where([](const Flag& flag) { return flag.value != nullptr; });
  return fmt::format(
      R"(# bash completion for fedrun, made by: fedrun --completion bash
_fedrun() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} flag= source=() i
  COMPREPLY=()
  # bash takes --bind=core for three words.
  if [[ $word == "=" ]]; then word=; fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case ${{COMP_WORDS[i]}} in
      =) ;;
      {})
        flag=${{COMP_WORDS[i]}}
        if [[ ${{COMP_WORDS[i + 1]}} == "=" ]]; then i=$((i + 1)); fi
        if ((i + 1 < COMP_CWORD)); then flag= i=$((i + 1)); fi
        ;;
      --) flag=-- i=$COMP_CWORD ;;
      -*) ;;
      check | bench) ((i == 1)) || {{ flag=program; break; }} ;;
      *) [[ ${{COMP_WORDS[1]}} == bench ]] || {{ flag=program; break; }} ;;  # bench starts no program
    esac
  done
  case $flag in
    '' | --) source=(-c) ;;
    program) source=(-f) ;;
{}  esac
  if [[ -z $flag && $word == -* ]]; then
    source=(-W '{}')
    if [[ ${{COMP_WORDS[1]}} == bench ]]; then source[1]+=' {}'; fi
  elif [[ -z $flag && $COMP_CWORD == 1 && -n $word ]]; then
    mapfile -t COMPREPLY < <(compgen -W 'check bench' -- "$word")
  fi
  local found
  mapfile -t found < <(compgen "${{source[@]}}" -- "$word")
  COMPREPLY+=("${{found[@]}}")
  case ${{source[0]}} in -f | -d | -c) compopt -o filenames 2> /dev/null ;; esac
}}
complete -F _fedrun fedrun
)",
      fmt::join(with_value, " | "), values, fmt::join(shown, " "), fmt::join(bench_flag_names(), " "));
}

// Inside single quotes, and inside the brackets of a specification.
std::string zsh_text(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\'') {
      escaped += "'\\''";
    } else {
      if (c == '[' || c == ']' || c == ':' || c == '\\') escaped += '\\';
      escaped += c;
    }
  }
  return escaped;
}

std::string zsh_action(const Flag& flag) {
  switch (kind_of(flag)) {
    case ValueKind::words:
      return fmt::format("({})", fmt::join(choices_of(flag), " "));
    case ValueKind::file:
      return "_files";
    case ValueKind::directory:
      return "_files -/";
    case ValueKind::host:
      return "_hosts";
    case ValueKind::variable:
      return "_parameters -g \"*export*\"";
    case ValueKind::none:
    case ValueKind::other:
      break;
  }
  return " ";
}

// One specification per spelling; the spellings exclude each other unless the flag may be repeated.
std::string zsh_specifications(const Flag& flag) {
  std::string text;
  for (const std::string_view name : shown_names(flag)) {
    const std::string exclusion = flag.repeats ? "*" : fmt::format("({})", fmt::join(shown_names(flag), " "));
    const bool joins = flag.value != nullptr && name.starts_with("--");
    text += fmt::format("    '{}{}{}[{}]", exclusion, name, joins ? "=" : "", zsh_text(help_of(flag)));
    if (flag.value != nullptr) text += fmt::format(":{}:{}", zsh_text(flag.value), zsh_action(flag));
    text += "' \\\n";
  }
  return text;
}

std::string zsh_script() {
  std::string specifications;
  for (const Flag& flag : flag_table()) specifications += zsh_specifications(flag);
  return fmt::format(
      R"(#compdef fedrun
# zsh completion for fedrun, made by: fedrun --completion zsh
_fedrun_program() {{
  (( CURRENT > 2 )) || compadd check bench
  _command_names -e
  _files
}}
_fedrun() {{
  # Behind 'check' and 'bench' come the same flags.
  if [[ $words[2] == (check|bench) ]] && (( CURRENT > 2 )); then
    [[ $words[2] != bench || $PREFIX != -* ]] || compadd -- {}
    shift words
    (( CURRENT -= 1 ))
  fi
  _arguments -S \
{}    '(-)1:program:_fedrun_program' \
    '*::arguments:_files'
}}
if [[ $funcstack[1] == _fedrun ]]; then
  _fedrun "$@"
else
  compdef _fedrun fedrun
fi
)",
      fmt::join(bench_flag_names(), " "), specifications);
}

}  // namespace

std::string completion_script(std::string_view shell) { return shell == "zsh" ? zsh_script() : bash_script(); }

}  // namespace fedrun::launcher
