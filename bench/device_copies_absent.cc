// Takes the place of device_copies.cc in a build without CUDA.
#include <fedrun/core/error.h>

#include "device_copies.h"

namespace fedrun::bench {

std::unique_ptr<DeviceCopies> make_device_copies() {
  throw BackendError("--device cuda: CUDA is not in this build: configure with --preset cuda, or use --device cpu");
}

}  // namespace fedrun::bench
