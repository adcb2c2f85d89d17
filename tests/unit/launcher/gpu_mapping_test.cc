// GPU mappings by table: which rank gets which GPU, and that a file that does not fit the run says where.
#include <fedrun/launcher/gpu_mapping.h>
#include <fedrun/launcher/run_table.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <climits>
#include <filesystem>
#include <fstream>

#include "support/error_text.h"

namespace fedrun::launcher {
namespace {

using test::usage_error_of;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

std::vector<RankPlace> places_of(const char* hosts, std::optional<int> ranks = {}) {
  return ranks_in_order(place(ranks, parse_hosts(hosts)));
}

std::vector<int> gpus_of(const char* text, const char* hosts, std::optional<int> ranks = {}) {
  return gpus_of_ranks(parse_gpu_mapping(text, "g.yaml"), places_of(hosts, ranks));
}

std::string this_machine() {
  char name[HOST_NAME_MAX + 1] = {};
  gethostname(name, HOST_NAME_MAX);
  return name;
}

TEST(RanksInOrder, FillOneHostAfterTheOther) {
  EXPECT_THAT(ranks_in_order(place(2, {})), ElementsAre(RankPlace{0, "localhost", 0}, RankPlace{1, "localhost", 1}));
  EXPECT_THAT(places_of("a:2,b:1"), ElementsAre(RankPlace{0, "a", 0}, RankPlace{1, "a", 1}, RankPlace{2, "b", 0}));
  EXPECT_THAT(places_of("a:2,b:2", 3), ElementsAre(RankPlace{0, "a", 0}, RankPlace{1, "a", 1}, RankPlace{2, "b", 0}));
  EXPECT_THAT(places_of("a:2,b:2", 1), ElementsAre(RankPlace{0, "a", 0}));
}

TEST(Placement, OneRankPerGpuOfThisMachine) {
  EXPECT_EQ(place(std::nullopt, {}, 4).ranks, 4);
  EXPECT_EQ(place(std::nullopt, {}, 0).ranks, 1);
  EXPECT_EQ(place(2, {}, 4).ranks, 2);
  EXPECT_EQ(place(std::nullopt, {{"a", 3}}, 4).ranks, 3);
}

TEST(GpuMapping, ByTable) {
  const struct {
    const char* text;
    const char* hosts;
    std::vector<int> gpus;
  } cases[] = {
      {"mapping_default: {host1: [2, 2], host2: [1, 1, 1]}", "host1:4,host2:3", {0, 0, 1, 1, 0, 1, 2}},
      {"mapping_default: {host2: [1, 1, 1], host1: [2, 2]}", "host1:4,host2:3", {0, 0, 1, 1, 0, 1, 2}},
      {"mapping_default: {a: [0, 2, 0, 1]}", "a:3", {1, 1, 3}},
      {"mapping_default:\n    a: [1]\n", "a", {0}},
      {"mapping_default: {a.example.org: [2]}", "a:2", {0, 0}},
      {"mapping_default: {a: [2]}", "a.example.org:2", {0, 0}},
      {"mapping_default: {localhost: [1, 1]}", "localhost:2", {0, 1}},
      {"other: {b: [9]}\nmapping_default: {a: [1, 1]}", "a:2", {0, 1}},
  };
  for (const auto& example : cases) EXPECT_EQ(gpus_of(example.text, example.hosts), example.gpus) << example.text;
}

TEST(GpuMapping, ThisMachineHasSeveralNames) {
  const auto here = ranks_in_order(place(2, {}));
  for (const std::string& name : {std::string("localhost"), this_machine()}) {
    EXPECT_THAT(gpus_of_ranks(parse_gpu_mapping("mapping_default: {" + name + ": [1, 1]}", "g.yaml"), here),
                ElementsAre(0, 1));
  }
}

TEST(GpuMapping, ErrorsNameFileKeyHostAndCounts) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"mapping_default:\n  a: [1]\n  b: [2]\n",
       "g.yaml:2: mapping_default: a has places for 1 ranks ([1]), but 2 run there: change these numbers, -np or the "
       "slots of a"},
      {"mapping_default:\n  a: [1, 1]\n  b: [1, 1]\n",
       "g.yaml:3: mapping_default: b has places for 2 ranks ([1, 1]), but 1 run there"},
      {"mapping_default:\n  a: [2]\n",
       "g.yaml: mapping_default has no line for the host b, where 1 ranks run: add 'b: [1]'"},
      {"mapping_default:\n  a: [2]\n  b: [1]\n  c: [1]\n",
       "g.yaml:4: mapping_default: no rank runs on c; the run has a, b"},
      {"mapping_default:\n  a.x: [2]\n  a.y: [2]\n  b: [1]\n",
       "g.yaml:3: mapping_default: a.y is the host a, and so is a.x"},
      {"mapping_default:\n  a: [2]\n  a: [2]\n", "g.yaml:3: mapping_default: a is in line 2 already"},
      {"mapping_default: {a: 2}", "g.yaml:1: mapping_default: a needs a list with the number of ranks of each GPU"},
      {"mapping_default: {a: []}", "g.yaml:1: mapping_default: a needs a list"},
      {"mapping_default: {a: [-1]}", "g.yaml:1: mapping_default: a: '-1' is not a whole number from 0 to 65536"},
      {"mapping_default: {a: [x]}", "g.yaml:1: mapping_default: a: 'x' is not a whole number"},
      {"mapping_default: {a: [[1]]}", "g.yaml:1: mapping_default: a: '' is not a whole number"},
      {"mapping_default: {a: [65536, 65536]}", "g.yaml:1: mapping_default: a has places for 131072 ranks"},
      {"mapping_default: {[a]: [1]}", "g.yaml:1: mapping_default: a host must be a name"},
      {"mapping_default: [a, b]", "g.yaml:1: mapping_default needs a line 'host: [2, 2]' for each host"},
      {"mapping_default:", "g.yaml:1: mapping_default needs a line"},
      {"mapping_defualt: {a: [2]}",
       "g.yaml has no mapping 'mapping_default': did you mean mapping_defualt?; it has mapping_defualt"},
      {"one: {a: [2]}\ntwo: {a: [2]}\n", "g.yaml has no mapping 'mapping_default'; it has one, two"},
      {"", "g.yaml: a mapping is written as 'mapping_default:' with a line"},
      {"{}", "g.yaml:1: a mapping is written as 'mapping_default:' with a line"},
      {"a: [", "g.yaml:1: this is not YAML: "},
  };
  for (const auto& example : cases) {
    EXPECT_THAT(usage_error_of([&] { gpus_of(example.text, "a:2,b:1"); }), StartsWith(example.message)) << example.text;
  }
}

TEST(GpuMapping, FitsTheNumberOfRanksAndNotTheSlots) {
  EXPECT_EQ(gpus_of("mapping_default: {a: [2], b: [0, 1]}", "a:2,b:4", 3), (std::vector{0, 0, 1}));
  EXPECT_THAT(usage_error_of([] { gpus_of("mapping_default: {a: [2], b: [1]}", "a:2,b:4", 2); }),
              StartsWith("g.yaml:1: mapping_default: no rank runs on b; the run has a"));
}

TEST(GpuMapping, TheExampleFitsTheHostsOfTheExample) {
  const auto hosts = read_hostfile(FEDRUN_SOURCE_DIR "/hostfile.example");
  const auto mapping = read_gpu_mapping(FEDRUN_SOURCE_DIR "/gpu_mapping.example.yaml");
  EXPECT_THAT(gpus_of_ranks(mapping, ranks_in_order(place(std::nullopt, hosts))),
              ElementsAre(0, 0, 1, 1, 0, 1, 2, 3, 1, 1, 0));
  EXPECT_THAT(gpus_of_ranks(read_gpu_mapping(FEDRUN_SOURCE_DIR "/gpu_mapping.example.yaml", "one_each"),
                            places_of("node1:4,node2:4")),
              ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
}

TEST(GpuMapping, FilesThatCannotBeRead) {
  EXPECT_EQ(usage_error_of([] { read_gpu_mapping("/no/such/file"); }),
            "cannot read the GPU mapping /no/such/file: No such file or directory");
}

TEST(Gpus, WithoutAMappingByLocalRank) {
  EXPECT_THAT(gpus_of_ranks(2, places_of("a:3,b:1")), ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(gpus_of_ranks(0, places_of("a:3,b:1")), IsEmpty());
}

TEST(Gpus, AreListedForTheRanks) {
  EXPECT_EQ(gpu_list({}), "");
  EXPECT_EQ(gpu_list({0, 0, 11}), "0,0,11");
}

TEST(Gpus, AreCountedByTheirDeviceFiles) {
  const std::filesystem::path devices = testing::TempDir() + "gpu_mapping_test." + std::to_string(getpid());
  std::filesystem::create_directories(devices / "nvidia-caps");
  const auto count_with = [&](const char* visible) {
    return count_gpus([&](const char*) { return visible; }, devices);
  };
  EXPECT_EQ(count_with(nullptr), 0);
  EXPECT_EQ(count_with("0"), 0);
  for (const char* name : {"nvidia0", "nvidia1", "nvidia2", "nvidiactl", "nvidia-uvm", "nvidia", "null"}) {
    std::ofstream(devices / name) << "";
  }
  const struct {
    const char* visible;
    int count;
  } cases[] = {{nullptr, 3},   {"", 0},      {"0", 1},
               {"2,0", 2},     {"0,1,2", 3}, {"-1", 0},
               {"0,-1,2", 1},  {"0,3,1", 1}, {"GPU-8932f937,GPU-1", 2},
               {"1,MIG-x", 2}, {"none", 0},  {"0, 1", 1}};
  for (const auto& example : cases) {
    EXPECT_EQ(count_with(example.visible), example.count) << (example.visible ? example.visible : "unset");
  }
  std::filesystem::remove_all(devices);
  EXPECT_EQ(count_with(nullptr), 0);
}

TEST(RunTable, ShowsEachRank) {
  EXPECT_EQ(
      run_table(
          {.ranks = places_of("a:1,node2.example.org:2"), .gpus = {0, 1, 10}, .threads = 4, .binding = Binding::core}),
      " rank  host               local rank  device\n"
      "    0  a                           0  cuda:0\n"
      "    1  node2.example.org           0  cuda:1\n"
      "    2  node2.example.org           1  cuda:10\n"
      "threads per rank: 4\n"
      "binding: each rank to cores of its own\n");
  EXPECT_EQ(run_table({.ranks = places_of("a:2")}),
            " rank  host  local rank  device\n"
            "    0  a              0  cpu\n"
            "    1  a              1  cpu\n"
            "threads per rank: the cores of its host divided by its ranks\n"
            "binding: none\n");
}

}  // namespace
}  // namespace fedrun::launcher
