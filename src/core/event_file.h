// Writes scalars over steps for TensorBoard, in its own file format, without TensorFlow.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace fedrun {

struct EventScalar {
  std::string tag;  // such as "Test/Acc"; what is in front of the slash groups the charts
  double value = 0;
};

// One file, to be written by one rank and one thread. Every write reaches the file before it returns, so that charts
// grow while the program runs and nothing is lost when it dies.
class EventFile {
 public:
  // Makes events.out.tfevents.<seconds>.<host> in the directory; a file that is there already keeps its name, and the
  // new one gets a later second. TensorBoard reads all files of a directory as one run and forgets what earlier ones
  // hold of first_step and beyond, so that a run which goes on from a checkpoint shows each step once. Throws
  // UsageError when the file cannot be made.
  EventFile(const std::filesystem::path& directory, std::int64_t first_step);

  // Throws BackendError when the disk does not take it.
  void write(std::int64_t step, const std::vector<EventScalar>& scalars);

  const std::filesystem::path& path() const { return path_; }

 private:
  void append(std::string_view event);

  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace fedrun
