#include "journal/support/reserve.h"

#include <fcntl.h>
#include <unistd.h>

#include <tuple>

#include "journal/support/file.h"

namespace txfs {

Status Reserve::Require(uint64_t bytes) {
  if (bytes_ >= bytes) return {};
  const MutexLock lock(mutex_);
  if (bytes_ >= bytes) return {};
  const UniqueFd fd =
      TRY(OpenOwnFileBelow(dir_, name_, O_WRONLY | O_CREAT, 0600));
  const Status made = Preallocate(io_, fd.get(), bytes);
  if (made) {
    bytes_ = bytes;
    return {};
  }
  // What the failed call took is for others.
  if (bytes_ == 0) {
    ::unlinkat(dir_, name_.c_str(), 0);
  } else {
    std::ignore = ::ftruncate(fd.get(), static_cast<off_t>(bytes_.load()));
  }
  return Fail(made.error().code, "reserve space in " + PathOfFd(dir_));
}

bool Reserve::GiveUp() {
  const MutexLock lock(mutex_);
  bytes_ = 0;
  return ::unlinkat(dir_, name_.c_str(), 0) == 0;
}

}  // namespace txfs
