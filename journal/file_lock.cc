#include "journal/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "journal/support/file.h"

namespace txfs {
namespace {

constexpr std::chrono::milliseconds kLockPoll{5};

}  // namespace

Result<FileLock> FileLock::Take(int dir, const std::string& path,
                                int timeout_ms) {
  UniqueFd fd = TRY(OpenOwnFileBelow(dir, path, O_RDWR | O_CREAT, 0600));
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return Fail(errno, "lock " + PathOfFd(dir) + "/" + path);
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      const std::string holder = LockHolder(dir, path);
      return Fail(ErrorKind::kBusy, EWOULDBLOCK,
                  PathOfFd(dir) + "/" + path + " is locked" +
                      (holder.empty() ? "" : " by process " + holder));
    }
    std::this_thread::sleep_for(kLockPoll);
  }
  // Only for messages: on a full disk the lock holds all the same.
  [[maybe_unused]] const Status ignored = WriteLockHolder(fd.get());
  return FileLock(std::move(fd));
}

std::string LockHolder(int dir, const std::string& path) {
  const auto text = ReadWholeFile(dir, path, 64);
  if (!text) return "";
  const size_t digits = text->find_first_not_of("0123456789");
  return text->substr(0, digits);
}

Status WriteLockHolder(int fd) {
  const std::string text = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd, 0) != 0) return Fail(errno, "truncate lock");
  return WriteFully(fd, 0, AsBytes(text));
}

}  // namespace txfs
