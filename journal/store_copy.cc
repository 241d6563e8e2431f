#include "journal/store_copy.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "journal/summary.h"
#include "journal/support/file.h"

namespace txfs {
namespace {

constexpr std::array<const char*, 6> kFiles = {
    "summary", "runs", "intake", "preimages", "db/data.mdb", "reserve"};

bool IsSegmentName(std::string_view name) {
  return name.size() == 8 && std::ranges::all_of(name, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

/// The data between holes, which stay holes.
Status CopyData(int from, int to, off_t size, const std::string& path) {
  off_t at = 0;
  while (at < size) {
    off_t begin = ::lseek(from, at, SEEK_DATA);
    if (begin < 0 && errno == ENXIO) return {};
    if (begin < 0) begin = at;
    off_t end = ::lseek(from, begin, SEEK_HOLE);
    if (end < 0) end = size;
    off_t target = begin;
    while (begin < end) {
      const ssize_t n = ::copy_file_range(from, &begin, to, &target,
                                          static_cast<size_t>(end - begin), 0);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return Fail(errno, "copy " + path);
      if (n == 0) return {};  // it was cut meanwhile
    }
    at = end;
  }
  return {};
}

Status CopyFile(int from, int to, const std::string& path) {
  const UniqueFd source = TRY(OpenFileBelow(from, path, O_RDONLY));
  struct stat st{};
  if (::fstat(source.get(), &st) != 0) return Fail(errno, path);
  const UniqueFd copy =
      TRY(OpenAt(to, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  if (::ioctl(copy.get(), FICLONE, source.get()) == 0) return {};
  if (::ftruncate(copy.get(), st.st_size) != 0) return Fail(errno, path);
  return CopyData(source.get(), copy.get(), st.st_size, path);
}

}  // namespace

Status CopyTransaction(int from, int to, const std::string& id) {
  if (!IsTransactionId(id)) return Fail(EBADMSG, "transaction " + id);
  const std::string path = "txn/" + id;
  const UniqueFd source = TRY(OpenDirectoryBelow(from, path));
  const auto lock = OpenFileBelow(source.get(), "lock", O_RDONLY);
  if (lock && ::flock(lock->get(), LOCK_SH | LOCK_NB) != 0) {
    return Fail(ErrorKind::kBusy, EWOULDBLOCK,
                "transaction " + id + " is in use", "unmount it first");
  }
  TRY(MakeDirectoryAt(to, path, 0700));
  const UniqueFd copy = TRY(OpenAt(to, path, O_RDONLY | O_DIRECTORY));
  for (const char* directory : {"db", "spool"}) {
    TRY(OpenDirectoryBelow(source.get(), directory));
    TRY(MakeDirectoryAt(copy.get(), directory, 0700));
  }
  for (const char* file : kFiles) {
    const auto copied = CopyFile(source.get(), copy.get(), file);
    // Not all are always there; what is missed says so when it is opened.
    if (!copied && copied.error().code != ENOENT) return copied;
  }
  const UniqueFd segments = TRY(OpenDirectoryBelow(source.get(), "spool"));
  const UniqueFd spool = TRY(OpenAt(copy.get(), "spool", O_RDONLY));
  for (const std::string& name : TRY(ListNames(segments.get(), "."))) {
    if (IsSegmentName(name)) {
      TRY(CopyFile(segments.get(), spool.get(), name));
    }
  }
  return {};
}

}  // namespace txfs
