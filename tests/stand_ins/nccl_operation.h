// What a call of NCCL asks for, and the task on a stream that carries it out.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <vector>

#include "stand_ins/nccl_communicator.h"
#include "stand_ins/nccl_exchange.h"

namespace stand_in {

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

std::size_t bytes_of(std::size_t count, ncclDataType_t type);

// One call, or all sends and receives of a group.
void put_on_stream(const std::vector<Call>& calls);

}  // namespace stand_in
