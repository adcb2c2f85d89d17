// Turns MPI's error codes into exceptions. Included by the mpi_*.cc files only.
#pragma once

#include <fedrun/core/error.h>
#include <fmt/format.h>
#include <mpi.h>

#include <array>

namespace fedrun {

inline void check_mpi(const char* call, int code) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw BackendError(fmt::format("{} failed: {}; see the output of the other ranks for the cause", call, text.data()));
}

}  // namespace fedrun
