#include "machine.h"

#include <fedrun/core/host_name.h>
#include <fedrun/core/version.h>
#include <fedrun/launcher/run_commands.h>
#include <fedrun/launcher/split_list.h>
#include <fmt/format.h>
#include <sys/utsname.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace fedrun::bench::suite {
namespace {

std::string_view trim(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n\"";
  const std::size_t first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

std::string read_all(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// What stands behind the separator in the first line that begins with `key`.
std::string value_of(std::string_view text, std::string_view key, char separator) {
  for (const std::string_view line : launcher::split_list(text, '\n')) {
    const std::size_t at = line.find(separator);
    if (at != std::string_view::npos && trim(line.substr(0, at)) == key) return std::string(trim(line.substr(at + 1)));
  }
  return {};
}

std::string output_of(const std::vector<std::string>& command) {
  constexpr std::chrono::seconds limit{20};  // a driver takes its time when nobody has used it for a while
  const launcher::CommandResult result = launcher::run_commands({{command}}, limit)[0];
  return result.succeeded() ? result.output : std::string();
}

std::string cpu_of_this_machine() {
  std::string model = cpu_model(read_all("/proc/cpuinfo"));
  if (model.empty()) model = value_of(output_of({"lscpu"}), "Model name", ':');
  return model.empty() ? "unknown" : model;
}

}  // namespace

std::string cpu_model(std::string_view cpuinfo) { return value_of(cpuinfo, "model name", ':'); }

void read_gpus(std::string_view text, HostDescription& into) {
  for (const std::string_view line : launcher::split_list(text, '\n')) {
    const auto parts = launcher::split_list(line, ',');
    if (parts.size() != 3) continue;
    into.gpus.push_back({std::string(trim(parts[0])), std::string(trim(parts[1]))});
    into.gpu_driver = trim(parts[2]);
  }
}

HostDescription describe_this_host() {
  HostDescription host;
  host.host = host_name();
  host.system = value_of(read_all("/etc/os-release"), "PRETTY_NAME", '=');
  utsname system{};
  if (uname(&system) == 0) host.kernel = system.release;
  host.cpu = cpu_of_this_machine();
  const launcher::MachineFacts facts = launcher::examine_machine(0);
  host.cores = facts.cores;
  host.memory_gib = static_cast<double>(facts.memory_bytes) / (1 << 30);
  host.simd = facts.simd;
  host.open_mpi = facts.open_mpi;
  read_gpus(output_of({"nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"}), host);
  if (getloadavg(&host.load, 1) != 1) host.load = 0;
  return host;
}

nlohmann::ordered_json to_json(const HostDescription& host) {
  nlohmann::ordered_json gpus = nlohmann::ordered_json::array();
  for (const Gpu& gpu : host.gpus) gpus.push_back({{"name", gpu.name}, {"memory", gpu.memory}});
  return {
      {"host", host.host},   {"system", host.system},         {"kernel", host.kernel},   {"cpu", host.cpu},
      {"cores", host.cores}, {"memory_gib", host.memory_gib}, {"simd", host.simd},       {"open_mpi", host.open_mpi},
      {"gpus", gpus},        {"gpu_driver", host.gpu_driver}, {"load_before", host.load}};
}

HostDescription host_from_json(const nlohmann::ordered_json& json) {
  HostDescription host;
  host.host = json.at("host");
  host.system = json.at("system");
  host.kernel = json.at("kernel");
  host.cpu = json.at("cpu");
  host.cores = json.at("cores");
  host.memory_gib = json.at("memory_gib");
  host.simd = json.at("simd").get<std::vector<std::string>>();
  host.open_mpi = json.at("open_mpi");
  for (const auto& gpu : json.at("gpus")) host.gpus.push_back({gpu.at("name"), gpu.at("memory")});
  host.gpu_driver = json.at("gpu_driver");
  host.load = json.at("load_before");
  return host;
}

nlohmann::ordered_json describe_software(const launcher::BuildFacts& build) {
  const auto or_none = [](const std::string& version) { return version.empty() ? "not in this build" : version; };
  return {{"fedrun", version},
          {"compiler", build.compiler},
          {"build_type", build.build_type},
          {"open_mpi", or_none(build.open_mpi)},
          {"libtorch", or_none(build.libtorch)},
          {"cuda", or_none(build.cuda)},
          {"nccl", or_none(build.nccl)}};
}

}  // namespace fedrun::bench::suite
