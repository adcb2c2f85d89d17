#include <fedrun/launcher/checks.h>
#include <fedrun/launcher/shell_words.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace fedrun::launcher {
namespace {

constexpr std::uint64_t mib = 1 << 20;
constexpr double clock_tolerance_seconds = 1;
// Open MPI's shared-memory transport takes 4 MiB of /dev/shm for each rank.
constexpr std::uint64_t shared_memory_per_rank = 4 * mib;
constexpr std::uint64_t enough_shared_memory = 256 * mib;
constexpr std::uint64_t enough_memory_per_rank = 256 * mib;

std::string size_text(std::uint64_t bytes) {
  if (bytes < 1024 * mib) return fmt::format("{} MiB", bytes / mib);
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / static_cast<double>(1024 * mib));
}

std::string base_name(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

// The beginning of a long list, so that a row stays readable.
std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t most = 6;
  if (names.size() <= most) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} more", fmt::join(names.begin(), names.begin() + most, ", "), names.size() - most);
}

std::string short_digest(const FileFacts& file) {
  const std::string hex = file.digest.substr(file.digest.find(':') + 1);
  return hex.empty() ? fmt::format("{} bytes", file.bytes) : hex.substr(0, 12);
}

class HostJudge {
 public:
  HostJudge(const Host& host, const HostFacts& facts, bool is_here, const Expectations& expectations)
      : host_(host), facts_(facts), original_(expectations.original), is_here_(is_here), expected_(expectations) {}

  std::vector<CheckRow> judge() {
    judge_directory();
    judge_program();
    judge_fedrun();
    judge_libraries();
    judge_open_mpi();
    judge_cores();
    judge_memory();
    judge_shared_memory();
    judge_gpus();
    judge_clock();
    return std::move(rows_);
  }

 private:
  void add(std::string check, Verdict verdict, std::string what, std::string remedy = "") {
    rows_.push_back({host_.name, std::move(check), verdict, std::move(what), std::move(remedy)});
  }

  void judge_directory() {
    if (facts_.has_directory) return add("directory", Verdict::ok, expected_.directory);
    add("directory", Verdict::failed, fmt::format("there is no {}, or it cannot be entered", expected_.directory),
        "the ranks start in the directory that fedrun is called in: create it there, or pass --sync");
  }

  void judge_program() {
    const FileFacts& program = facts_.program;
    const std::string& name = expected_.program;
    const std::string bring = fmt::format("bring it there by: --sync {}", shell_quote(name));
    switch (program.state) {
      case FileState::not_asked:
        return;
      case FileState::missing:
        if (name.find('/') == std::string::npos) {
          return add("program", Verdict::failed, fmt::format("{} is not on the PATH of the ranks", name),
                     "install it there, or write its path");
        }
        return add("program", Verdict::failed, name + " does not exist",
                   original_.program.state == FileState::executable
                       ? bring
                       : "check the path, and the directory that fedrun is called in");
      case FileState::not_a_file:
        return add("program", Verdict::failed, name + " is not a program but a directory or a device",
                   "name the program in it");
      case FileState::not_executable:
        return add("program", Verdict::failed, name + " is not executable",
                   fmt::format("if it is a program: chmod +x {}", shell_quote(name)));
      case FileState::executable:
        break;
    }
    if (!facts_.machine.empty() && facts_.machine != original_.machine) {
      return add("program", Verdict::failed,
                 fmt::format("built for {}, but this host is {}", original_.machine, facts_.machine),
                 "use hosts of one architecture");
    }
    judge_same("program", program, original_.program, bring);
  }

  void judge_fedrun() {
    const FileFacts& fedrun = facts_.fedrun;
    if (fedrun.state == FileState::not_asked) return;
    if (fedrun.state == FileState::executable) {
      return judge_same("fedrun", fedrun, original_.fedrun, "install the same version there, or pass --sync");
    }
    add("fedrun", Verdict::failed,
        fmt::format("{} {}", original_.fedrun.path,
                    fedrun.state == FileState::missing ? "does not exist" : "cannot be executed"),
        "the ranks are started through it: install it at the same path, or pass --sync");
  }

  void judge_same(const char* check, const FileFacts& file, const FileFacts& original, std::string remedy) {
    if (file.same_content(original))
      return add(check, Verdict::ok, fmt::format("{} ({})", file.path, short_digest(file)));
    add(check, Verdict::failed,
        fmt::format("{} differs: {} there, {} {}", file.path, short_digest(file), short_digest(original),
                    expected_.original_place),
        std::move(remedy));
  }

  // A different libc works; a different LibTorch computes something else, or nothing.
  static bool must_be_same(std::string_view name) {
    return name.starts_with("libtorch") || name.starts_with("libc10") || name.starts_with("libnccl");
  }

  void judge_libraries() {
    if (facts_.program.state != FileState::executable && facts_.fedrun.state != FileState::executable) return;
    if (!facts_.missing_libraries.empty()) {
      return add("libraries", Verdict::failed, "not found: " + some_of(facts_.missing_libraries),
                 "install them there, set LD_LIBRARY_PATH here (the ranks get it), or pass --sync");
    }
    std::vector<std::string> fatal;
    std::vector<std::string> tolerable;
    for (const FileFacts& library : facts_.libraries) {
      const std::string name = base_name(library.path);
      const auto original = std::find_if(original_.libraries.begin(), original_.libraries.end(),
                                         [&](const FileFacts& other) { return base_name(other.path) == name; });
      const bool same = original == original_.libraries.end() || library.same_content(*original);
      if (!same) (must_be_same(name) ? fatal : tolerable).push_back(name);
    }
    if (!fatal.empty()) {
      return add("libraries", Verdict::failed, "another version of " + some_of(fatal),
                 "install the same version there, or pass --sync");
    }
    if (!tolerable.empty()) {
      return add("libraries", Verdict::warning, "another version of " + some_of(tolerable),
                 "usually harmless; if ranks fail or disagree, bring the hosts to the same packages");
    }
    add("libraries", Verdict::ok, fmt::format("{}, all found", facts_.libraries.size()));
  }

  void judge_open_mpi() {
    constexpr const char* install = "install the Debian package openmpi-bin in the same version as here";
    if (is_here_ && facts_.open_mpi.empty()) {
      return add("Open MPI", Verdict::failed, "mpirun is not on PATH",
                 "run scripts/setup.sh, or install the Debian package openmpi-bin");
    }
    if (!is_here_ && !facts_.has_orted) {
      return add("Open MPI", Verdict::failed, "orted, its daemon, is not on the PATH of commands through ssh",
                 fmt::format("{}, or extend PATH in the start-up file that ssh's shell reads there", install));
    }
    const std::string& version = facts_.open_mpi;
    if (version.empty()) {
      return add("Open MPI", Verdict::warning, "orted is there, but no mpirun that tells the version", install);
    }
    const auto series = [](const std::string& text) { return text.substr(0, text.find('.', text.find('.') + 1)); };
    if (version == original_.open_mpi) return add("Open MPI", Verdict::ok, version);
    add("Open MPI", series(version) == series(original_.open_mpi) ? Verdict::warning : Verdict::failed,
        fmt::format("{}, but {} here", version, original_.open_mpi.empty() ? "none" : original_.open_mpi), install);
  }

  void judge_cores() {
    if (facts_.cores >= host_.slots) return add("cores", Verdict::ok, fmt::format("{}", facts_.cores));
    add("cores", Verdict::warning, fmt::format("{} for {} slots", facts_.cores, host_.slots),
        "ranks that share a core wait for each other: give the host fewer slots");
  }

  void judge_memory() {
    const std::string what =
        fmt::format("{} free of {}", size_text(facts_.free_memory_bytes), size_text(facts_.memory_bytes));
    if (facts_.free_memory_bytes >= enough_memory_per_rank * slots()) return add("memory", Verdict::ok, what);
    add("memory", Verdict::warning, what, "ranks may be killed for lack of memory: end other programs there");
  }

  void judge_shared_memory() {
    const std::uint64_t needed = shared_memory_per_rank * slots();
    if (facts_.shared_memory_bytes == 0) {
      return add("/dev/shm", Verdict::warning, "there is none", "mount a tmpfs there");
    }
    const std::string what =
        fmt::format("{} free of {}", size_text(facts_.free_shared_memory_bytes), size_text(facts_.shared_memory_bytes));
    if (facts_.free_shared_memory_bytes < needed) {
      return add("/dev/shm", Verdict::failed, fmt::format("{}; Open MPI needs {}", what, size_text(needed)),
                 "remove what dead programs have left in it, or enlarge it: docker run --shm-size=1g, or "
                 "mount -o remount,size=1g /dev/shm");
    }
    if (facts_.shared_memory_bytes < enough_shared_memory) {
      return add("/dev/shm", Verdict::warning, what + ", which is small", "docker run --shm-size=1g");
    }
    add("/dev/shm", Verdict::ok, what);
  }

  void judge_gpus() {
    if (!facts_.gpu_problem.empty()) {
      return add("GPUs", expected_.gpus ? Verdict::failed : Verdict::warning, "nvidia-smi: " + facts_.gpu_problem,
                 "reload the driver or restart the host");
    }
    if (facts_.gpus == 0) {
      if (expected_.gpus) {
        add("GPUs", Verdict::failed, "none", "install the driver there, leave the host out, or pass --device cpu");
      }
      return;
    }
    const std::string what = fmt::format("{}, driver {}", facts_.gpus, facts_.gpu_driver);
    if (expected_.gpus && facts_.gpus < host_.slots) {
      return add("GPUs", Verdict::warning, fmt::format("{}, for {} slots", what, host_.slots),
                 "ranks that share a GPU are slow: give the host one slot per GPU");
    }
    if (!original_.gpu_driver.empty() && facts_.gpu_driver != original_.gpu_driver) {
      return add("GPUs", Verdict::warning, fmt::format("{}, but driver {} here", what, original_.gpu_driver),
                 "bring the hosts to the same driver");
    }
    add("GPUs", Verdict::ok, what);
  }

  void judge_clock() {
    if (!facts_.clock_ahead) return add("clock", Verdict::warning, "it tells no time", "is there a date command?");
    const double ahead = *facts_.clock_ahead;
    if (std::abs(ahead) <= clock_tolerance_seconds) {
      return add("clock", Verdict::ok, fmt::format("{:.1f} s from this machine's", std::abs(ahead)));
    }
    add("clock", Verdict::warning,
        fmt::format("{:.1f} s {} this machine's", std::abs(ahead), ahead > 0 ? "ahead of" : "behind"),
        "logs and builds will confuse you: run a time service, such as systemd-timesyncd or chrony");
  }

  std::uint64_t slots() const { return static_cast<std::uint64_t>(host_.slots); }

  const Host& host_;
  const HostFacts& facts_;
  const HostFacts& original_;
  bool is_here_;
  const Expectations& expected_;
  std::vector<CheckRow> rows_;
};

}  // namespace

std::vector<CheckRow> judge_host(const Host& host, const HostFacts& facts, bool is_here,
                                 const Expectations& expectations) {
  return HostJudge(host, facts, is_here, expectations).judge();
}

}  // namespace fedrun::launcher
