#include <fedrun/core/parse.h>
#include <fedrun/launcher/flag_table.h>
#include <fedrun/launcher/flag_values.h>

namespace fedrun::launcher {
namespace {

constexpr int most_ranks = 65536;
constexpr int most_start_seconds = 86'400;      // a day
constexpr int most_run_seconds = 366 * 86'400;  // a year

constexpr const char* where = "Where to run";
constexpr const char* devices = "Which GPU and which cores";
constexpr const char* checks = "Checks before the start";
constexpr const char* output = "Output";
constexpr const char* limits = "Time limits";
constexpr const char* debugging = "Debugging";
constexpr const char* ranks = "What the ranks get";
constexpr const char* about = "About fedrun";
constexpr const char* already_so = "What fedrun does anyway, for command lines written for horovodrun";

constexpr Flag flags[] = {
    {.group = where,
     .names = "-np -n --num-proc",
     .also = "--np",
     .value = "N",
     .help = "number of ranks; default: one per slot of the hosts, else one per GPU of this machine, else 1",
     .apply = [](Options& options, std::string_view value) { options.ranks = parse_integer(value, 1, most_ranks); }},
    {.group = where,
     .names = "-H --hosts",
     .also = "--host -host",
     .value = "LIST",
     .help = "hosts and their slots, such as a:2,b:2; default: the Slurm allocation, else this machine",
     .subject = "hosts",
     .apply = [](Options& options, std::string_view value) { options.hosts = value; }},
    {.group = where,
     .names = "--hostfile",
     .also = "-hostfile -machinefile --machinefile",
     .value = "FILE",
     .help = "hosts one per line: 'a slots=2', 'a:2' or 'a'; # begins a comment",
     .subject = "hosts",
     .apply = [](Options& options, std::string_view value) { options.hostfile = path_value(value); }},
    {.group = where,
     .names = "--slots-per-host",
     .value = "N",
     .help = "slots of a host that is named without a number; default: 1",
     .apply = [](Options& options,
                 std::string_view value) { options.slots_per_host = parse_integer(value, 1, most_ranks); }},
    {.group = where,
     .names = "--no-slurm",
     .help = "inside a Slurm allocation, run on this machine",
     .apply = [](Options& options, std::string_view) { options.use_slurm = false; }},
    {.group = where,
     .names = "-p --ssh-port",
     .value = "N",
     .help = "port on which the hosts answer ssh",
     .apply = [](Options& options, std::string_view value) { options.ssh_port = parse_integer(value, 1, 65535); }},
    {.group = where,
     .names = "-i --ssh-identity-file",
     .value = "FILE",
     .help = "private key for ssh",
     .apply = [](Options& options, std::string_view value) { options.ssh_identity_file = path_value(value); }},
    {.group = where,
     .names = "--network-interfaces",
     .also = "--network-interface",
     .value = "LIST",
     .help = "interfaces or networks between the hosts, such as eth0,10.0.0.0/8; default: found by itself",
     .apply = [](Options& options,
                 std::string_view value) { options.network_interfaces = network_interfaces_value(value); }},
    {.group = where,
     .names = "--sync",
     .value = "PATH",
     .help = "copy this file or folder to every host first; may be repeated",
     .repeats = true,
     .apply = [](Options& options, std::string_view value) { options.sync.push_back(path_value(value)); }},
    {.group = where,
     .names = "--mpi-args",
     .value = "WORDS",
     .help = "more arguments for mpirun, such as '--mca btl_tcp_eager_limit 65536'; may be repeated",
     .repeats = true,
     .apply = [](Options& options, std::string_view value) { append_mpi_arguments(options.mpi_arguments, value); }},

    {.group = where,
     .names = "--config",
     .also = "--config-file",
     .value = "FILE",
     .help = "flags from a YAML file, such as 'np: 4'; flags on the command line win",
     .asks = true,
     .apply = [](Options& options, std::string_view value) { options.config_file = path_value(value); }},

    {.group = devices,
     .names = "--gpu-mapping",
     .also = "--gpu-mapping-file",
     .value = "FILE",
     .help = "YAML file that says how many ranks each GPU of each host takes; default: one after the other",
     .apply = [](Options& options, std::string_view value) { options.gpu_mapping_file = path_value(value); }},
    {.group = devices,
     .names = "--gpu-mapping-key",
     .value = "KEY",
     .help = "which mapping of that file; default: mapping_default",
     .needs = "--gpu-mapping",
     .apply = [](Options& options, std::string_view value) { options.gpu_mapping_key = name_value(value); }},
    {.group = devices, .names = "--device", .value = "NAME", .variable = "FEDRUN_DEVICE"},
    {.group = devices,
     .names = "--bind",
     .value = "core|socket|none",
     .help = "keep each rank on cores of its own, on one socket, or let the system choose; default: none",
     .subject = "binding",
     .apply =
         [](Options& options, std::string_view value) {
           options.binding = parse_word<Binding>(
               value, {{"core", Binding::core}, {"socket", Binding::socket}, {"none", Binding::none}});
         }},
    {.group = devices,
     .names = "--binding-args",
     .value = "WORDS",
     .help = "mpirun's own arguments for binding, such as '--bind-to l3cache --report-bindings'",
     .subject = "binding",
     .apply = [](Options& options, std::string_view value) { append_mpi_arguments(options.mpi_arguments, value); }},
    {.group = devices, .names = "--threads", .value = "N", .variable = "FEDRUN_THREADS"},

    {.group = checks,
     .names = "--disable-cache",
     .help = "check hosts again that passed a short while ago",
     .apply = [](Options& options, std::string_view) { options.use_cache = false; }},
    {.group = checks,
     .names = "-cb --check-build",
     .help = "what this build and this machine can do, and remedies",
     .asks = true,
     .apply = [](Options& options, std::string_view) { options.action = Action::check_build; }},

    {.group = output,
     .names = "--output-dir",
     .also = "--output-filename",
     .value = "DIR",
     .help = "also write what each rank prints into files of its own there",
     .apply = [](Options& options, std::string_view value) { options.output_directory = path_value(value); }},
    {.group = output,
     .names = "--timestamps",
     .also = "--prefix-output-with-timestamp -prefix-output-with-timestamp --timestamp-output",
     .help = "put the time before each line",
     .apply = [](Options& options, std::string_view) { options.timestamps = true; }},
    {.group = output,
     .names = "--no-prefix",
     .help = "do not put the rank before each line",
     .apply = [](Options& options, std::string_view) { options.prefix = false; }},
    {.group = output,
     .names = "--verbose",
     .help = "show where each rank runs, the mpirun command and all that mpirun says",
     .apply = [](Options& options, std::string_view) { options.verbose = true; }},
    {.group = output,
     .names = "--dry-run",
     .help = "show where each rank would run and the mpirun command, and start nothing",
     .apply = [](Options& options, std::string_view) { options.dry_run = true; }},

    {.group = limits,
     .names = "--start-timeout",
     .value = "SECONDS",
     .help = "give up when not all ranks have come up (made a Session) by then",
     .apply = [](Options& options,
                 std::string_view value) { options.start_timeout = seconds_value(value, most_start_seconds); }},
    {.group = limits,
     .names = "--timeout",
     .value = "SECONDS",
     .help = "end the run by then",
     .apply = [](Options& options,
                 std::string_view value) { options.timeout = seconds_value(value, most_run_seconds); }},
    {.group = limits,
     .names = "--stall-warn",
     .also = "--stall-check-warning-time-seconds",
     .value = "SECONDS",
     .variable = "FEDRUN_STALL_WARN_SECONDS"},
    {.group = limits,
     .names = "--stall-abort",
     .also = "--stall-check-shutdown-time-seconds",
     .value = "SECONDS",
     .variable = "FEDRUN_STALL_ABORT_SECONDS"},
    {.group = limits,
     .names = "--no-stall-check",
     .help = "neither warn about stalled operations nor give them up",
     .subject = "stall-check",
     .apply =
         [](Options& options, std::string_view) {
           options.settings.emplace_back("FEDRUN_STALL_WARN_SECONDS", "0");
           options.settings.emplace_back("FEDRUN_STALL_ABORT_SECONDS", "0");
         }},

    {.group = debugging,
     .names = "--debug-rank",
     .value = "RANK",
     .help = "start this rank under a debugger",
     .apply = [](Options& options,
                 std::string_view value) { options.debug_rank = parse_integer(value, 0, most_ranks - 1); }},
    {.group = debugging,
     .names = "--debug-with",
     .value = "gdbserver|gdb",
     .help = "which debugger: one to attach to, or gdb in a terminal of its own; default: gdbserver",
     .needs = "--debug-rank",
     .apply =
         [](Options& options, std::string_view value) {
           options.debugger = parse_word<Debugger>(value, {{"gdbserver", Debugger::gdbserver}, {"gdb", Debugger::gdb}});
         }},

    {.group = ranks,
     .names = "-x",
     .value = "NAME[=VALUE]",
     .help = "pass an environment variable to every rank; may be repeated",
     .repeats = true,
     .apply = [](Options& options, std::string_view value) { options.pass.emplace_back(value); }},
    {.group = ranks,
     .names = "--log-level",
     .value = "LEVEL",
     .variable = "FEDRUN_LOG_LEVEL",
     .translate = log_level_value},
    {.group = ranks, .names = "--backend", .value = "NAME", .variable = "FEDRUN_BACKEND"},
    {.group = ranks, .names = "--peer-memory", .value = "WHEN", .variable = "FEDRUN_PEER_MEMORY"},
    {.group = ranks,
     .names = "--timeline",
     .also = "--timeline-filename",
     .value = "FILE",
     .variable = "FEDRUN_TIMELINE"},

    {.group = about,
     .names = "-v --version",
     .help = "the version of fedrun",
     .asks = true,
     .apply = [](Options& options, std::string_view) { options.action = Action::show_version; }},
    {.group = about,
     .names = "--completion",
     .value = "bash|zsh",
     .help = "print a completion script for the shell: source <(fedrun --completion bash)",
     .asks = true,
     .apply =
         [](Options& options, std::string_view value) {
           options.completion_shell = parse_word<std::string>(value, {{"bash", "bash"}, {"zsh", "zsh"}});
           options.action = Action::completion;
         }},
    {.group = about,
     .names = "--man-page",
     .help = "print the man page: fedrun --man-page | man -l -",
     .asks = true,
     .apply = [](Options& options, std::string_view) { options.action = Action::man_page; }},
    {.group = about,
     .names = "-h --help",
     .help = "this text",
     .asks = true,
     .apply = [](Options& options, std::string_view) { options.action = Action::show_help; }},

    {.group = already_so,
     .names = "--mpi",
     .also = "--use-mpi",
     .help = "start the ranks over MPI",
     .apply = [](Options&, std::string_view) {}},
    {.group = already_so,
     .names = "--stall-check",
     .help = "watch for stalled operations",
     .subject = "stall-check",
     .apply = [](Options&, std::string_view) {}},
    {.group = already_so,
     .names = "--no-autotune",
     .help = "tune nothing while the program runs",
     .apply = [](Options&, std::string_view) {}},
};

}  // namespace

std::span<const Flag> flag_table() { return flags; }

}  // namespace fedrun::launcher
