// NCCL's functions about memory and registration.
#include "stand_ins/nccl_communicator.h"
#include "stand_ins/nccl_errors.h"
#include "stand_ins/stand_in_control.h"
#include "stand_ins/stand_in_device.h"

using namespace stand_in;

extern "C" {

ncclResult_t ncclCommRegister(ncclComm_t handle, void* data, size_t bytes, void** registration) {
  if (control().shall_fail("ncclCommRegister")) return failure("ncclCommRegister");
  report_if_launching(*shared(handle), "ncclCommRegister");
  if (seen_by_device(data) == nullptr) control().report("ncclCommRegister of memory that is not the device's");
  control().add("registration", 1);
  shared(handle)->registered[static_cast<const std::byte*>(data)] = bytes;
  *registration = data;
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(ncclComm_t handle, void* registration) {
  const Shared communicator = shared(handle);
  report_if_launching(*communicator, "ncclCommDeregister");
  if (communicator->tasks.load() != 0) control().report("ncclCommDeregister of what kernels may still use");
  if (seen_by_device(registration) == nullptr) control().report("ncclCommDeregister of memory that is gone");
  if (communicator->registered.erase(static_cast<const std::byte*>(registration)) == 0) return ncclInvalidArgument;
  control().add("registration", -1);
  return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void** data, size_t bytes) {
  if (control().shall_fail("ncclMemAlloc")) return failure("ncclMemAlloc");
  *data = allocate_device_memory(bytes);
  return ncclSuccess;
}

ncclResult_t ncclMemFree(void* data) { return free_device_memory(data) ? ncclSuccess : ncclInvalidArgument; }

}  // extern "C"
