#include "bench_flags.h"

#include <fedrun/core/flags.h>
#include <fedrun/core/parse.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "flag_reader.h"

namespace fedrun::bench {
namespace {

cxxopts::Options describe_flags() {
  cxxopts::Options options("allreduce_bench",
                           "Times collectives by size and checks their results; run it under fedrun.");
  const auto text = [](const char* standard) { return cxxopts::value<std::string>()->default_value(standard); };
  // clang-format off
  options.add_options()
    ("b,min-bytes", "smallest size; K, M and G are powers of 1024", text("4K"))
    ("e,max-bytes", "largest size", text("64M"))
    ("f,factor", "from one size to the next", text("4"))
    ("w,warmup", "untimed rounds per size", text("5"))
    ("n,iterations", "timed rounds per size; the median is shown", text("20"))
    ("collective", "all, or a list of allreduce, reduce_scatter, broadcast, allgather, gather, alltoall, barrier",
     cxxopts::value<std::vector<std::string>>()->default_value("allreduce"))
    ("type", "u8, i8, i32, i64, f16, bf16, f32, f64 or bool", text("f32"))
    ("op", "average, sum, min, max, product or adasum", text("sum"))
    ("wire", "f16 or bf16: what f32 elements travel as between hosts", cxxopts::value<std::string>())
    ("device", "auto, cpu or cuda: whose memory the elements lie in; auto: the GPU of each rank, where the run has them", text("auto"))
    ("memory", "allocated (by fedrun), ordinary or both", text("allocated"))
    ("place", "in, out or both: where allreduce puts its result", text("in"))
    ("async", "so many named asynchronous allreduces of the smallest size at once, instead of the rest", cxxopts::value<std::string>())
    ("compare", "list of mpi (plain MPI) and limit (a bare loop in shared memory)",
     cxxopts::value<std::vector<std::string>>())
    ("json", "also write results to this file, or with - among the output, one JSON object per line", cxxopts::value<std::string>());
  // clang-format on
  return options;
}

std::size_t parse_bytes(std::string_view text) {
  constexpr std::string_view suffixes = "KMG";
  const char last = text.empty() ? '\0' : static_cast<char>(std::toupper(static_cast<unsigned char>(text.back())));
  const std::size_t power = suffixes.find(last) + 1;  // npos + 1 is 0
  if (power != 0) text.remove_suffix(1);
  constexpr std::size_t largest = std::size_t{1} << 50;
  return parse_integer<std::size_t>(text, 1, largest >> (10 * power)) << (10 * power);
}

std::vector<Collective> read_collectives(const FlagReader& flags) {
  using enum Collective;
  using Group = std::vector<Collective>;
  const Group all = {allreduce, reduce_scatter, broadcast, allgather, gather, alltoall, barrier};
  Group collectives;
  for (const Group& group : flags.list<Group>("collective", {{"allreduce", {allreduce}},
                                                             {"reduce_scatter", {reduce_scatter}},
                                                             {"broadcast", {broadcast}},
                                                             {"allgather", {allgather}},
                                                             {"gather", {gather}},
                                                             {"alltoall", {alltoall}},
                                                             {"barrier", {barrier}},
                                                             {"all", all}})) {
    collectives.insert(collectives.end(), group.begin(), group.end());
  }
  return collectives;
}

void read_sizes(const FlagReader& flags, Flags& into) {
  into.min_bytes = flags.read("min-bytes", parse_bytes);
  into.max_bytes = flags.read("max-bytes", parse_bytes);
  into.factor = flags.read("factor", [](std::string_view text) { return parse_integer<std::size_t>(text, 2, 1024); });
  const auto rounds = [](int fewest) {
    return [fewest](std::string_view text) { return parse_integer<int>(text, fewest, 1'000'000); };
  };
  into.rounds.warmup = flags.read("warmup", rounds(0));
  into.rounds.iterations = flags.read("iterations", rounds(1));
  if (flags.has("async")) {
    into.async_operations =
        flags.read("async", [](std::string_view text) { return parse_integer<std::size_t>(text, 1, 1'000'000); });
  }
}

void read_elements(const FlagReader& flags, Flags& into) {
  into.type = flags.word<DataType>("type", {{"u8", DataType::u8},
                                            {"i8", DataType::i8},
                                            {"i32", DataType::i32},
                                            {"i64", DataType::i64},
                                            {"f16", DataType::f16},
                                            {"bf16", DataType::bf16},
                                            {"f32", DataType::f32},
                                            {"f64", DataType::f64},
                                            {"bool", DataType::boolean}});
  into.op = flags.word<ReduceOp>("op", {{"average", ReduceOp::average},
                                        {"sum", ReduceOp::sum},
                                        {"min", ReduceOp::min},
                                        {"max", ReduceOp::max},
                                        {"product", ReduceOp::product},
                                        {"adasum", ReduceOp::adasum}});
  if (flags.has("wire")) {
    into.wire = flags.word<DataType>("wire", {{"f16", DataType::f16}, {"bf16", DataType::bf16}});
  }
  into.device = flags.device();
  into.memories =
      flags.word<std::vector<MemoryKind>>("memory", {{"allocated", {MemoryKind::allocated}},
                                                     {"ordinary", {MemoryKind::ordinary}},
                                                     {"both", {MemoryKind::allocated, MemoryKind::ordinary}}});
  into.places = flags.word<std::vector<Place>>(
      "place", {{"in", {Place::in}}, {"out", {Place::out}}, {"both", {Place::in, Place::out}}});
}

void read_rivals(const FlagReader& flags, Flags& into) {
  if (!flags.has("compare")) return;
  for (bool Flags::*rival : flags.list<bool Flags::*>(
           "compare", {{"mpi", &Flags::compare_with_mpi}, {"limit", &Flags::compare_with_limit}})) {
    into.*rival = true;
  }
}

void check_mpi_can_reduce(const Flags& flags) {
  if (flags.op == ReduceOp::average || flags.op == ReduceOp::adasum) {
    throw UsageError(
        fmt::format("--compare mpi: MPI has no {}; use --op sum, min, max or product", to_string(flags.op)));
  }
  if (flags.type == DataType::f16 || flags.type == DataType::bf16) {
    throw UsageError(
        fmt::format("--compare mpi: MPI cannot reduce {} elements; use --type f32, or a --collective that "
                    "only moves them",
                    to_string(flags.type)));
  }
}

// Each flag is right by itself; some do not go together. What fedrun itself refuses, it refuses when it is called.
void check_together(const Flags& flags) {
  const bool is_allreduce = flags.collectives == std::vector{Collective::allreduce};
  const bool reduces = std::ranges::any_of(flags.collectives, reduces_elements);
  const bool is_in_place = flags.places == std::vector{Place::in};
  if (flags.async_operations != 0 && !is_allreduce) {
    throw UsageError("--async submits allreduces: leave --collective out");
  }
  if (flags.async_operations == 0 && flags.max_bytes < flags.min_bytes) {
    throw UsageError(
        fmt::format("-e {} is smaller than -b {}: the sizes go from -b to -e", flags.max_bytes, flags.min_bytes));
  }
  if (flags.device == DeviceChoice::cuda && (flags.compare_with_mpi || flags.compare_with_limit)) {
    throw UsageError("--compare: the others work in the memory of the host; use --device cpu");
  }
  if (flags.compare_with_mpi && reduces) check_mpi_can_reduce(flags);
  if (flags.compare_with_limit && !(is_allreduce && is_in_place && flags.async_operations == 0 &&
                                    flags.type == DataType::f32 && flags.op == ReduceOp::sum)) {
    throw UsageError(
        "--compare limit: the bare loop does one f32 sum in place; use it with --collective allreduce, --type f32, "
        "--op sum and --place in, which are the defaults, and without --async");
  }
}

}  // namespace

std::optional<Flags> read_flags(int argc, char** argv, int rank) {
  cxxopts::Options options = describe_flags();
  const auto parsed = parse_flags(options, argc, argv, rank);
  if (!parsed) return std::nullopt;
  const FlagReader reader("allreduce_bench", *parsed);
  Flags flags;
  read_sizes(reader, flags);
  read_elements(reader, flags);
  read_rivals(reader, flags);
  flags.collectives = read_collectives(reader);
  if (reader.has("json")) flags.json_path = reader.text("json");
  check_together(flags);
  return flags;
}

}  // namespace fedrun::bench
