#include <fedrun/collectives/call_terms.h>
#include <fedrun/collectives/hash.h>

#include <algorithm>

namespace fedrun {
namespace {

// Every rank must come to the same answer, so it depends only on what they agree about. In an alltoall no rank knows
// how much the others bring.
bool fits_on_board(const Operation& operation) {
  if (operation.is_on_device()) return false;
  const std::size_t element_bytes = size_of(operation.input.type);
  if (operation.group_digest != 0) return operation.input.bytes() <= inline_bytes;
  switch (operation.kind) {
    case Collective::allreduce:
    case Collective::reduce_scatter:
    case Collective::broadcast:
      return operation.input.count * element_bytes <= inline_bytes;
    case Collective::allgather:
    case Collective::gather:
      return *std::ranges::max_element(operation.counts) * element_bytes <= inline_bytes;
    case Collective::alltoall:
      return false;
    case Collective::barrier:
    case Collective::join:
      return true;
  }
  return false;
}

std::uint64_t digest_of(const Operation& operation) {
  std::uint64_t digest = operation.group_digest;
  if (operation.shape != 0) digest = hash_of(digest, operation.shape);
  if (operation.kind == Collective::alltoall) return digest;  // the ranks' counts differ
  for (const std::size_t count : operation.counts) digest = hash_of(digest, count);
  return digest;
}

bool moves_elements(Collective kind) { return kind != Collective::barrier && kind != Collective::join; }

}  // namespace

CallTerms terms_of(const Operation& operation) {
  const Reduction& reduction = operation.reduction;
  const DataType type = operation.input.type;
  return {.kind = operation.kind,
          .type = type,
          .wire = reduction.wire.value_or(type),
          .op = reduction.op,
          .root = operation.root,
          .count = operation.input.count,
          .weight = reduction.weight.value_or(1.0),
          .prescale = reduction.prescale,
          .postscale = reduction.postscale,
          .digest = digest_of(operation),
          .is_weighted = reduction.weight.has_value(),
          .is_inlined = fits_on_board(operation),
          .is_named = !operation.name.empty(),
          .is_group = operation.group_digest != 0,
          .is_on_device = operation.is_on_device()};
}

bool brings_input(const Operation& operation, int rank) {
  if (operation.kind == Collective::broadcast) return operation.root == rank;
  return moves_elements(operation.kind);
}

bool takes_output(const Operation& operation, int rank) {
  if (operation.group_digest != 0) return false;
  if (operation.kind == Collective::broadcast) return operation.root != rank;
  if (operation.kind == Collective::gather) return operation.root == rank;
  return moves_elements(operation.kind);
}

}  // namespace fedrun
