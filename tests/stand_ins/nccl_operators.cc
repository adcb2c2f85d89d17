// NCCL's operators that multiply before they add.
#include <cstring>

#include "stand_ins/nccl_errors.h"
#include "stand_ins/nccl_operation.h"
#include "stand_ins/stand_in_control.h"

using namespace stand_in;

extern "C" {

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type, ncclScalarResidence_t,
                                      ncclComm_t handle) {
  if (control().shall_fail("ncclRedOpCreatePreMulSum")) return failure("ncclRedOpCreatePreMulSum");
  report_if_launching(*shared(handle), "ncclRedOpCreatePreMulSum");
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

}  // extern "C"
