#include <fcntl.h>
#include <fedrun/collectives/shared_mapping.h>
#include <fedrun/core/error.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace fedrun {
namespace {

// Every block of shared memory is an open file. Programs begin with a limit that suits select(); what they may raise it
// to suits many blocks.
bool raise_limit_of_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return false;
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

template <typename Open>
FileDescriptor open_file(Open open) {
  int number = open();
  if (number < 0 && errno == EMFILE && raise_limit_of_open_files()) number = open();
  return FileDescriptor(number);
}

}  // namespace

SharedMapping::SharedMapping(int descriptor, std::size_t bytes, Pages pages) : bytes_(bytes) {
  const int populate = pages == Pages::populated ? MAP_POPULATE : 0;
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | populate, descriptor, 0);
  if (data == MAP_FAILED) {
    throw BackendError(fmt::format("cannot map {} bytes of shared memory: {}", bytes, std::strerror(errno)));
  }
  data_ = static_cast<std::byte*>(data);
}

SharedMapping::SharedMapping(SharedMapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_), owns_mapping_(other.owns_mapping_) {}

SharedMapping& SharedMapping::operator=(SharedMapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(owns_mapping_, other.owns_mapping_);
  return *this;
}

SharedMapping::~SharedMapping() {
  if (data_ != nullptr && owns_mapping_) ::munmap(data_, bytes_);
}

SharedMapping SharedMapping::create(std::size_t bytes, FileDescriptor& descriptor, Pages pages) {
  descriptor = open_file([] { return ::memfd_create("fedrun", MFD_CLOEXEC); });
  if (descriptor.get() < 0) throw BackendError(fmt::format("memfd_create failed: {}", std::strerror(errno)));
  if (::fchmod(descriptor.get(), S_IRUSR | S_IWUSR) != 0 ||
      ::ftruncate(descriptor.get(), static_cast<off_t>(bytes)) != 0) {
    throw BackendError(fmt::format("cannot make {} bytes of shared memory: {}", bytes, std::strerror(errno)));
  }
  return SharedMapping(descriptor.get(), bytes, pages);
}

SegmentHandle SharedMapping::handle(const FileDescriptor& descriptor) const {
  return {::getpid(), descriptor.get(), static_cast<std::int64_t>(bytes_), reinterpret_cast<std::intptr_t>(data_)};
}

SharedMapping SharedMapping::open(const SegmentHandle& handle, Pages pages) {
  if (handle.pid == ::getpid() && handle.address != 0) {
    SharedMapping view;
    view.data_ = reinterpret_cast<std::byte*>(handle.address);
    view.bytes_ = static_cast<std::size_t>(handle.bytes);
    view.owns_mapping_ = false;
    return view;
  }
  const std::string path = fmt::format("/proc/{}/fd/{}", handle.pid, handle.descriptor);
  const FileDescriptor descriptor = open_file([&] { return ::open(path.c_str(), O_RDWR | O_CLOEXEC); });
  if (descriptor.get() < 0) {
    throw BackendError(
        fmt::format("cannot open the shared memory of process {}: {}; run all ranks of a host as one user, or "
                    "set FEDRUN_BACKEND=mpi",
                    handle.pid, std::strerror(errno)));
  }
  return SharedMapping(descriptor.get(), static_cast<std::size_t>(handle.bytes), pages);
}

}  // namespace fedrun
