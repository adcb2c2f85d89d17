#include <fedrun/launcher/pending_output.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

namespace fedrun::launcher {
namespace {

// After a stop fedrun reads on, because mpirun cannot end the ranks while it waits for room in its pipe. Then this much
// is kept for a slow reader, and the rest is dropped.
constexpr size_t most_pending_bytes = size_t{128} << 20;

}  // namespace

void PendingOutput::append(std::string_view text) {
  if (problem_ == 0 && size() < most_pending_bytes) text_ += text;
}

void PendingOutput::write_some() {
  const ssize_t count = write(descriptor_, text_.data() + written_, std::min<size_t>(size(), PIPE_BUF));
  if (count > 0) written_ += static_cast<size_t>(count);
  if (count < 0 && errno != EINTR && errno != EAGAIN) {
    problem_ = errno;
    written_ = text_.size();
  }
  if (written_ > text_.size() / 2) text_.erase(0, std::exchange(written_, 0));
}

}  // namespace fedrun::launcher
