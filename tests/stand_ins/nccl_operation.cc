// Carries out operations of NCCL: each rank sends the others what they need of its elements.
#include "stand_ins/nccl_operation.h"

#include <fedrun/collectives/element_dispatch.h>
#include <unistd.h>

#include <cstring>
#include <iterator>
#include <optional>
#include <type_traits>

#include "stand_ins/stand_in_control.h"
#include "stand_ins/stand_in_device.h"

namespace stand_in {

namespace {

constexpr unsigned sleep_microseconds = 100;

fedrun::DataType type_of(ncclDataType_t type) {
  using fedrun::DataType;
  switch (type) {
    case ncclInt8:
      return DataType::i8;
    case ncclInt32:
      return DataType::i32;
    case ncclInt64:
      return DataType::i64;
    case ncclFloat16:
      return DataType::f16;
    case ncclBfloat16:
      return DataType::bf16;
    case ncclFloat32:
      return DataType::f32;
    case ncclFloat64:
      return DataType::f64;
    default:
      return DataType::u8;
  }
}

template <typename T>
T combine(T a, T b, int op) {
  const auto left = fedrun::widen(a);
  const auto right = fedrun::widen(b);
  using Wide = std::remove_const_t<decltype(left)>;
  if (op == ncclProd) return fedrun::narrow<T>(static_cast<Wide>(left * right));
  // As on devices, a number and a NaN make the number.
  if (op == ncclMax) return left != left || left < right ? b : a;
  if (op == ncclMin) return left != left || right < left ? b : a;
  return fedrun::narrow<T>(static_cast<Wide>(left + right));  // halves are rounded at each step, as on devices
}

// `parts` hold every rank's elements, one rank after the other; the first becomes the result.
void combine_parts(std::vector<std::byte>& parts, std::size_t count, int ranks, ncclDataType_t type, int op) {
  fedrun::dispatch_element_type(type_of(type), [&](auto* pointer) {
    using T = std::remove_pointer_t<decltype(pointer)>;
    auto* elements = reinterpret_cast<T*>(parts.data());
    for (int rank = 1; rank < ranks; ++rank) {
      for (std::size_t i = 0; i < count; ++i) {
        elements[i] = combine(elements[i], elements[static_cast<std::size_t>(rank) * count + i], op);
      }
    }
  });
}

void multiply(std::vector<std::byte>& elements, std::size_t count, const PreMultiplier& multiplier) {
  fedrun::dispatch_element_type(type_of(multiplier.type), [&](auto* pointer) {
    using T = std::remove_pointer_t<decltype(pointer)>;
    T factor;
    std::memcpy(&factor, &multiplier.scalar, sizeof factor);
    auto* first = reinterpret_cast<T*>(elements.data());
    for (std::size_t i = 0; i < count; ++i) first[i] = combine(first[i], factor, ncclProd);
  });
}

std::vector<std::byte> copy_of(const void* data, std::size_t bytes) {
  std::vector<std::byte> copy(bytes);
  if (bytes != 0) std::memcpy(copy.data(), seen_by_device(data), bytes);
  return copy;
}

// Everyone sends what each rank needs of its input; who gets a result combines what has come, in rank order.
void run_reduction(const Call& call, const std::optional<PreMultiplier>& multiplier, std::uint32_t memory) {
  ncclComm& communicator = *call.communicator;
  const int ranks = communicator.ranks;
  const bool is_scatter = call.kind == reduce_scatter;
  const std::size_t part_bytes = bytes_of(call.output_count, call.type);
  std::vector<std::byte> mine = copy_of(call.input, bytes_of(call.input_count, call.type));
  if (multiplier) multiply(mine, call.input_count, *multiplier);
  const bool gets_result = call.kind != reduce || communicator.rank == call.root;
  std::vector<std::byte> parts(gets_result ? static_cast<std::size_t>(ranks) * part_bytes : 0);
  Exchange exchange(communicator, call.kind, call.type, memory);
  for (int peer = 0; peer < ranks; ++peer) {
    const auto index = static_cast<std::size_t>(peer);
    std::byte* first = mine.data() + (is_scatter ? index * part_bytes : 0);
    if (call.kind != reduce || peer == call.root) exchange.send(peer, first, part_bytes);
    if (gets_result) exchange.receive(peer, parts.data() + index * part_bytes, part_bytes);
  }
  if (!exchange.run() || !gets_result) return;
  combine_parts(parts, call.output_count, ranks, call.type, multiplier ? ncclSum : call.op);
  std::memcpy(seen_by_device(call.output), parts.data(), part_bytes);
}

void run_copy(const Call& call) {
  ncclComm& communicator = *call.communicator;
  const bool is_root = call.kind == all_gather || communicator.rank == call.root;
  const std::size_t bytes = bytes_of(call.input_count, call.type);
  std::vector<std::byte> mine = is_root ? copy_of(call.input, bytes) : std::vector<std::byte>();
  auto* output = static_cast<std::byte*>(seen_by_device(call.output));
  Exchange exchange(communicator, call.kind, call.type);
  for (int peer = 0; peer < communicator.ranks; ++peer) {
    if (is_root) exchange.send(peer, mine.data(), bytes);
    if (call.kind == all_gather) exchange.receive(peer, output + static_cast<std::size_t>(peer) * bytes, bytes);
  }
  if (call.kind == broadcast) exchange.receive(call.root, output, bytes);
  exchange.run();
}

// All sends and receives of one group at once.
void run_messages(const std::vector<Call>& calls) {
  Exchange exchange(*calls.front().communicator, send_receive, calls.front().type);
  for (const Call& call : calls) {
    if (call.input != nullptr) {
      exchange.send(call.root, static_cast<std::byte*>(seen_by_device(call.input)),
                    bytes_of(call.input_count, call.type));
    } else {
      exchange.receive(call.root, static_cast<std::byte*>(seen_by_device(call.output)),
                       bytes_of(call.output_count, call.type));
    }
  }
  exchange.run();
}

bool is_registered(const ncclComm& communicator, const void* data) {
  const auto* place = static_cast<const std::byte*>(data);
  const auto next = communicator.registered.upper_bound(place);
  return next != communicator.registered.begin() && place < std::prev(next)->first + std::prev(next)->second;
}

// Of a reduction; only the root of ncclReduce has an output.
std::uint32_t registered_memory(const Call& call) {
  const std::uint32_t input = is_registered(*call.communicator, call.input) ? 1 : 0;
  const std::uint32_t output = call.kind != reduce && is_registered(*call.communicator, call.output) ? 2 : 0;
  return input | output;
}

std::vector<Access> accesses_of(const Call& call) {
  std::vector<Access> accesses;
  const bool reads = call.input != nullptr && (call.kind != broadcast || call.communicator->rank == call.root);
  const bool writes = call.output != nullptr && (call.kind != reduce || call.communicator->rank == call.root);
  if (reads) accesses.push_back({call.input, bytes_of(call.input_count, call.type), false});
  if (writes) accesses.push_back({call.output, bytes_of(call.output_count, call.type), true});
  return accesses;
}

}  // namespace

std::size_t bytes_of(std::size_t count, ncclDataType_t type) { return count * fedrun::size_of(type_of(type)); }

void put_on_stream(const std::vector<Call>& calls) {
  std::vector<Access> accesses;
  for (const Call& call : calls) {
    for (const Access& access : accesses_of(call)) accesses.push_back(access);
  }
  std::optional<PreMultiplier> multiplier;
  const Call& first = calls.front();
  if (first.op >= ncclNumOps) {
    multiplier = first.communicator->operators.at(static_cast<std::size_t>(first.op - ncclNumOps));
    if (!multiplier->is_alive || multiplier->type != first.type) {
      control().report("a reduction with an operator that is destroyed or for another type");
    }
  }
  const bool is_stuck = control().shall_fail("stuck kernel");
  const std::uint32_t memory = registered_memory(first);
  first.communicator->tasks.fetch_add(1);
  put_on_stream(first.stream, name_of(first.kind), accesses, [calls, multiplier, is_stuck, memory] {
    const Call& call = calls.front();
    while (is_stuck && !call.communicator->is_aborted.load()) ::usleep(sleep_microseconds);
    if (!call.communicator->is_aborted.load()) {
      if (call.kind == send_receive) {
        run_messages(calls);
      } else if (call.kind == broadcast || call.kind == all_gather) {
        run_copy(call);
      } else {
        run_reduction(call, multiplier, memory);
      }
    }
    call.communicator->tasks.fetch_sub(1);
  });
}

}  // namespace stand_in
