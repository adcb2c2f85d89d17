#include <fedrun/collectives/operation.h>
#include <fedrun/collectives/types.h>

#include <array>

namespace fedrun {
namespace {

struct TypeFacts {
  std::size_t bytes;
  std::string_view name;
};

constexpr std::array<TypeFacts, 9> type_facts = {{
    {1, "u8"},
    {1, "i8"},
    {4, "i32"},
    {8, "i64"},
    {2, "f16"},
    {2, "bf16"},
    {4, "f32"},
    {8, "f64"},
    {1, "bool"},
}};

constexpr std::array<std::string_view, 6> op_names = {"average", "sum", "min", "max", "product", "adasum"};
constexpr std::array<std::string_view, 8> collective_names = {"allreduce", "reduce_scatter", "broadcast", "allgather",
                                                              "gather",    "alltoall",       "barrier",   "join"};

}  // namespace

std::size_t size_of(DataType type) { return type_facts[static_cast<std::size_t>(type)].bytes; }
std::string_view to_string(DataType type) { return type_facts[static_cast<std::size_t>(type)].name; }
std::string_view to_string(ReduceOp op) { return op_names[static_cast<std::size_t>(op)]; }
std::string_view to_string(Collective kind) { return collective_names[static_cast<std::size_t>(kind)]; }

}  // namespace fedrun
