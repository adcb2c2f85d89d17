#include <fedrun/core/error.h>
#include <fedrun/core/parse.h>
#include <fedrun/core/run_env.h>

#include <algorithm>
#include <cstdlib>

namespace fedrun {
namespace {

std::chrono::seconds parse_seconds(std::string_view text) {
  return std::chrono::seconds(parse_integer<int>(text, 0, 1'000'000'000));
}

std::vector<int> parse_gpus(std::string_view text) {
  std::vector<int> gpus;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    gpus.push_back(parse_integer(text.substr(begin, end - begin), 0, 1023));
    begin = end + 1;
  }
  return gpus;
}

constexpr RunVariable variables[] = {
    {"FEDRUN_LOG_LEVEL", "debug|info|warn|error|off", "warn", "how much each rank logs",
     [](RunEnv& env, std::string_view text) { env.log_level = parse_log_level(text); }},
    {"FEDRUN_BACKEND", "auto|self|shm|mpi", "auto",
     "what carries the collectives; auto: shared memory inside a host, MPI between hosts",
     [](RunEnv& env, std::string_view text) {
       env.backend = parse_word<BackendChoice>(text, {{"auto", BackendChoice::automatic},
                                                      {"self", BackendChoice::self},
                                                      {"shm", BackendChoice::shm},
                                                      {"mpi", BackendChoice::mpi}});
     }},
    {"FEDRUN_PEER_MEMORY", "auto|off", "auto",
     "shm: copy ordinary memory between ranks through the kernel where it allows it, or stage it (off)",
     [](RunEnv& env, std::string_view text) {
       env.peer_memory = parse_word<bool>(text, {{"auto", true}, {"off", false}});
     }},
    {"FEDRUN_STALL_WARN_SECONDS", "0..", "30", "warn about an operation that has not finished by then; 0: never",
     [](RunEnv& env, std::string_view text) { env.stall_warning = parse_seconds(text); }},
    {"FEDRUN_STALL_ABORT_SECONDS", "0..", "600", "give up an operation that has not finished by then; 0: never",
     [](RunEnv& env, std::string_view text) { env.stall_limit = parse_seconds(text); }},
    {"FEDRUN_TIMELINE", "a file", "", "write a Chrome trace of all ranks' collectives there",
     [](RunEnv& env, std::string_view text) { env.timeline = text; }},
    {"FEDRUN_DEVICE", "auto|cpu|cuda", "auto", "where Session::device() puts the model",
     [](RunEnv& env, std::string_view text) {
       env.device = parse_word<DeviceChoice>(
           text, {{"auto", DeviceChoice::automatic}, {"cpu", DeviceChoice::cpu}, {"cuda", DeviceChoice::cuda}});
     }},
    {"FEDRUN_THREADS", "1..1024", "cores/ranks", "compute threads per rank; the default divides the host's cores",
     [](RunEnv& env, std::string_view text) { env.threads = parse_integer<int>(text, 1, 1024); }},
    {"FEDRUN_GPU_OF_RANK", "0..1023,...", "local rank", "the GPU of each rank, by rank; set by the launcher",
     [](RunEnv& env, std::string_view text) { env.gpu_of_rank = parse_gpus(text); }},
    {"FEDRUN_GPU_ACROSS_HOSTS", "nccl|mpi", "nccl",
     "what carries elements on GPUs between hosts; mpi: NCCL inside each host, and MPI through host memory between "
     "them",
     [](RunEnv& env, std::string_view text) {
       env.gpu_across_hosts = parse_word<AcrossHosts>(text, {{"nccl", AcrossHosts::nccl}, {"mpi", AcrossHosts::mpi}});
     }},
    {"FEDRUN_GPU_STAGED_BELOW", "0..", "65536",
     "with mpi across hosts: an allreduce of fewer bytes on GPUs goes through host memory without NCCL",
     [](RunEnv& env, std::string_view text) {
       env.gpu_staged_below = static_cast<std::size_t>(parse_integer<long long>(text, 0, 1LL << 40));
     }},
    {progress_descriptor_variable, "-1..", "-1", "where a rank tells how far it has come; set by the launcher",
     [](RunEnv& env, std::string_view text) { env.progress_descriptor = parse_integer<int>(text, -1, 1 << 20); }},
    {"FEDRUN_TERMINAL_COLUMNS", "0..10000", "0", "width of the terminal that shows the output; set by the launcher",
     [](RunEnv& env, std::string_view text) { env.terminal_columns = parse_integer<int>(text, 0, 10000); }},
    {"FEDRUN_TEST_DATA", "a directory", "../shared/data", "where fedrun's own tests find MNIST and CIFAR-10",
     [](RunEnv& env, std::string_view text) { env.test_data = text; }},
};

}  // namespace

std::span<const RunVariable> run_variables() { return variables; }

RunEnv RunEnv::from(const Lookup& lookup) {
  RunEnv env;
  for (const RunVariable& variable : variables) {
    const char* text = lookup(variable.name);
    if (text == nullptr || *text == '\0') continue;
    try {
      variable.parse(env, text);
    } catch (const UsageError&) {
      throw UsageError(fmt::format("environment variable {}='{}' is not valid: it takes {} ({})", variable.name, text,
                                   variable.values, variable.meaning));
    }
  }
  return env;
}

RunEnv RunEnv::from_environment() {
  return from([](const char* name) -> const char* { return std::getenv(name); });
}

}  // namespace fedrun
