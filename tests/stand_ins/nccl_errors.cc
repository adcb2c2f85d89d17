// NCCL's functions about errors and its version.
#include "stand_ins/nccl_errors.h"

#include "stand_ins/stand_in_control.h"

namespace stand_in {

namespace {

thread_local std::string last_error_text = "none";

}  // namespace

ncclResult_t failure(const char* function) {
  set_last_error(std::string(function) + " was told to fail");
  return ncclInternalError;
}

void set_last_error(const std::string& text) { last_error_text = text; }

}  // namespace stand_in

using namespace stand_in;

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return control().shall_fail("ncclGetVersion") ? failure("ncclGetVersion") : ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote error of the stand-in" : "error of the stand-in";
}
const char* ncclGetLastError(ncclComm_t) { return stand_in::last_error_text.c_str(); }

}  // extern "C"
