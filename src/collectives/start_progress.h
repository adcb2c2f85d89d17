// Tells the launcher how far this rank has come, so that it can say which ranks are missing at the start.
#pragma once

#include <fedrun/core/file_descriptor.h>

namespace fedrun {

class StartProgress {
 public:
  // `descriptor`: RunEnv's; -1: there is no launcher to tell. Programs that this one starts do not inherit it.
  explicit StartProgress(int descriptor);

  void tell(char step) const;

 private:
  FileDescriptor launcher_;
};

}  // namespace fedrun
