#include "fs/commit_run.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "journal/base/file.h"

namespace txfs {
namespace {

constexpr size_t kCopyBytes = 1 << 20;

/// A base path as a directory descriptor and a name in it.
struct Place {
  SharedFd directory;
  std::string name;

  [[nodiscard]] int dir() const { return directory->get(); }
};

Result<Place> Resolve(const BaseDirectory& base, const std::string& path) {
  return Place{TRY(base.OpenDirectory(std::string(ParentPath(path)))),
               path.empty() ? "." : std::string(BaseName(path))};
}

/// Runs `work`, which returns 0 or -1 and errno; where the directory's own
/// permissions forbid it, again with the owner let in. The plan sets the
/// directory's mode at its end.
Status InDirectory(int dir, const std::string& what,
                   const std::function<int()>& work) {
  if (work() == 0) return {};
  if (errno != EACCES) return Fail(errno, what);
  struct stat st{};
  if (::fstat(dir, &st) != 0 || ::fchmod(dir, st.st_mode | S_IRWXU) != 0) {
    return Fail(EACCES, what);
  }
  if (work() == 0) return {};
  return Fail(errno, what);
}

/// st_ino of what stands there; 0 when nothing does.
uint64_t InoAt(int dir, const std::string& name) {
  struct stat st{};
  const int found = ::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW);
  return found == 0 ? st.st_ino : 0;
}

/// Lets the owner into a directory that is to be moved: a move to another
/// parent writes to it. The plan sets its mode at the end.
void LetIn(int dir, const std::string& name) {
  struct stat st{};
  if (::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISDIR(st.st_mode) && (st.st_mode & S_IRWXU) != S_IRWXU) {
    // Where it is not ours to let in, the move says so.
    std::ignore = ::fchmodat(dir, name.c_str(), st.st_mode | S_IRWXU, 0);
  }
}

/// Whether a process of ours may write to it, or may let itself.
bool MayWrite(int dir, const std::string& name) {
  struct stat st{};
  if (::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return true;
  return ::geteuid() == 0 || st.st_uid == ::geteuid() ||
         ::faccessat(dir, name.c_str(), W_OK, AT_EACCESS) == 0;
}

bool IsDirectoryAt(int dir, const std::string& name) {
  struct stat st{};
  return ::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISDIR(st.st_mode);
}

int SwapNames(int from_dir, const std::string& from, int to_dir,
              const std::string& to) {
  return static_cast<int>(::syscall(SYS_renameat2, from_dir, from.c_str(),
                                    to_dir, to.c_str(), RENAME_EXCHANGE));
}

Status SetXattrs(int fd, const std::map<std::string, std::string>& wanted,
                 const std::string& path) {
  const std::string proc = "/proc/self/fd/" + std::to_string(fd);
  std::string names(XATTR_LIST_MAX, '\0');
  const ssize_t n = ::listxattr(proc.c_str(), names.data(), names.size());
  for (ssize_t at = 0; at < n;) {
    const std::string name = names.c_str() + at;
    at += static_cast<ssize_t>(name.size()) + 1;
    if (!name.starts_with("user.") || wanted.contains(name)) continue;
    if (::removexattr(proc.c_str(), name.c_str()) != 0 && errno != ENODATA) {
      return Fail(errno, "removexattr " + path);
    }
  }
  for (const auto& [name, value] : wanted) {
    if (::setxattr(proc.c_str(), name.c_str(), value.data(), value.size(), 0) !=
        0) {
      return Fail(errno, "setxattr " + path);
    }
  }
  return {};
}

/// Owner, mode and times of `name`, which is no symlink unless `attr` says so.
Status SetOwnerModeTimes(int dir, const std::string& name, const Attr& attr,
                         const std::string& path) {
  struct stat st{};
  if (::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
    return Fail(errno, "stat " + path);
  }
  const bool owner_differs = st.st_uid != attr.uid || st.st_gid != attr.gid;
  // An ordinary user's daemon cannot give files away; the file is its own.
  if (owner_differs &&
      ::fchownat(dir, name.c_str(), attr.uid, attr.gid, AT_SYMLINK_NOFOLLOW) !=
          0 &&
      (errno != EPERM || ::geteuid() == 0)) {
    return Fail(errno, "chown " + path);
  }
  // Nor can it change what belongs to others; then nothing of this differs, but
  // for the times of what it could write.
  const bool foreign = ::geteuid() != 0 && st.st_uid != ::geteuid();
  if (attr.type != FileType::kSymlink && (st.st_mode & 07777) != attr.mode &&
      ::fchmodat(dir, name.c_str(), attr.mode, 0) != 0 &&
      !(foreign && errno == EPERM)) {
    return Fail(errno, "chmod " + path);
  }
  const timespec times[2] = {attr.atime.ToTimespec(), attr.mtime.ToTimespec()};
  if (::utimensat(dir, name.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0 &&
      !(foreign && errno == EPERM)) {
    return Fail(errno, "utimens " + path);
  }
  return {};
}

}  // namespace

bool CommitRunner::InStage(const std::string& name) const {
  return InoAt(stage_, name) != 0;
}

Status CommitRunner::CheckPermitted(const std::vector<CommitStep>& steps) {
  for (const CommitStep& step : steps) {
    const bool patch = step.kind == StepKind::kPatch;
    if (!patch && step.kind != StepKind::kDetach &&
        step.kind != StepKind::kExchange) {
      continue;
    }
    const auto place = Resolve(frozen_.base, step.path);
    if (!place) continue;  // made by an earlier step
    const bool writes_to_it = patch || IsDirectoryAt(place->dir(), place->name);
    if ((patch || MayWrite(place->dir(), ".")) &&
        (!writes_to_it || MayWrite(place->dir(), place->name))) {
      continue;
    }
    return Fail(EACCES, "cannot commit " + step.path,
                "commit as the owner of that file or directory, or as root");
  }
  return {};
}

// --- staging ---------------------------------------------------------------

Status CommitRunner::Stage(CommitPlan& plan) {
  std::map<std::string, uint64_t> made;
  for (const StagedObject& object : plan.staged) {
    TRY(RemoveTree(stage_, object.stage));  // of a commit that failed
    TRY(StageOne(object));
    struct stat st{};
    if (::fstatat(stage_, object.stage.c_str(), &st, AT_SYMLINK_NOFOLLOW) !=
        0) {
      return Fail(errno, "stat staged file");
    }
    made[object.stage] = st.st_ino;
  }
  for (CommitStep& step : plan.steps) {
    if (step.kind == StepKind::kExchange) step.base_ino = made[step.stage];
  }
  if (::syncfs(stage_) != 0) return Fail(errno, "sync staged files");
  return {};
}

Status CommitRunner::StageOne(const StagedObject& object) {
  const Inode* inode = frozen_.tree.Find(object.ino);
  if (inode == nullptr) return Fail(EIO, "stage inode");
  const char* name = object.stage.c_str();
  int made = 0;
  switch (inode->attr().type) {
    case FileType::kRegular:
      TRY(StageRegular(object, *inode));
      break;
    case FileType::kDirectory:
      made = ::mkdirat(stage_, name, 0700);
      break;
    case FileType::kSymlink:
      made = ::symlinkat(inode->record.symlink.c_str(), stage_, name);
      break;
    default:
      made = ::mknodat(stage_, name, ModeBits(inode->attr().type) | 0600, 0);
      break;
  }
  if (made != 0) return Fail(errno, "stage " + frozen_.tree.PathOf(*inode));
  Attr attr = inode->attr();
  attr.mode = CommittedMode(*inode);
  // A directory stays open to us until its children are in it.
  if (inode->IsDirectory()) attr.mode |= S_IRWXU;
  return SetOwnerModeTimes(stage_, object.stage, attr,
                           frozen_.tree.PathOf(*inode));
}

Status CommitRunner::StageRegular(const StagedObject& object,
                                  const Inode& inode) {
  const UniqueFd fd =
      TRY(OpenAt(stage_, object.stage, O_RDWR | O_CREAT | O_EXCL, 0600));
  const uint64_t size = inode.attr().size;
  Bytes buffer(std::min<uint64_t>(size, kCopyBytes));
  for (uint64_t offset = 0; offset < size;) {
    const MutableByteSpan part = MutableByteSpan(buffer).first(
        std::min<uint64_t>(buffer.size(), size - offset));
    const size_t n = TRY(frozen_.Read(inode, offset, part));
    if (n == 0) return Fail(EIO, "read " + frozen_.tree.PathOf(inode));
    const ByteSpan bytes = ByteSpan(buffer).first(n);
    const bool zeros = std::ranges::all_of(
        bytes, [](std::byte b) { return b == std::byte{}; });
    if (!zeros) TRY(WriteFully(fd.get(), offset, bytes));
    offset += n;
  }
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    return Fail(errno, "stage " + frozen_.tree.PathOf(inode));
  }
  if (inode.record.base) TRY(CopyForeignXattrs(inode, fd.get()));
  return {};
}

/// What the base file carries besides user.* attributes (access control
/// lists, labels) goes to its replacement, except file capabilities, which a
/// write takes away.
Status CommitRunner::CopyForeignXattrs(const Inode& inode, int fd) {
  const auto from = frozen_.base.OpenFile(inode.record.base->path);
  if (!from) return {};  // unreadable to us, so without lists of ours
  std::string names(XATTR_LIST_MAX, '\0');
  const ssize_t n = ::flistxattr((*from)->get(), names.data(), names.size());
  std::string value(XATTR_SIZE_MAX, '\0');
  for (ssize_t at = 0; at < n;) {
    const std::string name = names.c_str() + at;
    at += static_cast<ssize_t>(name.size()) + 1;
    if (name.starts_with("user.") || name == "security.capability") continue;
    const ssize_t size =
        ::fgetxattr((*from)->get(), name.c_str(), value.data(), value.size());
    if (size < 0) continue;
    if (::fsetxattr(fd, name.c_str(), value.data(), static_cast<size_t>(size),
                    0) != 0 &&
        errno != EPERM && errno != ENOTSUP) {
      return Fail(errno, "setxattr " + inode.record.base->path);
    }
  }
  return {};
}

// --- steps -----------------------------------------------------------------

Status CommitRunner::Run(const std::vector<CommitStep>& steps) {
  frozen_.base.DropCache();
  for (const CommitStep& step : steps) TRY(Do(step));
  TRY(DropSharedNames(steps));
  frozen_.base.DropCache();
  if (::syncfs(frozen_.base.root()) != 0) return Fail(errno, "sync workspace");
  return {};
}

Status CommitRunner::DropSharedNames(const std::vector<CommitStep>& steps) {
  for (const CommitStep& step : steps) {
    const bool may_share =
        step.kind == StepKind::kHold || step.kind == StepKind::kDetach;
    struct stat st{};
    if (!may_share ||
        ::fstatat(stage_, step.stage.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
      continue;
    }
    if (S_ISDIR(st.st_mode) || st.st_nlink < 2) continue;
    if (::unlinkat(stage_, step.stage.c_str(), 0) != 0) {
      return Fail(errno, "remove staged name");
    }
  }
  return {};
}

Status CommitRunner::Do(const CommitStep& step) {
  switch (step.kind) {
    case StepKind::kPatch:
      return Patch(step);
    case StepKind::kHold:
      return Hold(step);
    case StepKind::kDetach:
      return Detach(step);
    case StepKind::kAttach:
      return Attach(step);
    case StepKind::kExchange:
      return Exchange(step);
    case StepKind::kLink:
      return Link(step);
    case StepKind::kAttributes:
      return SetAttributes(step);
  }
  return Fail(EBADMSG, "commit step");
}

Status CommitRunner::Patch(const CommitStep& step) {
  const Inode* inode = frozen_.tree.Find(step.ino);
  if (inode == nullptr) return Fail(EIO, "patch " + step.path);
  auto place = Resolve(frozen_.base, step.path);
  // Detached already: an earlier run was past the patches, which it synced.
  if (!place && place.error().code == ENOENT) return {};
  if (!place) return std::unexpected(std::move(place).error());
  if (InoAt(place->dir(), place->name) != step.base_ino) return {};
  UniqueFd fd;
  const auto open = [&] {
    fd.Reset(::openat(place->dir(), place->name.c_str(),
                      O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    return fd.valid() ? 0 : -1;
  };
  if (open() != 0 && errno == EACCES) {
    ::fchmodat(place->dir(), place->name.c_str(), 0600, 0);
    std::ignore = open();
  }
  if (!fd.valid()) return Fail(errno, "open " + step.path);
  // Below base_limit only the extents differ. Beyond it the old bytes go first,
  // so that what no extent covers reads as zeros.
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0) return Fail(errno, "stat " + step.path);
  if (step.attr.base_limit < static_cast<uint64_t>(st.st_size) &&
      ::ftruncate(fd.get(), static_cast<off_t>(step.attr.base_limit)) != 0) {
    return Fail(errno, "truncate " + step.path);
  }
  if (::ftruncate(fd.get(), static_cast<off_t>(step.attr.size)) != 0) {
    return Fail(errno, "truncate " + step.path);
  }
  Bytes buffer(kCopyBytes);
  for (const auto& [start, extent] : inode->extents) {
    const uint64_t end = std::min(extent.end(), step.attr.size);
    for (uint64_t offset = start; offset < end;) {
      const MutableByteSpan part = MutableByteSpan(buffer).first(
          std::min<uint64_t>(buffer.size(), end - offset));
      const size_t n = TRY(frozen_.Read(*inode, offset, part));
      if (n == 0) return Fail(EIO, "read " + step.path);
      TRY(WriteFully(fd.get(), offset, ByteSpan(buffer).first(n)));
      offset += n;
    }
  }
  if (::fsync(fd.get()) != 0) return Fail(errno, "sync " + step.path);
  return {};
}

Status CommitRunner::Hold(const CommitStep& step) {
  if (InStage(step.stage)) return {};
  const auto from = Resolve(frozen_.base, step.path);
  // An earlier run was past this, and has dropped it again.
  if (!from || InoAt(from->dir(), from->name) != step.base_ino) return {};
  if (::linkat(from->dir(), from->name.c_str(), stage_, step.stage.c_str(),
               0) != 0) {
    return Fail(errno, "link " + step.path);
  }
  return {};
}

Status CommitRunner::Detach(const CommitStep& step) {
  if (InStage(step.stage)) return {};
  auto from = Resolve(frozen_.base, step.path);
  // Moved on already, with the object or with a directory above it.
  if (!from && from.error().code == ENOENT) return {};
  if (!from) return std::unexpected(std::move(from).error());
  if (InoAt(from->dir(), from->name) != step.base_ino) return {};
  const bool is_directory = IsDirectoryAt(from->dir(), from->name);
  if (is_directory) LetIn(from->dir(), from->name);
  auto moved = InDirectory(from->dir(), "move away " + step.path, [&] {
    return ::renameat(from->dir(), from->name.c_str(), stage_,
                      step.stage.c_str());
  });
  if (is_directory) frozen_.base.DropCache();
  return moved;
}

Status CommitRunner::Attach(const CommitStep& step) {
  if (!InStage(step.stage)) return {};
  const bool is_directory = IsDirectoryAt(stage_, step.stage);
  if (is_directory) LetIn(stage_, step.stage);
  const Place to = TRY(Resolve(frozen_.base, step.path));
  TRY(InDirectory(to.dir(), "put in place " + step.path, [&] {
    return ::renameat(stage_, step.stage.c_str(), to.dir(), to.name.c_str());
  }));
  if (is_directory) frozen_.base.DropCache();
  return {};
}

Status CommitRunner::Exchange(const CommitStep& step) {
  const Place to = TRY(Resolve(frozen_.base, step.path));
  if (InoAt(to.dir(), to.name) == step.base_ino) return {};
  return InDirectory(to.dir(), "replace " + step.path, [&] {
    if (SwapNames(stage_, step.stage, to.dir(), to.name) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return -1;
    // No exchange here: keep the old content by a link, then replace.
    const std::string old = step.stage + ".old";
    if (::linkat(to.dir(), to.name.c_str(), stage_, old.c_str(), 0) != 0 &&
        errno != EEXIST) {
      return -1;
    }
    return ::renameat(stage_, step.stage.c_str(), to.dir(), to.name.c_str());
  });
}

Status CommitRunner::Link(const CommitStep& step) {
  const Place to = TRY(Resolve(frozen_.base, step.path));
  if (InoAt(to.dir(), to.name) != 0) return {};
  const bool staged = !step.stage.empty();
  Place from;
  if (!staged) from = TRY(Resolve(frozen_.base, step.from));
  const int dir = staged ? stage_ : from.dir();
  const std::string& name = staged ? step.stage : from.name;
  return InDirectory(to.dir(), "link " + step.path, [&] {
    return ::linkat(dir, name.c_str(), to.dir(), to.name.c_str(), 0);
  });
}

Status CommitRunner::SetAttributes(const CommitStep& step) {
  const Place place = TRY(Resolve(frozen_.base, step.path));
  if (step.set_xattrs && step.attr.type != FileType::kSymlink) {
    const UniqueFd fd =
        TRY(OpenAt(place.dir(), place.name, O_PATH | O_NOFOLLOW));
    auto set = SetXattrs(fd.get(), step.xattrs, step.path);
    if (!set && set.error().code == EACCES) {
      ::fchmodat(place.dir(), place.name.c_str(),
                 step.attr.mode | S_IRUSR | S_IWUSR, 0);
      set = SetXattrs(fd.get(), step.xattrs, step.path);
    }
    TRY(std::move(set));
  }
  return SetOwnerModeTimes(place.dir(), place.name, step.attr, step.path);
}

}  // namespace txfs
