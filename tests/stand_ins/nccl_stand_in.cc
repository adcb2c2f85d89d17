// Has the functions of NCCL that fedrun calls. Communicators never block, as fedrun asks: what is called is carried out
// some looks at ncclCommGetAsyncError later, so that a program that does not look is found out. Data goes through
// memory that the ranks of this host share.
#include <fedrun/collectives/element_dispatch.h>
#include <nccl.h>
#include <sched.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "stand_ins/nccl_segment.h"
#include "stand_ins/stand_in_control.h"
#include "stand_ins/stand_in_device.h"

using namespace stand_in;

namespace {

constexpr int looks_until_done = 2;
constexpr int looks_before_sleep = 20;
constexpr unsigned sleep_microseconds = 100;

struct PreMultiplier {
  ncclDataType_t type;
  std::uint64_t scalar;
  bool is_alive;
};

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
std::size_t bytes_of(std::size_t count, ncclDataType_t type) { return count * fedrun::size_of(type_of(type)); }

// Part of a message: which operation of which kind it belongs to, so that ranks that do different things are found out.
struct Head {
  std::uint64_t bytes;
  std::uint32_t kind;
  std::uint32_t type;
};

enum Kind : std::uint32_t { all_reduce, reduce, reduce_scatter, broadcast, all_gather, send_receive };
const char* const kind_names[] = {"ncclAllReduce", "ncclReduce",    "ncclReduceScatter",
                                  "ncclBroadcast", "ncclAllGather", "ncclSend/ncclRecv"};

struct Message {
  int peer;
  std::byte* data;
  std::size_t bytes;
  std::size_t done = 0;
  bool has_head = false;
};

}  // namespace

struct ncclComm {
  int rank = 0;
  int ranks = 1;
  SegmentHandle handle{0, -1};
  Segment* segment = nullptr;
  bool has_joined = false;
  bool is_absent = false;  // never joins, as if the others could not be reached
  bool is_finalizing = false;
  bool has_finalized = false;
  std::atomic<bool> is_aborted{false};
  std::atomic<int> tasks{0};
  std::uint64_t splits = 0;
  int looks_left = 0;
  std::vector<std::function<void()>> pending{};  // calls to carry out
  std::function<bool()> unfinished{};            // a split: true once it is through
  std::vector<PreMultiplier> operators{};
  ncclResult_t failure = ncclSuccess;

  ~ncclComm() {
    if (segment != nullptr) ::munmap(segment, sizeof(Segment));
    if (handle.pid == ::getpid() && handle.descriptor >= 0) ::close(static_cast<int>(handle.descriptor));
  }
};

namespace {

// The program's handle of a communicator, which a task on a stream may outlive.
using Shared = std::shared_ptr<ncclComm>;
std::map<ncclComm_t, Shared>& communicators() {
  static auto* all = new std::map<ncclComm_t, Shared>;
  return *all;
}
Shared shared(ncclComm_t handle) {
  const auto found = communicators().find(handle);
  if (found == communicators().end()) {
    control().report("a call on a communicator that does not exist (any more)");
    std::abort();
  }
  return found->second;
}

// Sends and receives all messages, in any order, but those to or from one rank one after the other.
class Exchange {
 public:
  Exchange(ncclComm& communicator, Kind kind, ncclDataType_t type)
      : communicator_(communicator), kind_(kind), type_(type) {}
  void send(int peer, std::byte* data, std::size_t bytes) { sends_.push_back({peer, data, bytes}); }
  void receive(int peer, std::byte* data, std::size_t bytes) { receives_.push_back({peer, data, bytes}); }

  bool run() {
    for (int idle = 0; !communicator_.is_aborted.load(); ++idle) {
      bool is_done = true;
      bool has_moved = false;
      std::vector<bool> is_busy(most_ranks, false);
      for (Message& message : sends_) {
        if (!is_busy[static_cast<std::size_t>(message.peer)]) has_moved |= send_piece(message);
        is_busy[static_cast<std::size_t>(message.peer)] =
            is_busy[static_cast<std::size_t>(message.peer)] || !is_through(message);
        is_done = is_done && is_through(message);
      }
      is_busy.assign(most_ranks, false);
      for (Message& message : receives_) {
        if (!is_busy[static_cast<std::size_t>(message.peer)]) has_moved |= receive_piece(message);
        is_busy[static_cast<std::size_t>(message.peer)] =
            is_busy[static_cast<std::size_t>(message.peer)] || !is_through(message);
        is_done = is_done && is_through(message);
      }
      if (is_done) return true;
      if (has_moved) idle = 0;
      // With more streams than cores, looking would keep from work those who are waited for.
      idle < looks_before_sleep ? ::sched_yield() : ::usleep(sleep_microseconds);
    }
    return false;
  }

 private:
  static bool is_through(const Message& message) { return message.has_head && message.done == message.bytes; }

  bool send_piece(Message& message) {
    Mailbox& box =
        communicator_.segment
            ->mailboxes[static_cast<std::size_t>(communicator_.rank)][static_cast<std::size_t>(message.peer)];
    if (is_through(message) || box.written.load() != box.read.load()) return false;
    std::size_t used = 0;
    if (!message.has_head) {
      const Head head{message.bytes, kind_, static_cast<std::uint32_t>(type_)};
      std::memcpy(box.data, &head, sizeof head);
      used = sizeof head;
      message.has_head = true;
    }
    const std::size_t piece = std::min(mailbox_bytes - used, message.bytes - message.done);
    if (piece != 0) std::memcpy(box.data + used, message.data + message.done, piece);
    message.done += piece;
    box.bytes = used + piece;
    box.written.fetch_add(1);
    return true;
  }

  bool receive_piece(Message& message) {
    Mailbox& box =
        communicator_.segment
            ->mailboxes[static_cast<std::size_t>(message.peer)][static_cast<std::size_t>(communicator_.rank)];
    if (is_through(message) || box.written.load() == box.read.load()) return false;
    std::size_t used = 0;
    if (!message.has_head) {
      Head head;
      std::memcpy(&head, box.data, sizeof head);
      if (head.bytes != message.bytes || head.kind != kind_ || head.type != static_cast<std::uint32_t>(type_)) {
        control().report(std::string("ranks call different things: ") + kind_names[kind_] + " of " +
                         std::to_string(message.bytes) + " bytes here, " + kind_names[head.kind % 6] + " of " +
                         std::to_string(head.bytes) + " on rank " + std::to_string(message.peer));
        communicator_.is_aborted.store(true);
        return false;
      }
      used = sizeof head;
      message.has_head = true;
    }
    const std::size_t piece = box.bytes - used;
    if (piece != 0) std::memcpy(message.data + message.done, box.data + used, piece);
    message.done += piece;
    box.read.fetch_add(1);
    return true;
  }

  ncclComm& communicator_;
  Kind kind_;
  ncclDataType_t type_;
  std::vector<Message> sends_;
  std::vector<Message> receives_;
};

template <typename T>
T combine(T a, T b, int op) {
  const auto left = fedrun::widen(a);
  const auto right = fedrun::widen(b);
  using Wide = std::remove_const_t<decltype(left)>;
  if (op == ncclProd) return fedrun::narrow<T>(static_cast<Wide>(left * right));
  if (op == ncclMax) return left < right ? b : a;
  if (op == ncclMin) return right < left ? b : a;
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

struct Call {
  Kind kind;
  const void* input = nullptr;
  std::size_t input_count = 0;
  void* output = nullptr;
  std::size_t output_count = 0;
  ncclDataType_t type = ncclInt8;
  int op = 0;
  int root = 0;
  Shared communicator{};
  void* stream = nullptr;
};

std::vector<std::byte> copy_of(const void* data, std::size_t bytes) {
  std::vector<std::byte> copy(bytes);
  if (bytes != 0) std::memcpy(copy.data(), seen_by_device(data), bytes);
  return copy;
}

// Everyone sends what each rank needs of its input; who gets a result combines what has come, in rank order.
void run_reduction(const Call& call, const std::optional<PreMultiplier>& multiplier) {
  ncclComm& communicator = *call.communicator;
  const int ranks = communicator.ranks;
  const bool is_scatter = call.kind == reduce_scatter;
  const std::size_t part_bytes = bytes_of(call.output_count, call.type);
  std::vector<std::byte> mine = copy_of(call.input, bytes_of(call.input_count, call.type));
  if (multiplier) multiply(mine, call.input_count, *multiplier);
  const bool gets_result = call.kind != reduce || communicator.rank == call.root;
  std::vector<std::byte> parts(gets_result ? static_cast<std::size_t>(ranks) * part_bytes : 0);
  Exchange exchange(communicator, call.kind, call.type);
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

std::vector<Access> accesses_of(const Call& call) {
  std::vector<Access> accesses;
  const bool reads = call.input != nullptr && (call.kind != broadcast || call.communicator->rank == call.root);
  const bool writes = call.output != nullptr && (call.kind != reduce || call.communicator->rank == call.root);
  if (reads) accesses.push_back({call.input, bytes_of(call.input_count, call.type), false});
  if (writes) accesses.push_back({call.output, bytes_of(call.output_count, call.type), true});
  return accesses;
}

void put(const std::vector<Call>& calls) {
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
  first.communicator->tasks.fetch_add(1);
  put_on_stream(first.stream, kind_names[first.kind], accesses, [calls, multiplier, is_stuck] {
    const Call& call = calls.front();
    while (is_stuck && !call.communicator->is_aborted.load()) ::usleep(sleep_microseconds);
    if (!call.communicator->is_aborted.load()) {
      if (call.kind == send_receive) {
        run_messages(calls);
      } else if (call.kind == broadcast || call.kind == all_gather) {
        run_copy(call);
      } else {
        run_reduction(call, multiplier);
      }
    }
    call.communicator->tasks.fetch_sub(1);
  });
}

thread_local int group_depth = 0;
thread_local std::vector<Call> group_calls;
thread_local std::string last_error_text = "none";

ncclResult_t failure(const char* function) {
  last_error_text = std::string(function) + " was told to fail";
  return ncclInternalError;
}

// Carried out later: the communicator is in progress until then.
ncclResult_t end_group() {
  std::vector<Call> calls = std::move(group_calls);
  group_calls.clear();
  if (calls.empty()) return ncclSuccess;
  ncclComm& communicator = *calls.front().communicator;
  communicator.looks_left = looks_until_done;
  communicator.pending.push_back([calls = std::move(calls)] {
    std::vector<Call> messages;
    for (const Call& call : calls) {
      call.kind == send_receive ? messages.push_back(call) : put({call});
    }
    if (!messages.empty()) put(messages);
  });
  return ncclInProgress;
}

ncclResult_t enqueue(const char* function, Call call, ncclComm_t handle) {
  if (control().shall_fail(function)) return failure(function);
  call.communicator = shared(handle);
  if (call.communicator->looks_left != 0 || call.communicator->unfinished) {
    control().report(std::string(function) + " while the communicator is in progress");
  }
  group_calls.push_back(std::move(call));
  return group_depth == 0 ? end_group() : ncclSuccess;
}

bool join(ncclComm& communicator) {
  if (!communicator.has_joined && control().shall_fail("absent")) communicator.is_absent = true;
  if (communicator.is_absent) return false;
  if (!communicator.has_joined) {
    communicator.segment = Segment::open(communicator.handle);
    if (communicator.segment == nullptr) {
      communicator.failure = ncclSystemError;
      return false;
    }
    communicator.segment->joined.fetch_add(1);
    communicator.has_joined = true;
  }
  return communicator.segment->joined.load() >= communicator.ranks;
}

// The ranks of the new group, by their ranks in the old one; empty for a rank without a color.
std::vector<int> members_of(const Segment& segment, int rank, int ranks) {
  std::vector<int> members;
  const int color = segment.choices[static_cast<std::size_t>(rank)].color;
  for (int each = 0; each < ranks && color != NCCL_SPLIT_NOCOLOR; ++each) {
    if (segment.choices[static_cast<std::size_t>(each)].color == color) members.push_back(each);
  }
  std::ranges::stable_sort(members, {}, [&](int each) { return segment.choices[static_cast<std::size_t>(each)].key; });
  return members;
}

// Looked at again and again, because nothing here blocks. True: the new communicator is there.
bool go_on_with_split(ncclComm& parent, std::uint64_t number, ncclComm_t* made) {
  Segment& segment = *parent.segment;
  const auto all_have_come_to = [&](std::uint64_t step) {
    return std::all_of(segment.choices.begin(), segment.choices.begin() + parent.ranks,
                       [&](const SplitChoice& choice) { return choice.number.load() >= step; });
  };
  if (segment.choices[static_cast<std::size_t>(parent.rank)].number.load() > number)
    return all_have_come_to(number + 1);
  if (!all_have_come_to(number)) return false;
  const std::vector<int> members = members_of(segment, parent.rank, parent.ranks);
  SplitChoice& mine = segment.choices[static_cast<std::size_t>(parent.rank)];
  SegmentHandle handle{0, -1};
  if (!members.empty()) {
    SplitChoice& first = segment.choices[static_cast<std::size_t>(members.front())];
    if (members.front() == parent.rank && first.opened.load() < number) {
      first.handle = Segment::make();
      first.opened.store(number);
    }
    if (first.opened.load() < number) return false;
    handle = first.handle;
  }
  if (*made == nullptr && !members.empty()) {
    auto child = std::make_shared<ncclComm>();
    child->handle = handle;
    child->ranks = static_cast<int>(members.size());
    child->rank = static_cast<int>(std::ranges::find(members, parent.rank) - members.begin());
    child->looks_left = 1;
    *made = child.get();
    communicators()[child.get()] = child;
    control().add("communicator", 1);
  }
  // Choices may be written over by the next split only when everyone has read them.
  mine.number.store(number + 1);
  return all_have_come_to(number + 1);
}

ncclResult_t state_of(ncclComm& communicator) {
  if (communicator.failure != ncclSuccess) return communicator.failure;
  if (communicator.is_finalizing) {
    if (communicator.tasks.load() != 0) return ncclInProgress;
    if (!std::exchange(communicator.has_finalized, true)) communicator.segment->finalized.fetch_add(1);
    return communicator.segment->finalized.load() >= communicator.ranks ? ncclSuccess : ncclInProgress;
  }
  if (!join(communicator)) return communicator.failure != ncclSuccess ? communicator.failure : ncclInProgress;
  if (communicator.unfinished) {
    if (!communicator.unfinished()) return ncclInProgress;
    communicator.unfinished = {};
  }
  if (communicator.looks_left != 0 && --communicator.looks_left != 0) return ncclInProgress;
  for (const auto& call : std::exchange(communicator.pending, {})) call();
  return ncclSuccess;
}

void forget(ncclComm_t handle) {
  communicators().erase(handle);
  control().add("communicator", -1);
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return control().shall_fail("ncclGetVersion") ? failure("ncclGetVersion") : ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote error of the stand-in" : "error of the stand-in";
}
const char* ncclGetLastError(ncclComm_t) { return last_error_text.c_str(); }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (control().shall_fail("ncclGetUniqueId")) return failure("ncclGetUniqueId");
  const SegmentHandle handle = Segment::make();
  std::memset(id, 0, sizeof *id);
  std::memcpy(id, &handle, sizeof handle);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* handle, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (config->blocking != 0) control().report("ncclCommInitRankConfig of a communicator that blocks");
  if (control().shall_fail("ncclCommInitRankConfig")) return failure("ncclCommInitRankConfig");
  auto made = std::make_shared<ncclComm>();
  made->rank = rank;
  made->ranks = ranks;
  std::memcpy(&made->handle, &id, sizeof made->handle);
  made->looks_left = looks_until_done;
  *handle = made.get();
  communicators()[made.get()] = made;
  control().add("communicator", 1);
  return ncclInProgress;
}

ncclResult_t ncclCommSplit(ncclComm_t handle, int color, int key, ncclComm_t* made, ncclConfig_t*) {
  if (control().shall_fail("ncclCommSplit")) return failure("ncclCommSplit");
  ncclComm& parent = *shared(handle);
  if (parent.tasks.load() != 0 || parent.looks_left != 0)
    control().report("ncclCommSplit while something is under way");
  *made = nullptr;
  SplitChoice& mine = parent.segment->choices[static_cast<std::size_t>(parent.rank)];
  const std::uint64_t number = 2 * parent.splits++ + 1;
  mine.color = color;
  mine.key = key;
  mine.number.store(number);
  parent.unfinished = [&parent, number, made] { return go_on_with_split(parent, number, made); };
  parent.looks_left = looks_until_done;
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* state) {
  if (control().shall_fail("ncclCommGetAsyncError")) return failure("ncclCommGetAsyncError");
  if (control().shall_fail("async")) {
    last_error_text = "a peer is gone, says the stand-in";
    shared(handle)->failure = ncclRemoteError;
  }
  *state = state_of(*shared(handle));
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  if (control().shall_fail("ncclCommFinalize")) return failure("ncclCommFinalize");
  shared(handle)->is_finalizing = true;
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  if (!shared(handle)->has_finalized) control().report("ncclCommDestroy before ncclCommFinalize");
  forget(handle);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t handle) {
  const Shared communicator = shared(handle);
  communicator->is_aborted.store(true);
  for (const PreMultiplier& multiplier : communicator->operators) {
    if (multiplier.is_alive) control().add("operator", -1);
  }
  forget(handle);
  return ncclSuccess;
}

ncclResult_t ncclCommRegister(ncclComm_t handle, void* data, size_t, void** registration) {
  if (control().shall_fail("ncclCommRegister")) return failure("ncclCommRegister");
  shared(handle);
  if (seen_by_device(data) == nullptr) control().report("ncclCommRegister of memory that is not the device's");
  *registration = data;
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(ncclComm_t handle, void*) {
  shared(handle);
  return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void** data, size_t bytes) {
  if (control().shall_fail("ncclMemAlloc")) return failure("ncclMemAlloc");
  *data = allocate_device_memory(bytes);
  return ncclSuccess;
}

ncclResult_t ncclMemFree(void* data) { return free_device_memory(data) ? ncclSuccess : ncclInvalidArgument; }

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type, ncclScalarResidence_t,
                                      ncclComm_t handle) {
  if (control().shall_fail("ncclRedOpCreatePreMulSum")) return failure("ncclRedOpCreatePreMulSum");
  auto& operators = shared(handle)->operators;
  PreMultiplier made{type, 0, true};
  std::memcpy(&made.scalar, scalar, bytes_of(1, type));
  operators.push_back(made);
  control().add("operator", 1);
  *op = static_cast<ncclRedOp_t>(ncclNumOps + operators.size() - 1);
  return ncclSuccess;
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t handle) {
  shared(handle)->operators.at(static_cast<std::size_t>(op - ncclNumOps)).is_alive = false;
  control().add("operator", -1);
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  if (control().shall_fail("ncclGroupStart")) return failure("ncclGroupStart");
  ++group_depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (--group_depth > 0) return ncclSuccess;
  if (control().shall_fail("ncclGroupEnd")) {
    group_calls.clear();
    return failure("ncclGroupEnd");
  }
  return end_group();
}

ncclResult_t ncclAllReduce(const void* input, void* output, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return enqueue("ncclAllReduce", {all_reduce, input, count, output, count, type, op, 0, {}, stream}, comm);
}

ncclResult_t ncclReduce(const void* input, void* output, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return enqueue("ncclReduce", {reduce, input, count, output, count, type, op, root, {}, stream}, comm);
}

ncclResult_t ncclReduceScatter(const void* input, void* output, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  const auto ranks = static_cast<std::size_t>(shared(comm)->ranks);
  return enqueue("ncclReduceScatter", {reduce_scatter, input, count * ranks, output, count, type, op, 0, {}, stream},
                 comm);
}

ncclResult_t ncclBroadcast(const void* input, void* output, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return enqueue("ncclBroadcast", {broadcast, input, count, output, count, type, 0, root, {}, stream}, comm);
}

ncclResult_t ncclAllGather(const void* input, void* output, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  const auto ranks = static_cast<std::size_t>(shared(comm)->ranks);
  return enqueue("ncclAllGather", {all_gather, input, count, output, count * ranks, type, 0, 0, {}, stream}, comm);
}

ncclResult_t ncclSend(const void* input, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return enqueue("ncclSend", {send_receive, input, count, nullptr, 0, type, 0, peer, {}, stream}, comm);
}

ncclResult_t ncclRecv(void* output, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return enqueue("ncclRecv", {send_receive, nullptr, 0, output, count, type, 0, peer, {}, stream}, comm);
}

}  // extern "C"
