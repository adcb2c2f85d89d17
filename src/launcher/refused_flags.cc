#include <fedrun/launcher/refused_flags.h>
#include <fedrun/launcher/split_list.h>

#include <algorithm>

namespace fedrun::launcher {
namespace {

constexpr const char* fixed_ranks =
    "fedrun runs a fixed number of ranks on fixed hosts: give -np and -H, and start again when a host is lost";
constexpr const char* no_autotune = "this version of fedrun tunes nothing by itself while it runs; leave it out";
constexpr const char* rank_lines = "what ranks log carries no time of its own; --timestamps puts it before every line";

constexpr RefusedFlag refused[] = {
    // horovodrun's
    {"--cycle-time-ms", "fedrun has no polling thread, so there is no cycle; leave it out"},
    {"--fusion-threshold-mb",
     "gradients travel in buckets that DistributedOptimizer plans after the first step; leave it out"},
    {"--cache-capacity",
     "fedrun plans reductions instead of negotiating them, so there is nothing to cache; leave it out"},
    {"--hierarchical-allreduce --hierarchical-allgather",
     "fedrun always works in two levels, inside the hosts and between them; leave it out"},
    {"--no-hierarchical-allreduce --no-hierarchical-allgather",
     "fedrun works in two levels, inside the hosts and between them; --backend mpi treats every rank as a host of its "
     "own"},
    {"--autotune --autotune-log-file --autotune-warmup-samples --autotune-steps-per-sample "
     "--autotune-bayes-opt-max-samples --autotune-gaussian-process-noise",
     no_autotune},
    {"--timeline-mark-cycles --no-timeline-mark-cycles", "fedrun has no cycles that it could mark; leave it out"},
    {"--min-np --min-num-proc --max-np --max-num-proc --host-discovery-script --reset-limit --elastic-timeout "
     "--blacklist-cooldown-range",
     fixed_ranks},
    {"--thread-affinity", "fedrun has no background thread to pin; --bind core keeps each rank on cores of its own"},
    {"--num-nccl-streams", "every group of ranks has one stream for NCCL; leave it out"},
    {"--mpi-threads-disable --no-mpi-threads-disable", "fedrun calls MPI from one thread at a time; leave it out"},
    {"--gloo --use-gloo", "fedrun's ranks find each other through MPI; leave it out"},
    {"--gloo-timeout-seconds",
     "fedrun's ranks find each other through MPI; --start-timeout limits how long that may take"},
    {"--jsrun --use-jsrun", "fedrun starts its ranks with mpirun; leave it out"},
    {"--tcp -tcp", "to keep to TCP between the hosts, write --mpi-args '--mca pml ob1 --mca btl self,vader,tcp'"},
    {"--log-with-timestamp --log-without-timestamp --log-hide-timestamp --no-log-hide-timestamp", rank_lines},
    // mpirun's
    {"--mca -mca", "write it as --mpi-args '--mca NAME VALUE'"},
    {"--bind-to -bind-to", "write --bind core, --bind socket or --bind none; other kinds go into --binding-args"},
    {"--map-by -map-by --rank-by -rank-by",
     "ranks fill the slots of the first host, then the next one's: order the hosts in -H"},
    {"--oversubscribe -oversubscribe",
     "this machine takes any number of ranks; give other hosts more slots in -H; leave it out"},
    {"--allow-run-as-root -allow-run-as-root", "fedrun tells mpirun so by itself; leave it out"},
    {"--tag-output -tag-output", "fedrun puts the rank before each line anyway; leave it out"},
    {"-N --npernode -npernode", "give each host its slots, as in -H a:2,b:2, or all the same by --slots-per-host"},
};

bool has_name(const RefusedFlag& flag, std::string_view name) {
  const auto names = split_list(flag.names, ' ');
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::span<const RefusedFlag> refused_flags() { return refused; }

const RefusedFlag* find_refused_flag(std::string_view name) {
  const auto* found = std::find_if(std::begin(refused), std::end(refused),
                                   [&](const RefusedFlag& flag) { return has_name(flag, name); });
  return found == std::end(refused) ? nullptr : found;
}

}  // namespace fedrun::launcher
