// The part of the engine that takes elements on devices through the memory of the hosts: all of them where NCCL cannot
// connect the ranks, or a rank's shard of a sum that NCCL has made inside each host.
#include <fedrun/collectives/call_terms.h>
#include <fedrun/collectives/device_reduction.h>
#include <fedrun/collectives/engine.h>
#include <fedrun/collectives/host.h>
#include <fedrun/collectives/piece_run.h>
#include <fedrun/core/error.h>

#include <algorithm>

namespace fedrun {
namespace {

// Of a number and a NaN, NCCL's min and max are the number, and a diverged rank would not show.
bool nccl_drops_nans(const CallTerms& terms) {
  const bool is_reduction = terms.kind == Collective::allreduce || terms.kind == Collective::reduce_scatter;
  return is_reduction && (terms.op == ReduceOp::min || terms.op == ReduceOp::max) && is_float(terms.type);
}

}  // namespace

// Every rank must come to the same answer, so it depends only on what they agree about.
DeviceWay Engine::way_of(const CallTerms& terms) const {
  if (nccl_drops_nans(terms)) return DeviceWay::staged;
  if (reach_ == NcclReach::group) return DeviceWay::direct;
  const bool is_large = terms.count * size_of(terms.type) >= host_->devices.staged_below;
  const bool is_sharded = reach_ == NcclReach::host && terms.kind == Collective::allreduce && is_large;
  return is_sharded ? DeviceWay::sharded : DeviceWay::staged;
}

Segments::BlockLoan Engine::borrow_pinned_block(std::size_t bytes) {
  return host_->segments.borrow_block(
      bytes, [&](void* data, std::size_t block_bytes) { return devices_->pin(data, block_bytes); });
}

// The neighbours see the blocks, so that what follows is as for elements of the host, and copies nothing more.
void Engine::stage(Flight& flight) {
  let_go_of_left_behind();
  const Operation& operation = flight.operation;
  const bool brings = brings_input(operation, rank_) && operation.input.count != 0;
  const bool takes = takes_output(operation, rank_) && operation.output.count != 0;
  flight.places.emplace();
  if (brings) {
    flight.input_block = borrow_pinned_block(operation.input.bytes());
    flight.places->input = Segments::place_of(*flight.input_block);
  }
  if (takes) {
    const bool is_in_place = operation.kind == Collective::allreduce;
    flight.output_block = is_in_place ? flight.input_block : borrow_pinned_block(operation.output.bytes());
    flight.places->output = Segments::place_of(*flight.output_block);
  }
  const auto data_of = [](const Segments::BlockLoan& block) { return block ? block->mapping.data() : nullptr; };
  try {
    flight.device = devices_->prepare_staged(operation.input, data_of(flight.input_block), operation.output,
                                             data_of(flight.output_block));
  } catch (const Error&) {
    leave_behind(flight);  // a copy may have begun
    throw;
  }
}

// Of a flight that has failed: copies to its blocks, by the GPU or by other ranks, may still be under way.
void Engine::leave_behind(Flight& flight) {
  const bool others_may_write = flight.run != nullptr || flight.device == nullptr;
  for (const Segments::BlockLoan& block : {flight.input_block, flight.output_block}) {
    if (block && others_may_write) host_->segments.abandon(block);
  }
  if (flight.input_block || flight.output_block) {
    left_behind_.push_back({std::move(flight.device), std::move(flight.input_block), std::move(flight.output_block)});
  }
  flight.device.reset();
}

void Engine::let_go_of_left_behind() {
  std::erase_if(left_behind_, [](const LeftBehind& left) { return left.device && left.device->is_in_host_memory(); });
}

Run::Progress Engine::advance_through_host(Flight& flight) {
  using Step = Flight::HostStep;
  using Progress = Run::Progress;
  const bool is_sharded = flight.way == DeviceWay::sharded;
  Slot& slot = surroundings_.board.slot(flight.position);
  if (flight.step == Step::coming) {
    if (const Progress progress = await_elements(flight); progress != Progress::finished) return progress;
    flight.step = Step::there;
    if (!is_sharded) slot.staged.add(flight.position, 1);  // publishes the elements
    host_->peers.event().notify();
  }
  if (flight.step == Step::there) {
    // Of what is sharded, no other rank of this host reads anything.
    const auto neighbours = static_cast<std::uint32_t>(group_.neighbours().size());
    if (!is_sharded && slot.staged.count(flight.position) < neighbours) return Progress::none;
    flight.run = is_sharded ? make_shard_run(flight) : make_run(flight.position);
    flight.step = Step::worked_on;
  }
  if (flight.step == Step::worked_on) {
    if (const Progress progress = flight.run->advance(); progress != Progress::finished) return progress;
    flight.step = Step::returning;
  }
  if (flight.step == Step::returning) {
    if (!flight.device) return Progress::finished;  // this rank has joined
    if (is_sharded && !is_its_turn(slot.return_, flight.position)) return Progress::none;
    flight.device->go_back();
    if (is_sharded) ++turns_;
    flight.step = Step::going_back;
  }
  return flight.device->advance();
}

// Until what this rank brings is in host memory.
Run::Progress Engine::await_elements(Flight& flight) {
  const bool is_sharded = flight.way == DeviceWay::sharded;
  if (!flight.is_launched) {
    if (is_sharded && !is_its_turn(surroundings_.board.slot(flight.position).launch, flight.position)) {
      return Run::Progress::none;
    }
    if (is_sharded) {
      launch(flight);
    } else {
      flight.is_launched = true;
      ++launched_flights_;
    }
  }
  if (!flight.device) return Run::Progress::finished;  // this rank has joined
  const Run::Progress progress = flight.device->advance();
  return flight.device->is_in_host_memory() ? Run::Progress::finished : progress;
}

// As many shards as every host has ranks: ranks beyond that have none. The last takes what is left over, because NCCL
// likes equal parts.
std::vector<std::size_t> Engine::shard_counts(std::size_t count) const {
  std::size_t shards = group_.neighbours().size();
  for (const std::vector<int>& ranks : group_.hosts) shards = std::min(shards, ranks.size());
  std::vector<std::size_t> counts(group_.neighbours().size(), 0);
  std::fill_n(counts.begin(), shards, count / shards);
  counts[shards - 1] += count % shards;
  return counts;
}

void Engine::add_shard(Flight& flight, DeviceTerms& terms) {
  terms.wire.reset();  // inside a host nothing travels
  terms.shards = shard_counts(terms.count);
  const std::size_t own = group_.index_on_host();
  const DataType type = plan_device_reduction(terms, rank_, ranks_).type;
  if (terms.shards[own] != 0) flight.input_block = borrow_pinned_block(terms.shards[own] * size_of(type));
  terms.shard_memory = flight.input_block ? flight.input_block->mapping.data() : nullptr;
}

// Adds up what NCCL has made of the elements of each host.
std::unique_ptr<Run> Engine::make_shard_run(const Flight& flight) {
  const DeviceTerms terms = device_terms(flight);
  DeviceTerms inside_host = terms;
  inside_host.wire.reset();
  const DeviceReduction reduction = plan_device_reduction(inside_host, rank_, ranks_);
  return std::make_unique<PieceRun>(
      surroundings_, *links_, message_blocks_, flight.position,
      ShardedReduction{.counts = shard_counts(terms.count),
                       .memory = flight.input_block ? flight.input_block->mapping.data() : nullptr,
                       .type = reduction.type,
                       .travelling_type = terms.wire.value_or(reduction.type),
                       .op = reduction.op});
}

}  // namespace fedrun
