// The CUDA runtime's functions about streams and events.
#include "stand_ins/cuda_errors.h"
#include "stand_ins/stand_in_control.h"
#include "stand_ins/stand_in_machine.h"

using namespace stand_in;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  if (control().shall_fail("cudaStreamCreateWithFlags")) return answer(cudaErrorMemoryAllocation);
  control().add("stream", 1);
  *stream = reinterpret_cast<cudaStream_t>(machine().make_stream());
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  control().add("stream", -1);
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  all.end(*reinterpret_cast<Stream*>(handle));
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  if (control().shall_fail("cudaStreamSynchronize")) return answer(cudaErrorUnknown);
  Machine& all = machine();
  Stream& stream = *all.stream_of(handle);
  std::unique_lock lock(all.mutex);
  all.wait_for(stream, lock);
  all.host_clock.merge(stream.clock);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (control().shall_fail("cudaEventCreateWithFlags")) return answer(cudaErrorMemoryAllocation);
  control().add("event", 1);
  *event = reinterpret_cast<cudaEvent_t>(new Event{.takes_time = (flags & cudaEventDisableTiming) == 0});
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  control().add("event", -1);
  delete reinterpret_cast<Event*>(event);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  if (control().shall_fail("cudaEventRecord")) return answer(cudaErrorUnknown);
  Machine& all = machine();
  Stream& stream = *all.stream_of(handle);
  const std::lock_guard lock(all.mutex);
  stream.clock.merge(all.host_clock);
  stream.clock.advance(stream.index);
  auto record = std::make_shared<Record>(stream.clock);
  reinterpret_cast<Event*>(event)->record = record;
  all.put(stream, [&all, record] {
    const std::lock_guard inner(all.mutex);
    record->has_happened = true;
    record->at = std::chrono::steady_clock::now();
    all.changed.notify_all();
  });
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  if (control().shall_fail("cudaStreamWaitEvent")) return answer(cudaErrorUnknown);
  Machine& all = machine();
  Stream& stream = *all.stream_of(handle);
  const std::lock_guard lock(all.mutex);
  const auto record = reinterpret_cast<Event*>(event)->record;
  if (!record) return cudaSuccess;
  stream.clock.merge(record->clock);
  all.put(stream, [&all, record] {
    std::unique_lock inner(all.mutex);
    all.changed.wait(inner, [&] { return record->has_happened; });
  });
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (control().shall_fail("cudaEventQuery")) return answer(cudaErrorUnknown);
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  const auto record = reinterpret_cast<Event*>(event)->record;
  if (record && !record->has_happened) return answer(cudaErrorNotReady);
  if (record) all.host_clock.merge(record->clock);
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (control().shall_fail("cudaEventSynchronize")) return answer(cudaErrorUnknown);
  Machine& all = machine();
  std::unique_lock lock(all.mutex);
  const auto record = reinterpret_cast<Event*>(event)->record;
  if (!record) return cudaSuccess;
  all.changed.wait(lock, [&] { return record->has_happened; });
  all.host_clock.merge(record->clock);
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  const Event& first = *reinterpret_cast<Event*>(start);
  const Event& last = *reinterpret_cast<Event*>(end);
  if (!first.takes_time || !last.takes_time || !first.record || !last.record) {
    return answer(cudaErrorInvalidResourceHandle);
  }
  if (!first.record->has_happened || !last.record->has_happened) return answer(cudaErrorNotReady);
  *milliseconds = std::chrono::duration<float, std::milli>(last.record->at - first.record->at).count();
  return cudaSuccess;
}

}  // extern "C"
