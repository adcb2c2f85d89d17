#include <arpa/inet.h>
#include <fedrun/launcher/host_probe.h>
#include <fedrun/launcher/shell_words.h>
#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <utility>

namespace fedrun::launcher {
namespace {

constexpr std::string_view line_mark = "@fedrun ";

// POSIX sh with what every Linux has. Answers are lines "@fedrun key=value". The last one tells the time, which is
// compared with the time of its arrival: a slow log-in comes before that, and no noise comes after it.
constexpr std::string_view script_body = R"script(
say() { printf '@fedrun %s=%s\n' "$1" "$2"; }

digest() {
  if command -v sha256sum >/dev/null; then
    sum=$(sha256sum <"$1")
    printf 'sha256:%s' "${sum%% *}"
  fi
}

describe() { # key, file
  if [ ! -e "$2" ]; then say "$1" missing
  elif [ ! -f "$2" ]; then say "$1" not_a_file
  elif [ ! -x "$2" ]; then say "$1" not_executable
  else
    # The size before the digest: a blank and an empty digest, where there is no sha256sum.
    say "$1" "executable $(wc -c <"$2") $(digest "$2") $2"
  fi
}

# As execvp searches: the first executable file wins. Sets $program; empty: there is none.
find_program() {
  case $want_program in
    */*)
      program=$want_program
      return
      ;;
  esac
  program=
  rest=$want_path:
  while [ -n "$rest" ]; do
    file=${rest%%:*}
    file=${file:-.}/$want_program
    rest=${rest#*:}
    if [ -f "$file" ] && [ -x "$file" ]; then
      program=$file
      return
    fi
  done
}

# The addresses at the end differ at each call.
ldd_lines() {
  for file in "$program" "$want_fedrun"; do
    if [ -f "$file" ]; then LD_LIBRARY_PATH=$want_library_path ldd "$file" 2>&1; fi
  done | sed 's/ (0x[0-9a-f]*)$//' | sort -u
}

libraries() {
  command -v ldd >/dev/null || return
  lines=$(ldd_lines)
  tab=$(printf '\t')
  set --
  while IFS= read -r line; do
    case $line in
      *' => not found') name=${line%' => not found'}; say no_library "${name#?}" ;;
      *' not found (required by '*) say no_library "${line#*: }" ;;
      *' => /'*) set -- "$@" "${line#*' => '}" ;;
      "$tab"/*) set -- "$@" "${line#?}" ;;
    esac
  done <<END
$lines
END
  if [ $# -gt 0 ]; then describe_libraries "$@"; fi
}

# The content of small ones; large ones (libtorch_cpu has 400 MB) by their build id.
describe_libraries() {
  sizes=$(stat -Lc '%s %n' -- "$@")
  set --
  while read -r size file; do
    say library_size "$size $file"
    if [ "$size" -le 33554432 ]; then
      set -- "$@" "$file"
    elif command -v readelf >/dev/null; then
      id=$(readelf -n -- "$file" 2>/dev/null | sed -n 's/.*Build ID: //p')
      if [ -n "$id" ]; then say library_digest "build-id:$id $file"; fi
    fi
  done <<END
$sizes
END
  if [ $# -gt 0 ] && command -v sha256sum >/dev/null; then
    sha256sum -- "$@" | while read -r sum file; do say library_digest "sha256:$sum $file"; done
  fi
}

memory() {
  while read -r name amount unit; do
    case $name in
      MemTotal:) say memory "$amount" ;;
      MemAvailable:) say free_memory "$amount" ;;
    esac
  done </proc/meminfo
  df -Pk /dev/shm | while read -r device total used free share place; do
    if [ "$place" = /dev/shm ]; then say shared_memory "$total $free"; fi
  done
}

addresses() {
  PATH=$PATH:/sbin:/usr/sbin # where ip is, and where the PATH of users may not lead
  if command -v ip >/dev/null; then
    ip -o -4 addr show up | while read -r number interface family address rest; do
      say address "${interface%%@*} $address"
    done
  else
    for address in $(hostname -I); do say address " $address"; done
    while read -r interface network gateway flags references uses metric mask rest; do
      say route "$interface $network $gateway $mask"
    done </proc/net/route
  fi
}

gpus() {
  command -v nvidia-smi >/dev/null || return
  # A GPU that has fallen off the bus makes it hang.
  if list=$(timeout 8 nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>&1); then
    say gpu_driver "${list%%
*}"
    say gpus "$(printf '%s\n' "$list" | grep -c .)"
  else
    say gpu_problem "$(printf '%s' "${list:-nvidia-smi does not answer}" | head -n 1)"
  fi
}

probe() {
  printf '\n' # after what the start-up files of a shell may have printed
  say name "$(uname -n)"
  say connection "${SSH_CONNECTION-}"
  say cores "$(nproc)"
  say machine "$(uname -m)"
  if command -v mpirun >/dev/null; then say mpirun "$(mpirun --version 2>&1 | head -n 1)"; fi
  if command -v orted >/dev/null; then say orted yes; fi
  if command -v rsync >/dev/null; then say rsync yes; fi
  memory
  (addresses)
  gpus
  if cd -- "$want_directory"; then say directory yes; fi
  program=
  if [ -n "$want_program" ]; then
    find_program
    describe program "$program"
  fi
  if [ -n "$want_fedrun" ]; then describe fedrun "$want_fedrun"; fi
  libraries
  say complete "$(date +%s.%N)"
}

probe </dev/null 2>/dev/null
exit
)script";

std::string assignment(std::string_view name, std::string_view value) {
  return fmt::format("{}={}\n", name, shell_quote(value));
}

// Cuts off what stands before the first blank.
std::string_view take_word(std::string_view& text) {
  const size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

template <typename Number>
Number number(std::string_view text) {
  Number value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::uint64_t kibibytes(std::string_view text) { return number<std::uint64_t>(text) * 1024; }

FileFacts parse_file(std::string_view value) {
  FileFacts facts;
  const std::string_view state = take_word(value);
  if (state == "missing") facts.state = FileState::missing;
  if (state == "not_a_file") facts.state = FileState::not_a_file;
  if (state == "not_executable") facts.state = FileState::not_executable;
  if (state == "executable") {
    facts.state = FileState::executable;
    facts.bytes = number<std::uint64_t>(take_word(value));
    facts.digest = take_word(value);
    facts.path = value;
  }
  return facts;
}

// "eth0 10.0.0.1/24", or " 10.0.0.1" from a host without the program ip.
void parse_address(std::string_view value, HostFacts& facts) {
  InterfaceAddress found;
  found.interface = take_word(value);
  const std::optional<Ipv4> address = parse_ipv4(value.substr(0, value.find('/')));
  if (!address) return;
  found.address = *address;
  found.network = parse_network(value);
  facts.addresses.push_back(std::move(found));
}

// A line of /proc/net/route, "eth0 000011AC 00000000 0000FFFF", whose numbers have the first byte last. It tells the
// network of an address that came without.
void parse_route(std::string_view value, HostFacts& facts) {
  const auto hexadecimal = [&] {
    const std::string_view digits = take_word(value);
    Ipv4 number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
    return Ipv4{ntohl(number)};
  };
  const std::string_view interface = take_word(value);
  const Ipv4 first = hexadecimal();
  const Ipv4 gateway = hexadecimal();
  const Ipv4 mask = hexadecimal();
  if (gateway != 0 || mask == 0) return;
  const Ipv4Network network = network_of(first, std::popcount(mask));
  for (InterfaceAddress& address : facts.addresses) {
    if (!address.network && network.contains(address.address)) {
      address.network = network;
      address.interface = interface;
    }
  }
}

// sshd's words: the client's address and port, the server's address and port.
void parse_connection(std::string_view value, HostFacts& facts) {
  facts.reached_from = parse_ipv4(take_word(value));
  take_word(value);
  facts.reached_at = parse_ipv4(take_word(value));
}

FileFacts& library(HostFacts& facts, std::string_view path) {
  for (FileFacts& known : facts.libraries) {
    if (known.path == path) return known;
  }
  return facts.libraries.emplace_back(FileFacts{.state = FileState::executable, .path = std::string(path)});
}

void parse_answer(std::string_view key, std::string_view value, std::chrono::system_clock::time_point received_at,
                  HostFacts& facts) {
  if (key == "name") {
    facts.name = value;
  } else if (key == "connection") {
    parse_connection(value, facts);
  } else if (key == "cores") {
    facts.cores = number<int>(value);
  } else if (key == "machine") {
    facts.machine = value;
  } else if (key == "mpirun") {
    facts.open_mpi = open_mpi_version(value);
  } else if (key == "orted") {
    facts.has_orted = true;
  } else if (key == "rsync") {
    facts.has_rsync = true;
  } else if (key == "memory") {
    facts.memory_bytes = kibibytes(value);
  } else if (key == "free_memory") {
    facts.free_memory_bytes = kibibytes(value);
  } else if (key == "shared_memory") {
    facts.shared_memory_bytes = kibibytes(take_word(value));
    facts.free_shared_memory_bytes = kibibytes(value);
  } else if (key == "address") {
    parse_address(value, facts);
  } else if (key == "route") {
    parse_route(value, facts);
  } else if (key == "gpus") {
    facts.gpus = number<int>(value);
  } else if (key == "gpu_driver") {
    facts.gpu_driver = value;
  } else if (key == "gpu_problem") {
    facts.gpu_problem = value;
  } else if (key == "directory") {
    facts.has_directory = true;
  } else if (key == "program") {
    facts.program = parse_file(value);
  } else if (key == "fedrun") {
    facts.fedrun = parse_file(value);
  } else if (key == "no_library") {
    facts.missing_libraries.emplace_back(value);
  } else if (key == "library_size") {
    const std::string_view size = take_word(value);
    library(facts, value).bytes = number<std::uint64_t>(size);
  } else if (key == "library_digest") {
    const std::string_view digest = take_word(value);
    library(facts, value).digest = digest;
  } else if (key == "complete") {
    facts.complete = true;
    const std::chrono::duration<double> here = received_at.time_since_epoch();
    if (!value.empty()) facts.clock_ahead = number<double>(value) - here.count();
  }
}

}  // namespace

bool FileFacts::same_content(const FileFacts& other) const {
  if (bytes != other.bytes) return false;
  const auto kind = [](const std::string& text) { return text.substr(0, text.find(':')); };
  return kind(digest) != kind(other.digest) || digest == other.digest;
}

std::string open_mpi_version(std::string_view mpirun_says) {
  constexpr std::string_view before = "(Open MPI) ";
  const size_t found = mpirun_says.find(before);
  if (found == std::string_view::npos) return {};
  mpirun_says.remove_prefix(found + before.size());
  return std::string(mpirun_says.substr(0, mpirun_says.find_first_of(" \n")));
}

std::string probe_script(const ProbeQuestions& questions) {
  return "LC_ALL=C\nexport LC_ALL\n" + assignment("want_directory", questions.directory) +
         assignment("want_program", questions.program) + assignment("want_fedrun", questions.fedrun) +
         assignment("want_path", questions.search_path) + assignment("want_library_path", questions.library_path) +
         std::string(script_body);
}

HostFacts parse_probe(std::string_view output, std::chrono::system_clock::time_point received_at) {
  HostFacts facts;
  while (!output.empty()) {
    const size_t end = std::min(output.find('\n'), output.size());
    std::string_view line = output.substr(0, end);
    output.remove_prefix(std::min(end + 1, output.size()));
    const size_t equals = line.find('=');
    if (!line.starts_with(line_mark) || equals == std::string_view::npos) continue;
    parse_answer(line.substr(line_mark.size(), equals - line_mark.size()), line.substr(equals + 1), received_at, facts);
  }
  return facts;
}

}  // namespace fedrun::launcher
