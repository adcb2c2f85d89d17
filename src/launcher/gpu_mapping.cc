#include <fedrun/core/error.h>
#include <fedrun/core/parse.h>
#include <fedrun/launcher/gpu_mapping.h>
#include <fedrun/launcher/nearest_name.h>
#include <fedrun/launcher/split_list.h>
#include <fedrun/launcher/text_file.h>
#include <fedrun/launcher/yaml_text.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <system_error>

namespace fedrun::launcher {
namespace {

constexpr size_t most_gpus = 1024;  // of one host
constexpr size_t most_hosts = 65536;
constexpr int most_ranks = 65536;

YAML::Node find_mapping(const YAML::Node& root, std::string_view file, std::string_view key) {
  if (!root.IsMap() || root.size() == 0) {
    refuse_yaml(file, root, fmt::format("a mapping is written as '{}:' with a line 'host: [2, 2]' for each host", key));
  }
  std::vector<std::string> names;
  for (const auto& item : root) {
    if (!item.first.IsScalar()) refuse_yaml(file, item.first, "a key must be a word");
    if (item.first.Scalar() == key) return item.second;
    names.push_back(item.first.Scalar());
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  const auto nearest = nearest_name(key, known);
  throw UsageError(fmt::format("{} has no mapping '{}'{}; it has {}", file, key,
                               nearest ? fmt::format(": did you mean {}?", *nearest) : "", fmt::join(names, ", ")));
}

GpuMapping::Row read_row(const YAML::Node& host, const YAML::Node& counts, std::string_view file,
                         std::string_view key) {
  const auto refuse = [&](std::string_view message) { refuse_yaml(file, host, fmt::format("{}: {}", key, message)); };
  if (!host.IsScalar()) refuse("a host must be a name");
  GpuMapping::Row row{host.Scalar(), {}, line_of(host)};
  if (!counts.IsSequence() || counts.size() == 0 || counts.size() > most_gpus) {
    refuse(fmt::format("{} needs a list with the number of ranks of each GPU, such as [2, 2]", row.host));
  }
  for (const YAML::Node& count : counts) {
    try {
      row.ranks_of_gpu.push_back(parse_integer(count.IsScalar() ? count.Scalar() : "", 0, most_ranks));
    } catch (const UsageError& error) {
      refuse(fmt::format("{}: {}", row.host, error.what()));
    }
  }
  return row;
}

bool is_address(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c) || c == '.'; });
}

// A short name is the full one up to its first dot.
bool same_host(std::string_view one, std::string_view other) {
  if (one == other) return true;
  if (is_address(one) || is_address(other)) return false;
  const bool one_is_short = one.find('.') == std::string_view::npos;
  const bool other_is_short = other.find('.') == std::string_view::npos;
  return one_is_short != other_is_short && one.substr(0, one.find('.')) == other.substr(0, other.find('.'));
}

// In the file this machine may be called by its name where the run has localhost, and the other way round.
bool is_row_of(const GpuMapping::Row& row, const std::string& host) {
  return same_host(row.host, host) || (is_this_machine({row.host, 1}) && is_this_machine({host, 1}));
}

struct HostRanks {
  std::string host;
  int ranks;
};

std::vector<HostRanks> count_ranks(const std::vector<RankPlace>& places) {
  std::vector<HostRanks> hosts;
  for (const RankPlace& place : places) {
    if (hosts.empty() || hosts.back().host != place.host) hosts.push_back({place.host, 0});
    ++hosts.back().ranks;
  }
  return hosts;
}

void require_part_in_run(const GpuMapping& mapping, const std::vector<HostRanks>& hosts) {
  for (const GpuMapping::Row& row : mapping.rows) {
    if (std::any_of(hosts.begin(), hosts.end(), [&](const HostRanks& of) { return is_row_of(row, of.host); })) continue;
    std::vector<std::string> names;
    for (const HostRanks& of : hosts) names.push_back(of.host);
    throw UsageError(fmt::format("{}:{}: {}: no rank runs on {}; the run has {}", mapping.file, row.line, mapping.key,
                                 row.host, fmt::join(names, ", ")));
  }
}

// Every rank's GPU in the order of local ranks.
std::vector<int> fill(const GpuMapping::Row& row) {
  std::vector<int> gpus;
  for (size_t gpu = 0; gpu < row.ranks_of_gpu.size(); ++gpu) {
    gpus.insert(gpus.end(), static_cast<size_t>(row.ranks_of_gpu[gpu]), static_cast<int>(gpu));
  }
  return gpus;
}

const GpuMapping::Row& require_row(const GpuMapping& mapping, const std::string& host, int ranks) {
  const auto is_row_of_host = [&](const GpuMapping::Row& candidate) { return is_row_of(candidate, host); };
  const auto row = std::find_if(mapping.rows.begin(), mapping.rows.end(), is_row_of_host);
  if (row == mapping.rows.end()) {
    throw UsageError(fmt::format("{}: {} has no line for the host {}, where {} ranks run: add '{}: [{}]'", mapping.file,
                                 mapping.key, host, ranks, host, ranks));
  }
  const auto second = std::find_if(row + 1, mapping.rows.end(), is_row_of_host);
  if (second != mapping.rows.end()) {
    throw UsageError(fmt::format("{}:{}: {}: {} is the host {}, and so is {}", mapping.file, second->line, mapping.key,
                                 second->host, host, row->host));
  }
  const long long places = std::accumulate(row->ranks_of_gpu.begin(), row->ranks_of_gpu.end(), 0LL);
  if (places != ranks) {
    throw UsageError(fmt::format(
        "{}:{}: {}: {} has places for {} ranks ([{}]), but {} run there: change these numbers, -np or the slots of {}",
        mapping.file, row->line, mapping.key, row->host, places, fmt::join(row->ranks_of_gpu, ", "), ranks, host));
  }
  return *row;
}

}  // namespace

GpuMapping parse_gpu_mapping(std::string_view text, std::string_view file, std::string_view key) {
  const YAML::Node mapping = find_mapping(parse_yaml(text, file), file, key);
  if (!mapping.IsMap() || mapping.size() == 0 || mapping.size() > most_hosts) {
    refuse_yaml(file, mapping, fmt::format("{} needs a line 'host: [2, 2]' for each host", key));
  }
  GpuMapping result{std::string(file), std::string(key), {}};
  std::map<std::string, int> lines;
  for (const auto& item : mapping) {
    GpuMapping::Row row = read_row(item.first, item.second, file, key);
    const auto [first, is_new] = lines.emplace(row.host, row.line);
    if (!is_new)
      refuse_yaml(file, item.first, fmt::format("{}: {} is in line {} already", key, row.host, first->second));
    result.rows.push_back(std::move(row));
  }
  return result;
}

GpuMapping read_gpu_mapping(const std::filesystem::path& file, std::string_view key) {
  return parse_gpu_mapping(read_text_file(file, "the GPU mapping"), file.string(), key);
}

std::vector<int> gpus_of_ranks(const GpuMapping& mapping, const std::vector<RankPlace>& places) {
  const std::vector<HostRanks> hosts = count_ranks(places);
  require_part_in_run(mapping, hosts);
  std::vector<int> gpus;
  for (const HostRanks& of : hosts) {
    const std::vector<int> of_host = fill(require_row(mapping, of.host, of.ranks));
    gpus.insert(gpus.end(), of_host.begin(), of_host.end());
  }
  return gpus;
}

std::vector<int> gpus_of_ranks(int gpus_per_host, const std::vector<RankPlace>& places) {
  std::vector<int> gpus;
  if (gpus_per_host == 0) return gpus;
  for (const RankPlace& place : places) gpus.push_back(place.local_rank % gpus_per_host);
  return gpus;
}

std::string gpu_list(const std::vector<int>& gpus) { return fmt::format("{}", fmt::join(gpus, ",")); }

int count_gpus(const RunEnv::Lookup& lookup, const std::filesystem::path& devices) {
  constexpr std::string_view prefix = "nvidia";  // nvidia0, nvidia1; others such as nvidiactl are no GPUs
  int count = 0;
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator(devices, problem)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix) || name.size() == prefix.size()) continue;
    count += std::all_of(name.begin() + prefix.size(), name.end(), [](unsigned char c) { return std::isdigit(c); });
  }
  const char* visible = lookup("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) return count;
  // CUDA reads the list up to the first entry that names no device; names such as GPU-8932f937 are left to it.
  int seen = 0;
  for (const std::string_view entry : split_list(visible, ',')) {
    const bool is_name = entry.starts_with("GPU-") || entry.starts_with("MIG-");
    try {
      if (!is_name) parse_integer(entry, 0, count - 1);
    } catch (const UsageError&) {
      break;
    }
    ++seen;
  }
  return seen;
}

}  // namespace fedrun::launcher
