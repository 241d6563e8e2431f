#include "fs/commit/commit_run.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "fs/base/base_lock.h"
#include "fs/base/base_mounts.h"
#include "fs/base/owner_access.h"
#include "fs/host/xattrs.h"
#include "fs/vault/vaults.h"
#include "journal/support/crash_point.h"
#include "journal/support/file.h"
#include "journal/support/pieces.h"

namespace txfs {
namespace {

constexpr std::string_view kOldSuffix = ".old";

/// st_ino of what stands there; 0 when nothing does.
uint64_t InoAt(int dir, const std::string& name) {
  struct stat st{};
  const int found = ::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW);
  return found == 0 ? st.st_ino : 0;
}

bool IsDirectoryAt(int dir, const std::string& name) {
  struct stat st{};
  return ::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISDIR(st.st_mode);
}

std::string OldName(const std::string& name) {
  return name + std::string(kOldSuffix);
}

std::atomic<bool> rename_has_flags = true;
std::atomic<bool> exchange_has_links = true;

/// EPERM is what most of those filesystems say.
bool HasNoLinks(int error) {
  return error == EPERM || error == EOPNOTSUPP || error == ENOSYS ||
         error == EMLINK;
}

int LinkForExchange(const UniqueFd& object, int dir, const std::string& name) {
  if (!exchange_has_links) {
    errno = EPERM;
    return -1;
  }
  return LinkObject(object, dir, name);
}

int Rename(int from_dir, const std::string& from, int to_dir,
           const std::string& to, unsigned flags) {
  if (flags != 0 && !rename_has_flags) {
    errno = EINVAL;
    return -1;
  }
  return ::renameat2(from_dir, from.c_str(), to_dir, to.c_str(), flags);
}

/// Renames to a name that must be free. Without RENAME_NOREPLACE nobody but us
/// is expected to make names there.
int RenameToFree(int from_dir, const std::string& from, int to_dir,
                 const std::string& to) {
  const int renamed = Rename(from_dir, from, to_dir, to, RENAME_NOREPLACE);
  if (renamed == 0 || (errno != EINVAL && errno != ENOSYS)) return renamed;
  if (InoAt(to_dir, to) != 0) {
    errno = EEXIST;
    return -1;
  }
  return Rename(from_dir, from, to_dir, to, 0);
}

const std::string& PathOf(const CommitStep& step) {
  return step.to.vault ? step.from.path : step.to.path;
}

/// How a step changes what is there before the first step.
struct Alteration {
  const Spot* spot;
  /// Of the object there: only its size grows, or only its times change.
  bool appends = false;
  enum class Names : uint8_t { kStay, kCome, kChange } names = Names::kStay;
};

/// Whether a patch only writes behind the end of the file, all the bytes there:
/// what is appended has no holes.
bool Appends(const CommitStep& patch) {
  if (!patch.before || !patch.after) return false;
  const Delta& after = *patch.after;
  uint64_t end = after.keep;
  for (const Range& range : after.ranges) {
    if (range.from > end) return false;
    end = std::max(end, range.to);
  }
  return patch.before->ranges.empty() && after.keep == patch.before->size &&
         end == after.size;
}

/// Whether a step sets only times.
bool SetsTimes(const CommitStep& step) {
  ObjectAttributes after = *step.set_after;
  after.atime = step.set_before->atime;
  after.mtime = step.set_before->mtime;
  if (!after.xattrs) after.xattrs = step.set_before->xattrs;
  return after == *step.set_before;
}

std::vector<Alteration> AlteredBy(const CommitStep& step) {
  using Names = Alteration::Names;
  switch (step.kind) {
    case StepKind::kMove:
      return {{.spot = &step.from, .names = Names::kChange},
              {.spot = &step.to, .names = Names::kCome}};
    case StepKind::kLink:
      return {{.spot = &step.from}, {.spot = &step.to, .names = Names::kCome}};
    case StepKind::kExchange:
    case StepKind::kUnlink:
      return {{.spot = &step.to, .names = Names::kChange}};
    case StepKind::kPatch:
      return {{.spot = &step.to, .appends = Appends(step)}};
    case StepKind::kAttributes:
      if (step.set_before && step.set_after) {
        return {{.spot = &step.from, .appends = SetsTimes(step)}};
      }
      return {};
  }
  return {};
}

/// Whether an object with the attribute `lock` admits its change.
bool Admits(BaseLock lock, bool appends) {
  return lock == BaseLock::kNone || (appends && lock == BaseLock::kAppendOnly);
}

std::unexpected<Error> Locked(const std::string& path, BaseLock lock) {
  const bool immutable = lock == BaseLock::kImmutable;
  return Fail(
      0,
      "cannot commit " + ShownPath(path) + ": it is " +
          (immutable ? "immutable" : "append-only"),
      std::string("remove the attribute with `chattr ") +
          (immutable ? "-i" : "-a") +
          "` on the workspace itself, where a mount covers it after `txfs "
          "umount`; then try again");
}

/// In a workspace with objects of several users, neither their owner nor root
/// can commit: only the user of the workspace can.
std::unexpected<Error> NotPermitted(const std::string& path, int dir,
                                    const std::string& name) {
  struct stat st{};
  std::string why;
  if (::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
      st.st_uid != ::geteuid()) {
    why = std::string(name == "." ? ": its directory" : ": it") +
          " belongs to user " + std::to_string(st.st_uid) + ", not to user " +
          std::to_string(::geteuid());
  }
  return Fail(EACCES, "cannot commit " + ShownPath(path) + why,
              "`txfs discard PATH` drops this change, `txfs commit PATH...` "
              "commits others without it");
}

/// overlayfs does not rename a directory of a lower layer, unless it is mounted
/// with redirect_dir=on. It says so before it looks at what stands at the new
/// name. So this tries to rename to the name of a directory that has an entry,
/// which moves nothing on any filesystem. Leaves no trace in the times of
/// `base`.
Status CheckMoves(int dir, const std::string& name, int base,
                  const std::string& path) {
  constexpr const char* kFull = ".txfs-vault-full";
  constexpr const char* kEntry = ".txfs-vault-full/entry";
  if (!IsDirectoryAt(dir, name) || !IsOverlay(dir)) return {};
  struct stat st{};
  if (::fstat(base, &st) != 0) return Fail(errno, "stat the workspace");
  TRY(MakeDirectoryAt(base, kFull, 0700));
  TRY(MakeDirectoryAt(base, kEntry, 0700));
  const bool moves =
      ::renameat2(dir, name.c_str(), base, kFull, 0) == 0 || errno != EXDEV;
  TRY(RemoveTree(base, kFull));
  const timespec times[2] = {st.st_atim, st.st_mtim};
  std::ignore = ::futimens(base, times);
  if (moves) return {};
  return Fail(
      0,
      "cannot commit the move or deletion of " + path +
          ": it is in a lower layer of an overlay, which does not rename "
          "directories",
      "run `txfs discard` on that path, or mount the overlay with "
      "redirect_dir=on");
}

/// A file of several names in a lower layer becomes another one when overlayfs
/// writes to it first, unless it is mounted with index=on. That happens here,
/// where it still does no harm.
Status CheckStaysItself(int dir, const CommitStep& step) {
  const std::string name(BaseName(step.to.path));
  const auto object = OpenObjectAt(dir, name);
  if (!object || object->st.st_ino != step.ino ||
      !S_ISREG(object->st.st_mode)) {
    return {};
  }
  const auto opened = Reopen(object->fd, O_WRONLY, step.to.path);
  // Whether it may be written to is not the question here.
  if (!opened || InoAt(dir, name) == step.ino) return {};
  return Fail(0,
              "cannot commit " + step.to.path +
                  ": it has several hard links in a lower layer of an overlay, "
                  "and a write would separate them",
              "mount the overlay with index=on, or commit with "
              "--on-conflict=mine, which makes it a separate file");
}

std::unexpected<Error> InTheWay(const std::string& path) {
  return Fail(EEXIST,
              "another process created or replaced " + path + " meanwhile",
              "move it elsewhere");
}

}  // namespace

void SetRenameHasFlags(bool has) { rename_has_flags = has; }
void SetExchangeHasLinks(bool has) { exchange_has_links = has; }

Result<CommitRunner::Place> CommitRunner::Resolve(const Spot& spot) const {
  Place place;
  place.vault = spot.vault;
  if (spot.vault) {
    const int vault = TRY(DirectoryOf(vault_, spot));
    place.directory = std::make_shared<UniqueFd>(
        TRY(OpenAt(vault, ".", O_RDONLY | O_DIRECTORY)));
    place.name = spot.path;
    return place;
  }
  auto directory = OpenBase(std::string(ParentPath(spot.path)));
  if (!directory &&
      (directory.error().code == ENOTDIR || directory.error().code == ELOOP)) {
    // What stands there now is no directory.
    directory.error().code = ENOENT;
  }
  place.directory = TRY(std::move(directory));
  place.name = spot.path.empty() ? "." : BaseName(spot.path);
  return place;
}

/// The attributes at the end of the plan set the modes of what denies itself
/// to its owner. They may be there already: of the run that this repeats, or
/// of the commit that this takes back.
Result<SharedFd> CommitRunner::OpenBase(const std::string& directory) const {
  auto fd = base_.OpenDirectory(directory);
  struct stat st{};
  const bool denied = fd ? ::fstat((*fd)->get(), &st) == 0 && DeniesOwner(st)
                         : fd.error().code == EACCES;
  if (!denied || !running_) return fd;
  OwnerAccess(base_, directory).Keep();
  return base_.OpenDirectory(directory);
}

Status CommitRunner::InDirectory(int dir, const std::string& what,
                                 const std::function<int()>& work) {
  CrashPoint();
  if (work() == 0) return {};
  if (errno == EEXIST) return InTheWay(what);
  if (errno != EACCES) return Fail(errno, what);
  struct stat st{};
  // fchmod(2) does not take an O_PATH descriptor.
  if (::fstat(dir, &st) != 0 ||
      ::chmod(ProcPath(dir).c_str(), (st.st_mode | S_IRWXU) & 07777) != 0) {
    return Fail(EACCES, what);
  }
  if (work() == 0) return {};
  return Fail(errno, what);
}

/// A directory that is to be moved to another parent is written to.
void CommitRunner::LetOwnerIn(const OpenObject& directory) {
  if ((directory.st.st_mode & S_IRWXU) == S_IRWXU) return;
  // Where it is not ours to let in, the move says so.
  std::ignore = ChangeMode(directory.fd, directory.st.st_mode | S_IRWXU);
}

Result<OpenObject> CommitRunner::Find(const Place& place, uint64_t ino) {
  auto object = OpenObjectAt(place.dir(), place.name);
  if (object && object->st.st_ino != ino) return Fail(ENOENT, place.name);
  return object;
}

bool CommitRunner::IsReachable(const OpenObject& object) const {
  const uint64_t mount = MountIdOf(object.fd.get());
  return mount == MountIdOf(base_.root()) ||
         std::ranges::any_of(vault_, [&](const auto& part) {
           return mount == MountIdOf(part.second.get());
         });
}

Status CommitRunner::CheckUnlocked(const CommitStep& step) const {
  using Names = Alteration::Names;
  for (const Alteration& change : AlteredBy(step)) {
    const Spot& spot = *change.spot;
    if (spot.vault) continue;
    const auto place = Resolve(spot);
    if (!place) continue;  // made by an earlier step
    const BaseLock lock = LockOf(place->dir(), place->name);
    if (!Admits(lock, change.appends)) return Locked(spot.path, lock);
    if (change.names == Names::kStay) continue;
    const BaseLock above = LockOf(place->dir(), ".");
    if (!Admits(above, change.names == Names::kCome)) {
      return Locked(std::string(ParentPath(spot.path)), above);
    }
  }
  return {};
}

/// Where the names of the base were before the commit, step by step.
class CommitRunner::Origins {
 public:
  /// The path at which the directory `path` was; none: it is made.
  [[nodiscard]] std::optional<std::string> Of(const std::string& path) const {
    for (std::string_view above = path; !above.empty();
         above = ParentPath(above)) {
      const auto came = came_.find(std::string(above));
      if (came == came_.end()) continue;
      if (!came->second) return std::nullopt;
      return *came->second + path.substr(above.size());
    }
    return path;
  }

  void Follow(const CommitStep& step) {
    if (step.kind == StepKind::kMove || step.kind == StepKind::kExchange) {
      // What comes from a vault was put there before, or is new.
      const std::string from = Key(step.from);
      const auto moved = came_.find(from);
      const auto origin =
          step.from.vault ? moved == came_.end() ? std::nullopt : moved->second
                          : Of(step.from.path);
      const auto was_there = step.to.vault ? std::nullopt : Of(step.to.path);
      came_[Key(step.to)] = origin;
      if (step.kind == StepKind::kExchange) came_[from] = was_there;
    }
  }

  std::set<std::string> looked_at;  ///< directories that admit names

 private:
  /// Paths of the base are relative.
  static std::string Key(const Spot& spot) {
    return spot.vault ? "/" + spot.path : spot.path;
  }

  std::map<std::string, std::optional<std::string>> came_;
};

Status CommitRunner::CheckMayCome(const Spot& to, Origins& origins) const {
  const auto parent = origins.Of(std::string(ParentPath(to.path)));
  if (!parent) return {};
  if (!origins.looked_at.insert(*parent).second) return {};
  const auto place = Resolve(Spot::Base(JoinPath(*parent, BaseName(to.path))));
  if (!place || MayWrite(place->dir(), ".")) return {};
  return NotPermitted(to.path, place->dir(), ".");
}

Status CommitRunner::CheckPermitted(const CommitSteps& steps, Asking asking) {
  Origins origins;
  for (const CommitStep& step : steps) {
    TRY(CheckUnlocked(step));
    const bool comes =
        step.kind == StepKind::kMove || step.kind == StepKind::kLink;
    if (comes && !step.to.vault) TRY(CheckMayCome(step.to, origins));
    origins.Follow(step);
    const bool patch = step.kind == StepKind::kPatch;
    const bool is_from =
        step.kind == StepKind::kMove || step.kind == StepKind::kLink;
    const Spot& spot = is_from ? step.from : step.to;
    if (spot.vault || step.kind == StepKind::kAttributes) continue;
    const auto place = Resolve(spot);
    if (!place) continue;  // made by an earlier step
    const bool is_made =
        is_from && InoAt(place->dir(), place->name) != step.ino;
    if (is_made) continue;
    if (IsOverlay(place->dir())) {
      if (patch && asking == Asking::kAll) {
        TRY(CheckStaysItself(place->dir(), step));
      }
      if (step.kind == StepKind::kMove) {
        TRY(CheckMoves(place->dir(), place->name, base_.root(), spot.path));
      }
    }
    if (MayDo(step, *place)) continue;
    const bool closed =
        step.kind != StepKind::kPatch && !MayWrite(place->dir(), ".");
    return NotPermitted(spot.path, place->dir(), closed ? "." : place->name);
  }
  return {};
}

bool CommitRunner::MayDo(const CommitStep& step, const Place& place) {
  if (step.kind == StepKind::kPatch) return MayWrite(place.dir(), place.name);
  if (step.kind == StepKind::kLink) return MayLink(place.dir(), place.name);
  // A directory that gets another parent is written to.
  const bool stays = step.kind == StepKind::kMove && !step.to.vault;
  const bool writes_to_it = !stays && IsDirectoryAt(place.dir(), place.name);
  return MayWrite(place.dir(), ".") && !IsStuck(place.dir(), place.name) &&
         (!writes_to_it || MayWrite(place.dir(), place.name));
}

Status CommitRunner::CheckHarmless(const CommitSteps& steps, bool is_undo) {
  for (const CommitStep& step : steps) {
    if (!step.set_after) continue;
    const ObjectAttributes& after = *step.set_after;
    // What an undo sets is what the commit found there.
    const bool gives_back = is_undo && step.ino != 0;
    if (GainsPrivilege(step) && !gives_back) {
      return Fail(EBADMSG, "the plan sets set-user-ID or set-group-ID on " +
                               step.to.path + ", which did not have it");
    }
    if (!after.xattrs) continue;
    for (const auto& [name, value] : *after.xattrs) {
      if (IsTrackedXattr(name)) continue;
      return Fail(EBADMSG, "the plan sets the attribute " + name + " of " +
                               step.to.path + ", which no commit does");
    }
  }
  return {};
}

Status CommitRunner::Run(const CommitSteps& steps, bool is_undo) {
  TRY(CheckHarmless(steps, is_undo));
  base_.DropCache();
  running_ = true;
  size_t done = 0;
  for (const CommitStep& step : steps) {
    TRY(Do(step));
    if (progress_) progress_(++done, steps.size());
  }
  base_.DropCache();
  CrashPoint();
  if (::syncfs(base_.root()) != 0) return Fail(errno, "sync the workspace");
  for (const auto& [mount, part] : vault_) {
    // The first is on the workspace's own filesystem.
    if (!mount.empty() && ::syncfs(part.get()) != 0) {
      return Fail(errno, "sync " + mount);
    }
  }
  return {};
}

Status CommitRunner::Do(const CommitStep& step) {
  switch (step.kind) {
    case StepKind::kMove:
      return Move(step);
    case StepKind::kExchange:
      return Exchange(step);
    case StepKind::kLink:
      return Link(step);
    case StepKind::kUnlink:
      return Unlink(step);
    case StepKind::kPatch:
      return Patch(step);
    case StepKind::kAttributes:
      return SetAttributes(step);
  }
  return Fail(EBADMSG, "commit step");
}

Status CommitRunner::Move(const CommitStep& step) {
  auto from = Resolve(step.from);
  // Moved on already, with the object or with a directory above it.
  if (!from && from.error().code == ENOENT) return {};
  if (!from) return std::unexpected(std::move(from).error());
  const auto object = Find(*from, step.ino);
  if (!object && object.error().code == ENOENT) return {};
  if (!object) return std::unexpected(object.error());
  const Place to = TRY(Resolve(step.to));
  if (!IsIn(step.from.vault ? to : *from, step.parent)) return {};
  if (object->IsDirectory()) LetOwnerIn(*object);
  const int permitting = step.from.vault ? to.dir() : from->dir();
  TRY(InDirectory(permitting, PathOf(step), [&] {
    return RenameToFree(from->dir(), from->name, to.dir(), to.name);
  }));
  if (object->IsDirectory()) base_.DropCache();
  // A rename is by name: in the base, another object may have got it.
  if (from->vault || InoAt(to.dir(), to.name) == step.ino) return {};
  std::ignore = RenameToFree(to.dir(), to.name, from->dir(), from->name);
  return InTheWay(PathOf(step));
}

Status CommitRunner::Exchange(const CommitStep& step) {
  const Place from = TRY(Resolve(step.from));
  const uint64_t kept = InoAt(from.dir(), from.name);
  if (kept == step.other) return {};
  const Place to = TRY(Resolve(step.to));
  if (kept != step.ino) return FinishExchange(step, from);
  const uint64_t there = InoAt(to.dir(), to.name);
  const bool was_set_aside =
      there == 0 && InoAt(from.dir(), OldName(from.name)) == step.other;
  if (was_set_aside) return ExchangeInSteps(step, from, to);
  if (there != step.other) return InTheWay(step.to.path);
  bool supported = true;
  TRY(InDirectory(to.dir(), step.to.path, [&] {
    const int swapped =
        Rename(from.dir(), from.name, to.dir(), to.name, RENAME_EXCHANGE);
    supported = swapped == 0 || (errno != EINVAL && errno != ENOSYS);
    return supported ? swapped : 0;
  }));
  if (!supported) return ExchangeInSteps(step, from, to);
  if (InoAt(from.dir(), from.name) == step.other) return {};
  // Another object got the name in between.
  std::ignore =
      Rename(from.dir(), from.name, to.dir(), to.name, RENAME_EXCHANGE);
  return InTheWay(step.to.path);
}

/// For filesystems without RENAME_EXCHANGE: the old object gets a name in the
/// vault, the new one replaces it, and then the name is the slot's. Where there
/// are no hard links either, the old one has only the name in the vault until
/// it is replaced.
Status CommitRunner::ExchangeInSteps(const CommitStep& step, const Place& from,
                                     const Place& to) {
  const std::string old = OldName(from.name);
  if (InoAt(from.dir(), old) != step.other) {
    const auto object = Find(to, step.other);
    if (!object) return InTheWay(step.to.path);
    TRY(InDirectory(to.dir(), step.to.path, [&] {
      if (LinkForExchange(object->fd, from.dir(), old) == 0) return 0;
      if (!HasNoLinks(errno)) return -1;
      return Rename(to.dir(), to.name, from.dir(), old, 0);
    }));
    if (InoAt(from.dir(), old) != step.other) {
      std::ignore = RenameToFree(from.dir(), old, to.dir(), to.name);
      return InTheWay(step.to.path);
    }
  }
  // What others make there meanwhile is not to be replaced.
  const bool is_old = InoAt(to.dir(), to.name) == step.other;
  TRY(InDirectory(to.dir(), step.to.path, [&] {
    return is_old ? Rename(from.dir(), from.name, to.dir(), to.name, 0)
                  : RenameToFree(from.dir(), from.name, to.dir(), to.name);
  }));
  return FinishExchange(step, from);
}

Status CommitRunner::FinishExchange(const CommitStep& step, const Place& from) {
  const std::string old = OldName(from.name);
  CrashPoint();
  if (InoAt(from.dir(), old) == step.other &&
      Rename(from.dir(), old, from.dir(), from.name, 0) == 0) {
    return {};
  }
  return Fail(EIO, "the old content of " + step.to.path + " is missing");
}

bool CommitRunner::IsIn(const Place& place, uint64_t parent) {
  struct stat st{};
  return parent == 0 || (::fstat(place.dir(), &st) == 0 && st.st_ino == parent);
}

Status CommitRunner::Link(const CommitStep& step) {
  auto from = Resolve(step.from);
  // Later steps took the other name away, or the directory it was in.
  if (!from && from.error().code == ENOENT) return {};
  if (!from) return std::unexpected(std::move(from).error());
  const auto object = Find(*from, step.ino);
  if (!object && object.error().code == ENOENT) return {};
  if (!object) return std::unexpected(object.error());
  const Place to = TRY(Resolve(step.to));
  if (!IsIn(to, step.parent)) return {};
  if (InoAt(to.dir(), to.name) == step.ino) return {};
  return InDirectory(to.dir(), PathOf(step),
                     [&] { return LinkObject(object->fd, to.dir(), to.name); });
}

Status CommitRunner::Unlink(const CommitStep& step) {
  auto to = Resolve(step.to);
  if (!to && to.error().code == ENOENT) return {};
  if (!to) return std::unexpected(std::move(to).error());
  if (!IsIn(*to, step.parent) || InoAt(to->dir(), to->name) != step.ino) {
    return {};
  }
  // Never the last name: it would be a deletion.
  auto from = Resolve(step.from);
  if (!from || InoAt(from->dir(), from->name) != step.ino) return {};
  return InDirectory(to->dir(), PathOf(step), [&] {
    return ::unlinkat(to->dir(), to->name.c_str(), 0);
  });
}

Status CommitRunner::Patch(const CommitStep& step) {
  auto place = Resolve(step.to);
  // Moved already: an earlier run was past the patches, which it synced.
  if (!place && place.error().code == ENOENT) return {};
  if (!place) return std::unexpected(std::move(place).error());
  const auto object = Find(*place, step.ino);
  if (!object && object.error().code == ENOENT) return {};
  if (!object) return std::unexpected(object.error());
  if (!S_ISREG(object->st.st_mode) || !IsReachable(*object)) {
    return InTheWay(step.to.path);
  }
  CrashPoint();
  const bool appends =
      LockOf(place->dir(), place->name) == BaseLock::kAppendOnly;
  const int flags = appends ? O_RDWR | O_APPEND : O_RDWR;
  auto opened = Reopen(object->fd, flags, step.to.path);
  if (!opened && opened.error().code == EACCES) {
    std::ignore = ChangeMode(object->fd, S_IRUSR | S_IWUSR);
    opened = Reopen(object->fd, flags, step.to.path);
  }
  const UniqueFd fd = TRY(std::move(opened));
  CrashPoint();
  auto written = appends ? AppendDelta(*step.after, fd.get())
                         : WriteDelta(*step.after, fd.get());
  if (written && ::fsync(fd.get()) != 0) written = Fail(errno, "sync");
  if (written) return {};
  written.error().message = "patch " + step.to.path;
  return written;
}

Status CommitRunner::WriteDelta(const Delta& delta, int fd) {
  // What is behind `keep` goes, so that what no range covers reads as zeros.
  struct stat st{};
  if (::fstat(fd, &st) != 0) return Fail(errno, "stat");
  if (delta.keep < static_cast<uint64_t>(st.st_size) &&
      ::ftruncate(fd, static_cast<off_t>(delta.keep)) != 0) {
    return Fail(errno, "truncate");
  }
  if (::ftruncate(fd, static_cast<off_t>(delta.size)) != 0) {
    return Fail(errno, "truncate");
  }
  const int vault = TRY(DirectoryOf(vault_, Spot::Vault(delta.name, "")));
  const UniqueFd from = TRY(OpenFileBelow(vault, delta.name, O_RDONLY));
  for (const Range& range : delta.ranges) {
    TRY(ForEachPiece(range.from, range.to, from.get(),
                     [&](uint64_t offset, ByteSpan piece) {
                       CrashPoint();
                       return WriteFully(fd, offset, piece);
                     }));
  }
  return {};
}

Status CommitRunner::AppendDelta(const Delta& delta, int fd) {
  struct stat st{};
  if (::fstat(fd, &st) != 0) return Fail(errno, "stat");
  // An earlier run may have written the first part.
  const auto end = static_cast<uint64_t>(st.st_size);
  const int vault = TRY(DirectoryOf(vault_, Spot::Vault(delta.name, "")));
  const UniqueFd from = TRY(OpenFileBelow(vault, delta.name, O_RDONLY));
  for (const Range& range : delta.ranges) {
    if (range.to <= end) continue;
    TRY(ForEachPiece(std::max(range.from, end), range.to, from.get(),
                     [&](uint64_t offset, ByteSpan piece) {
                       CrashPoint();
                       return WriteFully(fd, offset, piece);
                     }));
  }
  return {};
}

Status CommitRunner::SetAttributes(const CommitStep& step) {
  if (!step.set_after) return {};
  auto place = Resolve(step.to);
  // Others took away what the steps before brought: then so be it.
  if (!place && place.error().code == ENOENT) return {};
  if (!place) return std::unexpected(std::move(place).error());
  const auto object = OpenObjectAt(place->dir(), place->name);
  if (!object && object.error().code == ENOENT) return {};
  if (!object) return Fail(object.error().code, "open " + step.to.path);
  const bool is_named = step.ino == 0 || object->st.st_ino == step.ino;
  if (!is_named || !IsReachable(*object)) return InTheWay(step.to.path);
  CrashPoint();
  auto set = ApplyAttributes(*object, *step.set_after, step.to.path,
                             step.set_before ? &*step.set_before : nullptr);
  if (!set && set.error().code == EEXIST) return InTheWay(step.to.path);
  return set;
}

}  // namespace txfs
