#include <fedrun/core/error.h>
#include <fedrun/core/run_env.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace fedrun {
namespace {

RunEnv env_of(const std::map<std::string, std::string>& variables) {
  return RunEnv::from([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(RunEnv, HasDefaultsWhereNothingIsSet) {
  const RunEnv env = env_of({});
  EXPECT_EQ(env.log_level, LogLevel::warn);
  EXPECT_EQ(env.backend, BackendChoice::automatic);
  EXPECT_EQ(env.device, DeviceChoice::automatic);
  EXPECT_TRUE(env.peer_memory);
  EXPECT_FALSE(env.threads.has_value());
  EXPECT_THAT(env.gpu_of_rank, testing::IsEmpty());
  EXPECT_EQ(env.gpu_across_hosts, AcrossHosts::nccl);
  EXPECT_EQ(env.gpu_staged_below, 65536U);
  EXPECT_EQ(env.terminal_columns, 0);
  EXPECT_EQ(env.test_data, "");
}

TEST(RunEnv, ReadsEveryVariable) {
  const RunEnv env = env_of({{"FEDRUN_LOG_LEVEL", "debug"},
                             {"FEDRUN_BACKEND", "mpi"},
                             {"FEDRUN_PEER_MEMORY", "off"},
                             {"FEDRUN_DEVICE", "cpu"},
                             {"FEDRUN_THREADS", "3"},
                             {"FEDRUN_GPU_OF_RANK", "0,0,1"},
                             {"FEDRUN_GPU_ACROSS_HOSTS", "mpi"},
                             {"FEDRUN_GPU_STAGED_BELOW", "1048576"},
                             {"FEDRUN_TERMINAL_COLUMNS", "120"},
                             {"FEDRUN_TEST_DATA", "somewhere"}});
  EXPECT_EQ(env.log_level, LogLevel::debug);
  EXPECT_EQ(env.backend, BackendChoice::mpi);
  EXPECT_FALSE(env.peer_memory);
  EXPECT_EQ(env.device, DeviceChoice::cpu);
  EXPECT_EQ(env.threads, 3);
  EXPECT_THAT(env.gpu_of_rank, testing::ElementsAre(0, 0, 1));
  EXPECT_EQ(env.gpu_across_hosts, AcrossHosts::mpi);
  EXPECT_EQ(env.gpu_staged_below, 1048576U);
  EXPECT_EQ(env.terminal_columns, 120);
  EXPECT_EQ(env.test_data, "somewhere");
}

TEST(RunEnv, TreatsEmptyAsUnset) { EXPECT_FALSE(env_of({{"FEDRUN_THREADS", ""}}).threads.has_value()); }

TEST(RunEnv, NamesTheVariableItsValueAndWhatItTakes) {
  const std::map<std::string, std::string> bad = {{"FEDRUN_LOG_LEVEL", "loud"},     {"FEDRUN_BACKEND", "gloo"},
                                                  {"FEDRUN_PEER_MEMORY", "on"},     {"FEDRUN_DEVICE", "tpu"},
                                                  {"FEDRUN_THREADS", "0"},          {"FEDRUN_TERMINAL_COLUMNS", "wide"},
                                                  {"FEDRUN_GPU_OF_RANK", "0,"},     {"FEDRUN_GPU_ACROSS_HOSTS", "tcp"},
                                                  {"FEDRUN_GPU_STAGED_BELOW", "-1"}};
  for (const auto& [name, value] : bad) {
    try {
      env_of({{name, value}});
      ADD_FAILURE() << "no error for " << name << "=" << value;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(name + "='" + value + "'"));
      EXPECT_THAT(error.what(), testing::HasSubstr("it takes"));
    }
  }
}

TEST(RunVariables, AreDocumentedAndUnique) {
  std::set<std::string> names;
  for (const RunVariable& variable : run_variables()) {
    EXPECT_THAT(variable.name, testing::StartsWith("FEDRUN_"));
    EXPECT_TRUE(names.insert(variable.name).second) << variable.name << " is listed twice";
    EXPECT_NE(std::string(variable.meaning), "");
    EXPECT_NE(std::string(variable.values), "");
  }
}

}  // namespace
}  // namespace fedrun
