// Config files by table: which flags they stand for, who wins, and that every error names file and line.
#include <fedrun/launcher/config_file.h>
#include <fedrun/launcher/options.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/error_text.h"

namespace fedrun::launcher {
namespace {

using test::usage_error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::StartsWith;
using Words = std::vector<std::string>;

std::vector<GivenFlag> flags_of(std::string_view text) {
  return flags_of_config(parse_config(text, "run.yaml"), "run.yaml");
}

// The flags as one would type them.
Words typed(std::string_view text) {
  Words words;
  for (const GivenFlag& given : flags_of(text)) {
    words.emplace_back(all_names(*given.flag)[0]);
    if (given.flag->value != nullptr) words.push_back(given.value);
  }
  return words;
}

TEST(ConfigFile, ByTable) {
  const struct {
    const char* text;
    Words words;
  } cases[] = {
      {"", {}},
      {"# nothing\n", {}},
      {"---\n", {}},
      {"{}", {}},
      {"np: 4", {"-np", "4"}},
      {"num-proc: 4", {"-np", "4"}},
      {"num_proc: '4'", {"-np", "4"}},
      {"H: a:2,b", {"-H", "a:2,b"}},
      {"hosts: [a:2, b]", {"-H", "a:2,b"}},
      {"hosts:\n  - a:2\n  - b:3\n", {"-H", "a:2,b:3"}},
      {"network-interfaces: [eth0, 10.0.0.0/8]", {"--network-interfaces", "eth0,10.0.0.0/8"}},
      {"verbose: true", {"--verbose"}},
      {"verbose: yes", {"--verbose"}},
      {"verbose: false", {}},
      {"verbose: off", {}},
      {"no_prefix: true", {"--no-prefix"}},
      {"prefix-output-with-timestamp: true", {"--timestamps"}},
      {"sync: a b", {"--sync", "a b"}},
      {"sync: [a, b]", {"--sync", "a", "--sync", "b"}},
      {"timeline: t.json", {"--timeline", "t.json"}},
      {"timeline: {filename: t.json}", {"--timeline", "t.json"}},
      {"stall-check: {warning-time-seconds: 5, shutdown_time_seconds: 9}", {"--stall-warn", "5", "--stall-abort", "9"}},
      {"stall_check:\n  enabled: false\n", {"--no-stall-check"}},
      {"stall_check:\n  enabled: true\n", {"--stall-check"}},
      {"stall-check: false", {"--no-stall-check"}},
      {"logging: {level: INFO}", {"--log-level", "INFO"}},
      {"log-level: info", {"--log-level", "info"}},
      {"params: {hierarchical-allreduce: false}\nautotune: {enabled: false}", {}},
      {"library-options: {mpi-args: '--mca a b'}", {"--mpi-args", "--mca a b"}},
      {"env: {A: 1, b_c: 'x; y', D: , E: ''}", {"-x", "A=1", "-x", "b_c=x; y", "-x", "D", "-x", "E="}},
      {"env: [A, B=1]", {"-x", "A", "-x", "B=1"}},
      {"x: A=1", {"-x", "A=1"}},
      {"np: &n 4\nthreads: *n\n", {"-np", "4", "--threads", "4"}},
  };
  for (const auto& example : cases) {
    EXPECT_EQ(typed(example.text), example.words) << example.text;
  }
}

TEST(ConfigFile, ErrorsNameFileLineAndKey) {
  const struct {
    std::string text;
    const char* message;
  } cases[] = {
      {"np: 4\nthread: 2\n", "run.yaml:2: there is no flag 'thread': did you mean threads?"},
      {"nonsense: 2\n", "run.yaml:1: there is no flag 'nonsense'; 'fedrun --help' lists them"},
      {"np: {a: 1}\n", "run.yaml:1: there is no flag 'np-a'"},
      {"frobnicate-enabled: true", "run.yaml:1: there is no flag 'frobnicate-enabled'"},
      {"np: 4\nnp: 5\n", "run.yaml:2: np: this is given in line 1 already"},
      {"{np: 4, np: 5}", "run.yaml:1: np: this is given in line 1 already"},
      {"np: 4\n\nnum-proc: 5\n", "run.yaml:3: num-proc: this is given in line 1 already"},
      {"np:\n", "run.yaml:1: np has no value"},
      {"np: [4, 5]", "run.yaml:1: np: this takes one value, not a list"},
      {"verbose: 3", "run.yaml:1: verbose: this is true or false"},
      {"verbose: [true]", "run.yaml:1: verbose: this is true or false"},
      {"\n\nhelp: true", "run.yaml:3: help: this belongs on the command line"},
      {"config: other.yaml", "run.yaml:1: config: this belongs on the command line"},
      {"cycle-time-ms: 5", "run.yaml:1: cycle-time-ms: fedrun has no polling thread"},
      {"params:\n  cycle_time_ms: 5", "run.yaml:2: params-cycle-time-ms: fedrun has no polling thread"},
      {"autotune: {enabled: true}", "run.yaml:1: autotune-enabled: this version of fedrun tunes nothing"},
      {"sync: [a, [b]]", "run.yaml:1: sync has a value that is neither text nor a number"},
      {"sync: \"a\\0b\"", "run.yaml:1: sync has a value with a null character"},
      {"env: {'A=B': 1}", "run.yaml:1: env: 'A=B' is no name"},
      {"env: {A: [1]}", "run.yaml:1: env: A has a value that is neither text nor a number"},
      {"- np\n", "run.yaml:1: flags are written one per line, such as 'np: 4'"},
      {"np 4\n", "run.yaml:1: flags are written one per line, such as 'np: 4'"},
      {"? [a]\n: b\n", "run.yaml:1: a key must be a word, such as np"},
      {"'': b\n", "run.yaml:1: a key must be a word, such as np"},
      {"np: 4\n  x: [\n", "run.yaml:2: this is not YAML: "},
      {"np: \"4\n", "run.yaml:1: this is not YAML: "},
      {"sync: 'a\n\nverbose: true\n", "run.yaml:3: this is not YAML: "},
      {"np: *nowhere\n", "run.yaml:1: this is not YAML: "},
      {"np: 4\n---\nnp: 5\n", "run.yaml:3: a second document begins; write all of it as one"},
      {std::string(100'000, '['), "run.yaml:1: this is not YAML: "},
      {std::string(100'000, '{'), "run.yaml:1: this is not YAML: "},
      {"a: {b: {c: {d: {e: {f: {g: {h: {i: 1}}}}}}}}", "run.yaml:1: this is nested too deeply"},
      {"a: &a {b: *a}", "run.yaml:1: this is nested too deeply"},
  };
  for (const auto& example : cases) {
    EXPECT_THAT(usage_error_of([&] { flags_of(example.text); }), StartsWith(example.message))
        << example.text.substr(0, 80);
  }
}

TEST(ConfigFile, FewLinesThatStandForBillionsOfValuesEndSoon) {
  std::string maps = "a0: &a0 {x: 1}\n";
  for (int level = 1; level < 7; ++level) {
    maps += "a" + std::to_string(level) + ": &a" + std::to_string(level) + " {";
    for (int i = 0; i < 30; ++i) maps += "k" + std::to_string(i) + ": *a" + std::to_string(level - 1) + ", ";
    maps += "}\n";
  }
  std::string long_values = "sync: [&a " + std::string(500'000, 'x');
  for (int i = 0; i < 9000; ++i) long_values += ", *a";
  for (const std::string& text : {maps, long_values + "]\n"}) {
    EXPECT_THAT(usage_error_of([&] { flags_of(text); }), HasSubstr(": this file stands for too many values"));
  }
}

class ConfigOptions : public testing::Test {
 protected:
  ConfigOptions() { std::filesystem::create_directories(directory); }
  ~ConfigOptions() override { std::filesystem::remove_all(directory); }

  Options parse(const char* text, Words arguments) {
    std::ofstream(file) << text;
    arguments.insert(arguments.begin(), {"--config", file.string()});
    arguments.emplace_back("p");
    return parse_options(arguments);
  }

  std::string error_of(const char* text, const Words& arguments) {
    return usage_error_of([&] { parse(text, arguments); });
  }

  const std::filesystem::path directory = testing::TempDir() + "config_file_test." + std::to_string(getpid());
  const std::filesystem::path file = directory / "run.yaml";
};

TEST_F(ConfigOptions, TheCommandLineWins) {
  const Options options = parse("np: 4\nthreads: 2\nsync: [a, b]\nverbose: true\nlog-level: debug\n",
                                {"-np", "3", "--sync", "c", "--log-level=error"});
  EXPECT_EQ(options.ranks, 3);
  EXPECT_TRUE(options.verbose);
  EXPECT_THAT(options.sync, ElementsAre("c"));
  EXPECT_THAT(options.settings, ElementsAre(Pair("FEDRUN_THREADS", "2"), Pair("FEDRUN_LOG_LEVEL", "error")));
}

TEST_F(ConfigOptions, FlagsThatExcludeEachOtherAreReplaced) {
  const Options by_list = parse("hostfile: f", {"-H", "a"});
  EXPECT_EQ(by_list.hosts, "a");
  EXPECT_EQ(by_list.hostfile, std::nullopt);
  const Options by_file = parse("hosts: [a, b]", {"--hostfile", "f"});
  EXPECT_EQ(by_file.hosts, std::nullopt);
  EXPECT_EQ(by_file.hostfile, "f");
  const Options bound = parse("binding-args: -bind-to socket", {"--bind", "core"});
  EXPECT_EQ(bound.binding, Binding::core);
  EXPECT_THAT(bound.mpi_arguments, IsEmpty());
  EXPECT_THAT(parse("stall-check: false", {"--stall-check"}).settings, IsEmpty());
}

TEST_F(ConfigOptions, VariablesAreMergedByName) {
  EXPECT_THAT(parse("env: {A: 1, B: 2}", {"-x", "B=3", "-x", "C"}).pass, ElementsAre("A=1", "B=3", "C"));
  EXPECT_THAT(parse("env: {A: 1}", {"-x", "A"}).pass, ElementsAre("A"));
  EXPECT_THAT(parse("env: {FEDRUN_THREADS: 1}", {"--threads", "2"}).pass, IsEmpty());
}

TEST_F(ConfigOptions, ErrorsNameThePlace) {
  const struct {
    const char* text;
    Words arguments;
    const char* message;
  } cases[] = {
      {"np: 0", {}, ":1: np: '0' is not a whole number from 1 to 65536"},
      {"\nthreads: many", {}, ":2: threads: 'many' is not a whole number from 1 to 1024"},
      {"hosts: a\nhostfile: f", {}, ":2: hostfile, not both"},
      {"gpu-mapping-key: k", {}, ":1: gpu-mapping-key does nothing without --gpu-mapping"},
      {"np: 2", {"--debug-rank", "2"}, "--debug-rank 2: the run has the ranks 0 to 1"},
  };
  for (const auto& example : cases) {
    EXPECT_THAT(error_of(example.text, example.arguments), HasSubstr(example.message)) << example.text;
  }
  EXPECT_THAT(error_of("np: 0", {}), StartsWith(file.string() + ":1: np: "));
}

TEST_F(ConfigOptions, TheKeyFitsTheCommandLine) {
  EXPECT_EQ(parse("gpu-mapping: f", {"--gpu-mapping-key", "k"}).gpu_mapping_key, "k");
}

TEST_F(ConfigOptions, QuestionsDoNotReadIt) {
  EXPECT_EQ(parse("not: a: config", {"--help"}).action, Action::show_help);
  EXPECT_EQ(parse_options(Words{"check", "--config", file.string() + ".missing", "--version"}).action,
            Action::show_version);
}

TEST_F(ConfigOptions, FilesThatCannotBeRead) {
  const auto error_with = [](const std::string& name) {
    return usage_error_of([&] { parse_options(Words{"--config", name, "p"}); });
  };
  EXPECT_EQ(error_with("/no/such/file"), "cannot read the config file /no/such/file: No such file or directory");
  EXPECT_EQ(error_with("/"), "cannot read the config file /: it is a directory");
  EXPECT_EQ(error_with("/dev/zero"), "cannot read the config file /dev/zero: it is larger than 1 MiB");
  EXPECT_EQ(error_with(""), "--config: an empty text is no path");
  std::ofstream(file) << "np: 4" << '\0';
  EXPECT_EQ(error_with(file), "cannot read the config file " + file.string() + ": it is not a text file");
}

}  // namespace
}  // namespace fedrun::launcher
