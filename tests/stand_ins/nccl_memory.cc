// NCCL's functions about memory and registration.
#include "stand_ins/nccl_communicator.h"
#include "stand_ins/nccl_errors.h"
#include "stand_ins/stand_in_control.h"
#include "stand_ins/stand_in_device.h"

using namespace stand_in;

extern "C" {

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

}  // extern "C"
