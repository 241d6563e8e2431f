#include "fs/planning/commit_stage.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/limits.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <ranges>

#include "fs/commit/commit_run.h"
#include "fs/host/xattrs.h"
#include "fs/tree/own_xattrs.h"
#include "journal/support/checksum.h"
#include "journal/support/crash_point.h"
#include "journal/support/file.h"
#include "journal/support/pieces.h"

namespace txfs {
namespace {

/// A smaller file is copied rather than cloned, bytes.
constexpr uint64_t kMinClone = 1 << 20;

/// What was done to the file at `path`.
Status Naming(const std::string& path, Status done) {
  if (!done)
    done.error().message = "copy " + path + ": " + done.error().message;
  return done;
}

/// Makes the file `name` of the vault, with the group that the directory
/// `nest` gives to new files, without making a name there.
Result<UniqueFd> MakeNested(int nest, int vault, const std::string& name) {
  UniqueFd fd = TRY(OpenAt(nest, ".", O_TMPFILE | O_RDWR, 0600));
  if (::linkat(AT_FDCWD, ProcPath(fd.get()).c_str(), vault, name.c_str(),
               AT_SYMLINK_FOLLOW) != 0) {
    return Fail(errno, "link");
  }
  return fd;
}

/// Makes the file `name` of the vault, of what is to become `path`.
Result<UniqueFd> MakeSlot(int vault, const std::string& name,
                          const std::string& path) {
  auto fd = OpenAt(vault, name, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (!fd) return Fail(fd.error().code, "stage " + path);
  return fd;
}

Result<UniqueFd> MakeProbeDirectory(int vault, const std::string& name,
                                    const std::string& path) {
  if (::mkdirat(vault, name.c_str(), 0700) != 0) {
    return Fail(errno, "stage " + path);
  }
  return OpenAt(vault, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

Status SetSize(int fd, uint64_t size, const std::string& path) {
  if (::ftruncate(fd, static_cast<off_t>(size)) == 0) return {};
  return Fail(errno, "commit " + path,
              errno == EFBIG ? "the file is too large for the workspace's "
                               "filesystem: make it smaller"
                             : "");
}

bool IsZero(ByteSpan bytes) {
  return std::ranges::all_of(bytes,
                             [](std::byte b) { return b == std::byte{}; });
}

/// Whether this is a whole record of the file's own segment, where the file has
/// it.
bool IsInPlace(const Inode& inode, const Extent& extent) {
  const ContentRef& content = extent.content;
  return content.segment == inode.attr().own_segment &&
         content.record_position == extent.offset &&
         content.record_length == extent.length;
}

}  // namespace

bool VaultFiller::CanClone(const Vault& vault) {
  const int directory = vault.at("").get();
  const char* const names[] = {"clone.from", "clone.to"};
  const auto from = OpenAt(directory, names[0], O_RDWR | O_CREAT, 0600);
  const auto to = OpenAt(directory, names[1], O_RDWR | O_CREAT, 0600);
  const bool can = from && to && ::ioctl(to->get(), FICLONE, from->get()) == 0;
  for (const char* name : names) std::ignore = ::unlinkat(directory, name, 0);
  return can;
}

Result<CommitSteps> VaultFiller::Fill(const CommitPlan& plan) {
  for (const StagedObject& object : plan.staged) {
    TRY(Make(object));
    CountOne();
  }
  // Children first: what is made in a directory changes its times.
  for (const StagedObject& object : std::views::reverse(plan.staged)) {
    if (!object.adopts) TRY(SetAttributes(object));
  }
  for (const StagedDelta& delta : plan.deltas) {
    TRY(SaveDelta(delta));
    CountOne();
  }
  for (const TriedXattrs& tried : plan.tried) TRY(Try(tried));
  CrashPoint();
  TRY(MakeSums(vault_, sums_));
  CommitSteps steps;
  steps.reserve(plan.steps.size());
  for (const PlannedStep& planned : plan.steps) {
    CommitStep& step = steps.emplace_back(planned.step);
    if (planned.object != kNoIno) step.ino = InoOf(planned.object);
    if (planned.parent != kNoIno) step.parent = InoOf(planned.parent);
  }
  CrashPoint();
  for (const auto& [mount, part] : vault_) {
    if (::syncfs(part.get()) != 0) return Fail(errno, "sync the vault");
  }
  return steps;
}

/// st_ino that an inode has once it is committed; 0 when that is not known.
uint64_t VaultFiller::InoOf(Ino ino) const {
  const auto made = made_.find(ino);
  if (made != made_.end()) return made->second;
  const Inode* inode = frozen_.tree.Find(ino);
  const bool based = inode != nullptr && inode->record.base;
  return based ? inode->record.base->ino : 0;
}

Status VaultFiller::Make(const StagedObject& object) {
  const Inode* inode = frozen_.tree.Find(object.ino);
  if (inode == nullptr) return Fail(EIO, "stage an inode");
  const int vault = TRY(DirectoryOf(vault_, object.spot));
  const char* name = object.spot.path.c_str();
  CrashPoint();
  int made = 0;
  ContentSum sum;
  switch (inode->attr().type) {
    case FileType::kRegular:
      if (!object.adopts || !TRY(AdoptSegment(vault, name, *inode, sum))) {
        sum = {};
        TRY(MakeRegular(vault, object, *inode, sum));
      }
      TRY(Keep(object.spot, std::move(sum), CommittedAttributes(*inode).mtime));
      break;
    case FileType::kDirectory:
      made = ::mkdirat(vault, name, 0700);
      break;
    case FileType::kSymlink:
      made = ::symlinkat(inode->record.symlink().c_str(), vault, name);
      break;
    default:
      made = ::mknodat(vault, name, ModeBits(inode->attr().type) | 0600, 0);
      break;
  }
  struct stat st{};
  if (made != 0 || ::fstatat(vault, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
    return Fail(errno, "stage " + frozen_.tree.PathOf(*inode));
  }
  made_[object.ino] = st.st_ino;
  return {};
}

/// Notes what is known of the content of a file that was made, and is to get
/// `mtime` if that is said.
Status VaultFiller::Keep(const Spot& spot, ContentSum sum,
                         const std::optional<Timestamp>& mtime) {
  struct stat st{};
  if (::fstatat(TRY(DirectoryOf(vault_, spot)), spot.path.c_str(), &st,
                AT_SYMLINK_NOFOLLOW) != 0) {
    return Fail(errno, "stat a file of the vault");
  }
  sum.mount = spot.mount;
  sum.path = spot.path;
  sum.ino = st.st_ino;
  sum.size = static_cast<uint64_t>(st.st_size);
  sum.mtime = mtime.value_or(Timestamp::From(st.st_mtim));
  std::ranges::sort(sum.pieces, {}, &SumPiece::offset);
  sums_.sums.push_back(std::move(sum));
  return {};
}

Status VaultFiller::SetAttributes(const StagedObject& object) {
  const Inode& inode = *frozen_.tree.Find(object.ino);
  ObjectAttributes attributes = CommittedAttributes(inode);
  attributes.xattrs = OwnXattrs(inode);
  if (inode.record.base) {
    const BaseOrigin& base = *inode.record.base;
    XattrMap now = TRY(frozen_.origins.BaseXattrs(base.path, base.ino));
    if (!inode.attr().xattrs_owned) {
      attributes.xattrs = std::move(now);
    } else if (!now.empty()) {  // else the base may have it no more
      attributes.xattrs = MergeXattrs(inode, std::move(now));
    }
  }
  const int vault = TRY(DirectoryOf(vault_, object.spot));
  const OpenObject made = TRY(OpenObjectAt(vault, object.spot.path));
  return ApplyAttributes(made, attributes, frozen_.tree.PathOf(inode));
}

Status VaultFiller::Try(const TriedXattrs& tried) {
  const Inode& inode = *frozen_.tree.Find(tried.ino);
  const int vault = TRY(DirectoryOf(vault_, tried.spot));
  const char* name = tried.spot.path.c_str();
  CrashPoint();
  const std::string path = frozen_.tree.PathOf(inode);
  const bool is_directory = inode.IsDirectory();
  const UniqueFd fd = TRY(is_directory ? MakeProbeDirectory(vault, name, path)
                                       : MakeSlot(vault, name, path));
  if (inode.record.base) TRY(CopyForeignXattrs(inode, fd.get()));
  ObjectAttributes attributes = CommittedAttributes(inode);
  if (!is_directory) attributes.type = FileType::kRegular;
  attributes.xattrs = OwnXattrs(inode);
  const OpenObject made = TRY(OpenObjectAt(vault, name));
  TRY(ApplyAttributes(made, attributes, path));
  CrashPoint();
  if (::unlinkat(vault, name, is_directory ? AT_REMOVEDIR : 0) == 0) return {};
  return Fail(errno, "remove a probe from the vault");
}

Result<UniqueFd> VaultFiller::MakeFile(int directory,
                                       const StagedObject& object,
                                       const Inode& inode) {
  const std::string& name = object.spot.path;
  const std::string path = frozen_.tree.PathOf(inode);
  if (object.nest.empty()) return MakeSlot(directory, name, path);
  const SharedFd nest = TRY(frozen_.base.OpenDirectory(object.nest));
  auto made = MakeNested(nest->get(), directory, name);
  if (!made) return Fail(made.error().code, "stage " + path);
  return made;
}

Status VaultFiller::MakeRegular(int directory, const StagedObject& object,
                                const Inode& inode, ContentSum& sum) {
  const UniqueFd fd = TRY(MakeFile(directory, object, inode));
  const uint64_t size = inode.attr().size;
  if (TRY(CloneBase(inode, fd.get()))) {
    sum.whole = false;
    for (const auto& [offset, extent] : inode.extents) {
      const Range range{offset, std::min(extent.end(), size)};
      TRY(CopyRange(inode, fd.get(), range, sum));
    }
  } else {
    TRY(CopyRange(inode, fd.get(), {0, size}, sum));
  }
  TRY(SetSize(fd.get(), size, frozen_.tree.PathOf(inode)));
  if (inode.record.base) TRY(CopyForeignXattrs(inode, fd.get()));
  return {};
}

/// Makes the segment that belongs to the file the file itself: for most of it
/// that saves the copying. Its attributes wait for the plan, because until the
/// point of no return the journal needs the segment as it is.
Result<bool> VaultFiller::AdoptSegment(int directory, const std::string& name,
                                       const Inode& inode, ContentSum& sum) {
  uint64_t in_place = 0;
  for (const auto& [offset, extent] : inode.extents) {
    // The rest of a record of which the file has only a part must stay.
    const bool is_own = extent.content.segment == inode.attr().own_segment;
    if (!IsInPlace(inode, extent) && is_own) return false;
    if (is_own) in_place += extent.length;
  }
  if (in_place == 0 || in_place < inode.own->stored_bytes / 2) return false;
  const auto linked =
      frozen_.journal.LinkSegment(inode.attr().own_segment, directory, name);
  if (!linked) return false;
  const UniqueFd fd = TRY(OpenAt(directory, name, O_RDWR | O_NOFOLLOW));
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0) return Fail(errno, "stat a segment");
  const uint64_t size = inode.attr().size;
  if (static_cast<uint64_t>(st.st_size) > size) {
    if (::unlinkat(directory, name.c_str(), 0) == 0) return false;
    return Fail(errno, "stage " + frozen_.tree.PathOf(inode));
  }
  TRY(FillGaps(inode, fd.get(), sum));
  TRY(SetSize(fd.get(), size, frozen_.tree.PathOf(inode)));
  return true;
}

/// What the file has elsewhere, and where it has nothing.
Status VaultFiller::FillGaps(const Inode& inode, int fd, ContentSum& sum) {
  uint64_t at = 0;
  for (const auto& [offset, extent] : inode.extents) {
    const uint64_t end = std::min(extent.end(), inode.attr().size);
    if (extent.content.segment == 0) continue;
    TRY(Clear(inode, fd, {at, offset}));
    if (!IsInPlace(inode, extent)) {
      TRY(Clear(inode, fd, {offset, end}));
      TRY(CopyRange(inode, fd, {offset, end}, sum));
    } else if (extent.length <= kMaxSumPiece) {
      sum.pieces.push_back({offset, extent.length, extent.content.checksum});
    } else {
      sum.whole = false;
    }
    at = end;
  }
  return Clear(inode, fd, {at, inode.attr().size});
}

/// Makes a hole of what the file has in `range`.
Status VaultFiller::Clear(const Inode& inode, int fd, Range range) {
  struct stat st{};
  if (::fstat(fd, &st) != 0) return Fail(errno, "stage");
  const uint64_t to = std::min(range.to, static_cast<uint64_t>(st.st_size));
  if (range.from >= to) return {};
  CrashPoint();
  if (::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(range.from),
                  static_cast<off_t>(to - range.from)) == 0) {
    return {};
  }
  return Fail(errno, "punch a hole in the new content of " +
                         frozen_.tree.PathOf(inode));
}

Result<SharedFd> VaultFiller::OpenOrigin(const Inode& inode) const {
  const BaseOrigin& origin = *inode.record.base;
  SharedFd fd = TRY(frozen_.base.OpenFile(origin.path));
  struct stat st{};
  if (::fstat(fd->get(), &st) != 0) return Fail(errno, "stat " + origin.path);
  if (frozen_.tree.IsOrigin(inode, st)) return fd;
  return Fail(ESTALE, origin.path + " was replaced in the base meanwhile",
              "commit again");
}

/// Starts a file with the blocks of its base file, where the filesystem can
/// and that is more than a few.
Result<bool> VaultFiller::CloneBase(const Inode& inode, int fd) {
  if (!inode.record.base || inode.attr().base_limit < kMinClone) return false;
  const auto opened = OpenOrigin(inode);
  // Where it is by now is found when it is read.
  if (!opened && opened.error().code == ESTALE) return false;
  const SharedFd base = TRY(opened);
  if (::ioctl(fd, FICLONE, base->get()) != 0) return false;
  const uint64_t limit = inode.attr().base_limit;
  if (::ftruncate(fd, static_cast<off_t>(limit)) != 0) {
    return Fail(errno, "stage " + inode.record.base->path);
  }
  return true;
}

/// Writes the overlay's content, of what may be terabytes only what is there.
Status VaultFiller::CopyRange(const Inode& inode, int fd, Range range,
                              ContentSum& sum) {
  const std::vector<Range> data = frozen_.DataIn(inode, range);
  if (data != std::vector{range}) TRY(Clear(inode, fd, range));
  for (const Range& part : data) {
    auto copied = ForEachPiece(
        part.from, part.to,
        [&](uint64_t offset, MutableByteSpan out) {
          return frozen_.Read(inode, offset, out);
        },
        [&](uint64_t offset, ByteSpan piece) {
          // One large file is to be heard of, too.
          if (progress_) progress_(done_);
          sum.pieces.push_back({offset, piece.size(), Checksum(piece)});
          return WriteFully(fd, offset, piece);
        });
    TRY(Naming(frozen_.tree.PathOf(inode), std::move(copied)));
  }
  return {};
}

Status VaultFiller::SaveDelta(const StagedDelta& delta) {
  const Inode* inode = frozen_.tree.Find(delta.ino);
  const std::string path = frozen_.tree.PathOf(
      inode != nullptr ? *inode : *frozen_.tree.Find(delta.base));
  const UniqueFd fd =
      TRY(MakeSlot(vault_.at("").get(), delta.delta.name, path));
  SharedFd base;
  if (inode == nullptr) base = TRY(OpenOrigin(*frozen_.tree.Find(delta.base)));
  ContentSum sum;
  for (const Range& range : delta.delta.ranges) {
    if (inode != nullptr) {
      TRY(CopyRange(*inode, fd.get(), range, sum));
      continue;
    }
    auto copied = ForEachPiece(
        range.from, range.to, base->get(),
        [&](uint64_t offset, ByteSpan piece) -> Status {
          if (IsZero(piece)) return {};
          sum.pieces.push_back({offset, piece.size(), Checksum(piece)});
          return WriteFully(fd.get(), offset, piece);
        });
    TRY(Naming(path, std::move(copied)));
  }
  // Zeros at its end are content, too.
  TRY(SetSize(fd.get(), delta.delta.size, path));
  return Keep(Spot::Vault(delta.delta.name, ""), std::move(sum), std::nullopt);
}

/// What the base file carries besides tracked attributes (labels) goes to its
/// replacement, except file capabilities, which a write takes away.
Status VaultFiller::CopyForeignXattrs(const Inode& inode, int fd) {
  const auto from = OpenOrigin(inode);
  if (!from && from.error().code == ESTALE) {
    return std::unexpected(from.error());
  }
  if (!from) return {};  // unreadable to us
  const auto names = XattrNames(ProcPath((*from)->get()));
  std::string value(XATTR_SIZE_MAX, '\0');
  for (const std::string& name : names.value_or(std::vector<std::string>())) {
    if (IsTrackedXattr(name) || name == "security.capability") continue;
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

}  // namespace txfs
