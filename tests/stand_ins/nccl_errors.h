// How the functions of the stand-in for NCCL fail.
#pragma once

#include <nccl.h>

#include <string>

namespace stand_in {

ncclResult_t failure(const char* function);    // that was told to fail
void set_last_error(const std::string& text);  // for ncclGetLastError

}  // namespace stand_in
