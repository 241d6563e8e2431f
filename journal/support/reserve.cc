#include "journal/support/reserve.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <tuple>

#include "journal/support/file.h"

namespace txfs {

Status Reserve::Require(uint64_t bytes) {
  if (bytes_ >= bytes) return {};
  const MutexLock lock(mutex_);
  if (bytes_ >= bytes) return {};
  const UniqueFd fd =
      TRY(OpenOwnFileBelow(dir_, name_, O_WRONLY | O_CREAT, 0600));
  return Took(fd.get(), Preallocate(io_, fd.get(), bytes), bytes);
}

Status Reserve::Took(int fd, const Status& made, uint64_t bytes) {
  if (made) {
    bytes_ = bytes;
    return {};
  }
  // What the failed call took is for others.
  if (bytes_ == 0) {
    ::unlinkat(dir_, name_.c_str(), 0);
  } else {
    std::ignore = ::ftruncate(fd, static_cast<off_t>(bytes_.load()));
  }
  return Fail(made.error().code, "reserve space in " + PathOfFd(dir_));
}

Status Reserve::Set(uint64_t bytes) {
  bytes = (bytes + 4095) / 4096 * 4096;
  if (bytes == 0) {
    GiveUp();
    return {};
  }
  const MutexLock lock(mutex_);
  if (bytes_ == bytes) return {};
  const UniqueFd fd =
      TRY(OpenOwnFileBelow(dir_, name_, O_WRONLY | O_CREAT, 0600));
  if (bytes_ < bytes) {
    return Took(fd.get(), AllocateBlocks(io_, fd.get(), bytes, bytes_), bytes);
  }
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return Fail(errno, "give back reserved space in " + PathOfFd(dir_));
  }
  bytes_ = bytes;
  return {};
}

bool Reserve::GiveUp() {
  const MutexLock lock(mutex_);
  bytes_ = 0;
  return ::unlinkat(dir_, name_.c_str(), 0) == 0;
}

}  // namespace txfs
