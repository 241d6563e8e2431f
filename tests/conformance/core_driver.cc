#include "tests/conformance/core_driver.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "policy/sources.h"

namespace txfs::testing {
namespace {

constexpr mode_t kUmask = 022;
constexpr int kMaxSymlinks = 40;

std::deque<std::string> Components(const std::string& path) {
  std::deque<std::string> parts;
  for (size_t at = 0; at < path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    if (end > at && path.substr(at, end - at) != ".")
      parts.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

Result<RenameMode> ModeOfFlags(unsigned flags) {
  switch (flags) {
    case 0:
      return RenameMode::kReplace;
    case RENAME_NOREPLACE:
      return RenameMode::kNoReplace;
    case RENAME_EXCHANGE:
      return RenameMode::kExchange;
    default:
      return Fail(EINVAL, "rename flags");
  }
}

Result<AllocateMode> ModeOfAllocate(int mode) {
  switch (mode) {
    case 0:
      return AllocateMode::kReserve;
    case FALLOC_FL_KEEP_SIZE:
      return AllocateMode::kReserveKeepSize;
    case FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE:
      return AllocateMode::kPunchHole;
    case FALLOC_FL_ZERO_RANGE:
      return AllocateMode::kZero;
    case FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE:
      return AllocateMode::kZeroKeepSize;
    default:
      return Fail(EOPNOTSUPP, "fallocate mode");
  }
}

CommitOutcome OutcomeOf(const HeldReport& report, bool committed) {
  CommitOutcome outcome{.committed = committed};
  for (const HeldChange& held : report.changes) {
    if (held.accepted) continue;
    outcome.held.push_back(held.rule + " " + held.change + " " + held.path);
    for (const std::string& line : held.lines) {
      outcome.lines.push_back(held.rule + " " + held.path + ": " + line);
    }
  }
  std::ranges::sort(outcome.held);
  std::ranges::sort(outcome.lines);
  return outcome;
}

bool Writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

}  // namespace

Status NoConflicts(const std::vector<Conflict>& conflicts) {
  if (conflicts.empty()) return {};
  return Fail(EEXIST, "conflict: " + conflicts.front().path + " " +
                          conflicts.front().reason);
}

CoreDriver::Ref::~Ref() {
  if (!driver_ || ino_ == kRootIno) return;
  if (driver_->options_.keep_lookups) {
    ++driver_->kept_[ino_];
  } else {
    driver_->fs().Forget(ino_, 1);
  }
}

CoreDriver::CoreDriver(std::string workspace, const CoreOptions& options)
    : path_(std::move(workspace)), options_(options) {
  ActAs(geteuid(), getegid());
}

CoreDriver::~CoreDriver() { handles_.clear(); }

Result<std::unique_ptr<CoreDriver>> CoreDriver::Start(
    const std::string& workspace, const CoreOptions& options) {
  std::unique_ptr<CoreDriver> driver(new CoreDriver(workspace, options));
  TRY(driver->OpenWorkspace());
  return driver;
}

Status CoreDriver::OpenWorkspace() {
  WorkspaceOptions options;
  options.path = path_;
  options.store = options.path + "/.txfs";
  options.name = options_.name;
  options.journal = options_.journal;
  options.collects = options_.collects;
  options.filesystem.clock = options_.clock;
  options.filesystem.policy = options_.policy;
  options.filesystem.approver = options_.approver;
  options.filesystem.is_for_others = options_.is_for_others;
  options.filesystem.rights_of = [](const Caller& caller) {
    return FileRights{.fsetid = caller.uid == 0, .groups = {}};
  };
  options.filesystem.exe_of = [](uint32_t) { return std::string("/test"); };
  workspace_ = TRY(Workspace::Open(options));
  return {};
}

Status CoreDriver::Remount() {
  if (!handles_.empty()) return Fail(EBUSY, "files are open");
  for (const auto& [ino, count] : kept_) fs().Forget(ino, count);
  kept_.clear();
  TRY(workspace_->Close());
  workspace_.reset();
  return OpenWorkspace();
}

Status CoreDriver::Commit() {
  const CommitReport report = TRY(workspace_->Commit({.message = "test"}));
  return NoConflicts(report.conflicts);
}

Status CoreDriver::Undo(const std::string& id) {
  const UndoReport report = TRY(workspace_->Undo(id));
  return NoConflicts(report.conflicts);
}

Status CoreDriver::Discard() {
  TRY(workspace_->Discard());
  return {};
}

Status CoreDriver::MakeSavepoint(const std::string& name) {
  TRY(workspace_->MakeSavepoint(name));
  return {};
}

Status CoreDriver::Rollback(const std::string& name) {
  TRY(workspace_->Rollback(name));
  return {};
}

Status CoreDriver::MarkCall(const std::string& id, bool end) {
  TRY(workspace_->MarkCall({.host = "test", .call = id, .end = end}));
  return {};
}

Result<std::vector<std::string>> CoreDriver::RevertCall(const std::string& id) {
  std::vector<std::string> paths;
  const RevertReport report = TRY(workspace_->RevertCall(id));
  for (const BuiltOn& built_on : report.built_on) {
    paths.push_back(built_on.path);
  }
  return paths;
}

Status CoreDriver::UsePolicy(const std::string& text) {
  workspace_->UsePolicy(
      TRY(policy::Compile({{.file = "rules.toml", .text = text}})));
  return {};
}

Result<CommitOutcome> CoreDriver::Review(const CommitChoice& choice) {
  if (choice.dry_run) {
    const PlanReport plan =
        TRY(workspace_->PlanOnly({.paths = choice.paths,
                                  .accepted = choice.rules,
                                  .accepted_paths = choice.accepted_paths,
                                  .without_held = choice.without_held}));
    TRY(NoConflicts(plan.conflicts));
    return OutcomeOf(plan.held, false);
  }
  CommitOptions options{.message = "test",
                        .paths = choice.paths,
                        .accepted = choice.rules,
                        .accepted_paths = choice.accepted_paths,
                        .without_held = choice.without_held};
  if (choice.takes_theirs) options.conflicts.on_conflict = OnConflict::kTheirs;
  const CommitReport report = TRY(workspace_->Commit(options));
  TRY(NoConflicts(report.conflicts));
  return OutcomeOf(report.held, report.committed());
}

Result<std::vector<Refused>> CoreDriver::ReadRefused() {
  const Denials denials = TRY(workspace_->ReadDenials());
  std::vector<Refused> refused;
  for (const LogEntry& entry : denials.entries) {
    const Change& change = entry.change;
    refused.push_back({.op = std::string(OpName(change.op)),
                       .path = change.path,
                       .new_path = change.new_path,
                       .error = ErrnoName(change.result),
                       .rule = change.rule,
                       .count = entry.count});
  }
  return refused;
}

Status CoreDriver::Settle() {
  // Reading the log to its end drains.
  return workspace_->ReadLog(Lsn{1}, [](const LogEntry&) { return true; });
}

Result<uint64_t> CoreDriver::StoreBytes() {
  return TRY(workspace_->GetStatus()).store_bytes;
}

void CoreDriver::ActAs(uid_t uid, gid_t gid) {
  caller_ = {.pid = static_cast<uint32_t>(getpid()),
             .uid = uid,
             .gid = gid,
             .umask = kUmask};
}

// Paths.

Result<CoreDriver::Ref> CoreDriver::Child(Ino parent, const std::string& name) {
  const Node node = TRY(fs().Lookup(parent, name));
  return Ref(this, node.ino);
}

Result<std::vector<CoreDriver::Ref>> CoreDriver::WalkTrail(
    const std::string& path, bool follow_last) {
  std::deque<std::string> rest = Components(path);
  std::vector<Ref> trail;
  trail.emplace_back(this, kRootIno);
  int symlinks = 0;
  while (!rest.empty()) {
    const std::string name = rest.front();
    rest.pop_front();
    if (name == "..") {
      if (trail.size() > 1) trail.pop_back();
      continue;
    }
    const struct stat parent = TRY(AttrOf(trail.back()));
    if (!S_ISDIR(parent.st_mode)) return Fail(ENOTDIR, "walk");
    Ref child = TRY(Child(trail.back().ino(), name));
    const struct stat st = TRY(AttrOf(child));
    if (!S_ISLNK(st.st_mode) || (rest.empty() && !follow_last)) {
      trail.push_back(std::move(child));
      continue;
    }
    if (++symlinks > kMaxSymlinks) return Fail(ELOOP, "walk");
    const auto target = Components(TRY(fs().ReadLink(child.ino())));
    rest.insert(rest.begin(), target.begin(), target.end());
  }
  return trail;
}

Result<CoreDriver::Ref> CoreDriver::Walk(const std::string& path,
                                         bool follow_last) {
  std::vector<Ref> trail = TRY(WalkTrail(path, follow_last));
  return std::move(trail.back());
}

Result<CoreDriver::Place> CoreDriver::FindPlace(const std::string& path) {
  Place place{.parent = TRY(Walk(ParentOf(path), true)),
              .name = path.substr(path.rfind('/') + 1)};
  if (!S_ISDIR(TRY(AttrOf(place.parent)).st_mode)) return Fail(ENOTDIR, "walk");
  return place;
}

/// The kernel looks whether a name is free before it asks for a new file there.
Result<CoreDriver::Place> CoreDriver::FindFreePlace(const std::string& path) {
  Place place = TRY(FindPlace(path));
  const auto there = Child(place.parent.ino(), place.name);
  if (there) return Fail(EEXIST, "name");
  if (there.error().code != ENOENT) return std::unexpected(there.error());
  return place;
}

/// Gives back the lookup that making a node counted.
Result<void> CoreDriver::Made(const Result<Node>& node) {
  if (!node) return std::unexpected(node.error());
  const Ref given_back(this, node->ino);
  return {};
}

// Open files.

Handle CoreDriver::Add(Ref ref, int flags) {
  const Handle handle{next_handle_++};
  handles_.emplace(handle, OpenFile{.ref = std::move(ref), .flags = flags});
  return handle;
}

Status CoreDriver::Erase(Handle handle) {
  if (handles_.erase(handle) == 0) return Fail(EBADF, "close");
  return {};
}

Result<CoreDriver::OpenFile*> CoreDriver::Find(Handle handle,
                                               bool for_writing) {
  const auto found = handles_.find(handle);
  if (found == handles_.end()) return Fail(EBADF, "handle");
  const int access = found->second.flags & O_ACCMODE;
  if (access == (for_writing ? O_RDONLY : O_WRONLY))
    return Fail(EBADF, "handle");
  return &found->second;
}

Result<CoreDriver::Ref> CoreDriver::OpenOrCreate(const std::string& path,
                                                 int flags, mode_t mode) {
  auto existing = Walk(path, !(flags & (O_NOFOLLOW | O_EXCL)));
  if (!(flags & O_CREAT)) return existing;
  if (existing && (flags & O_EXCL)) return Fail(EEXIST, "open");
  if (existing || existing.error().code != ENOENT) return existing;
  const Place place = TRY(FindPlace(path));
  if (const auto link = Child(place.parent.ino(), place.name)) {
    // A dangling symlink: its target is made.
    const std::string dir = ParentOf(path) + "/";
    return OpenOrCreate(dir + TRY(fs().ReadLink(link->ino())), flags, mode);
  }
  const Node node =
      TRY(fs().Create(caller_, place.parent.ino(), place.name, S_IFREG | mode));
  return Ref(this, node.ino);
}

Result<Handle> CoreDriver::Open(const std::string& path, int flags,
                                mode_t mode) {
  if ((flags & O_TMPFILE) == O_TMPFILE) {
    const Ref directory = TRY(Walk(path, true));
    const Node node = TRY(fs().CreateUnnamed(caller_, directory.ino(), mode));
    return Add(Ref(this, node.ino), flags);
  }
  // Who makes a file may read it through the same descriptor.
  const bool is_new = (flags & O_CREAT) != 0 && !Walk(path, true);
  Ref ref = TRY(OpenOrCreate(path, flags, mode));
  const struct stat st = TRY(AttrOf(ref));
  if (S_ISLNK(st.st_mode)) return Fail(ELOOP, "open");
  if (S_ISDIR(st.st_mode) && (Writes(flags) || (flags & O_CREAT)))
    return Fail(EISDIR, "open");
  if (!S_ISDIR(st.st_mode) && (flags & O_DIRECTORY))
    return Fail(ENOTDIR, "open");
  if (S_ISFIFO(st.st_mode)) return Fail(ENXIO, "open");
  const bool reads = (flags & O_ACCMODE) != O_WRONLY;
  if (S_ISREG(st.st_mode) && reads && !is_new) {
    TRY(fs().CheckRead(caller_, ref.ino()));
  }
  if ((flags & O_TRUNC) && S_ISREG(st.st_mode)) {
    TRY(Set(ref, {.size = 0, .kill_privileges = KillsPrivileges()}));
  }
  return Add(std::move(ref), flags);
}

Status CoreDriver::Close(Handle handle) { return Erase(handle); }

Result<std::string> CoreDriver::ReadAt(Handle handle, uint64_t offset,
                                       size_t length) {
  const OpenFile* file = TRY(Find(handle, false));
  std::string content(length, '\0');
  content.resize(TRY(fs().Read(
      file->ref.ino(), offset,
      {reinterpret_cast<std::byte*>(content.data()), content.size()})));
  return content;
}

Result<size_t> CoreDriver::WriteAt(Handle handle, uint64_t offset,
                                   std::string_view bytes) {
  const OpenFile* file = TRY(Find(handle, true));
  const bool append = (file->flags & O_APPEND) != 0;
  if (append) offset = static_cast<uint64_t>(TRY(AttrOf(file->ref)).st_size);
  return fs().Write(caller_, file->ref.ino(), offset, AsBytes(bytes),
                    {.kill_privileges = KillsPrivileges(), .append = append});
}

Result<struct stat> CoreDriver::StatOf(Handle handle) {
  const auto found = handles_.find(handle);
  if (found == handles_.end()) return Fail(EBADF, "fstat");
  return AttrOf(found->second.ref);
}

Status CoreDriver::LinkOf(Handle handle, const std::string& path) {
  const auto found = handles_.find(handle);
  if (found == handles_.end()) return Fail(EBADF, "linkat");
  if (found->second.flags & O_EXCL) return Fail(ENOENT, "linkat");
  const Place place = TRY(FindFreePlace(path));
  return Made(fs().Link(caller_, found->second.ref.ino(), place.parent.ino(),
                        place.name));
}

Result<std::optional<Timestamp>> CoreDriver::BirthOf(const std::string& path) {
  return fs().BirthOf(TRY(WalkTo(path)).ino());
}

Status CoreDriver::TruncateOf(Handle handle, uint64_t size) {
  const OpenFile* file = TRY(Find(handle, true));
  return Set(file->ref, {.size = size, .kill_privileges = KillsPrivileges()});
}

Status CoreDriver::Allocate(Handle handle, int mode, uint64_t offset,
                            uint64_t length) {
  const OpenFile* file = TRY(Find(handle, true));
  if (length == 0) return Fail(EINVAL, "fallocate");
  return fs().Allocate(caller_, file->ref.ino(), offset, length,
                       TRY(ModeOfAllocate(mode)));
}

Result<uint64_t> CoreDriver::Seek(Handle handle, uint64_t offset, int whence) {
  const OpenFile* file = TRY(Find(handle, false));
  return fs().Seek(file->ref.ino(), offset, whence);
}

Status CoreDriver::Sync(Handle) { return fs().Sync(); }

Result<size_t> CoreDriver::CopyRange(Handle from, uint64_t from_offset,
                                     Handle to, uint64_t to_offset,
                                     size_t length) {
  const OpenFile* source = TRY(Find(from, false));
  const OpenFile* sink = TRY(Find(to, true));
  const struct stat st = TRY(AttrOf(source->ref));
  if (S_ISDIR(st.st_mode)) return Fail(EISDIR, "copy");
  // The kernel asks for what is there, and looks at overlaps of that only.
  const auto size = static_cast<uint64_t>(st.st_size);
  if (from_offset >= size) return 0;
  return fs().CopyRange(caller_, source->ref.ino(), from_offset,
                        sink->ref.ino(), to_offset,
                        std::min<uint64_t>(length, size - from_offset));
}

// Operations on paths.

Status CoreDriver::Mkdir(const std::string& path, mode_t mode) {
  const Place place = TRY(FindFreePlace(path));
  return Made(
      fs().MakeDirectory(caller_, place.parent.ino(), place.name, mode));
}

Status CoreDriver::Rmdir(const std::string& path) {
  const Place place = TRY(FindPlace(path));
  return fs().RemoveDirectory(caller_, place.parent.ino(), place.name);
}

Status CoreDriver::Unlink(const std::string& path) {
  const Place place = TRY(FindPlace(path));
  return fs().Unlink(caller_, place.parent.ino(), place.name);
}

/// The kernel refuses to replace a directory by what is below it before it
/// looks at types.
Status CoreDriver::CheckNotAbove(const std::string& from, const Place& source,
                                 const Place& target, unsigned flags) {
  TRY(Child(source.parent.ino(), source.name));
  const auto victim = Child(target.parent.ino(), target.name);
  if (!victim || (flags & RENAME_NOREPLACE) != 0) return {};
  for (const Ref& above : TRY(WalkTrail(ParentOf(from), true))) {
    if (above.ino() != victim->ino()) continue;
    return Fail((flags & RENAME_EXCHANGE) != 0 ? EINVAL : ENOTEMPTY, "rename");
  }
  return {};
}

Status CoreDriver::Rename(const std::string& from, const std::string& to,
                          unsigned flags) {
  const Place source = TRY(FindPlace(from));
  const Place target = TRY(FindPlace(to));
  TRY(CheckNotAbove(from, source, target, flags));
  return fs().Rename(caller_, source.parent.ino(), source.name,
                     target.parent.ino(), target.name, TRY(ModeOfFlags(flags)));
}

Status CoreDriver::Link(const std::string& existing, const std::string& path) {
  const Ref ref = TRY(WalkTo(existing));
  const Place place = TRY(FindFreePlace(path));
  return Made(fs().Link(caller_, ref.ino(), place.parent.ino(), place.name));
}

Status CoreDriver::Symlink(const std::string& target, const std::string& path) {
  const Place place = TRY(FindFreePlace(path));
  return Made(
      fs().MakeSymlink(caller_, place.parent.ino(), place.name, target));
}

Result<std::string> CoreDriver::Readlink(const std::string& path) {
  const Ref ref = TRY(WalkTo(path));
  return fs().ReadLink(ref.ino());
}

Status CoreDriver::Mkfifo(const std::string& path, mode_t mode) {
  const Place place = TRY(FindFreePlace(path));
  return Made(fs().MakeNode(caller_, place.parent.ino(), place.name,
                            S_IFIFO | mode, 0));
}

Status CoreDriver::Set(const Ref& ref, const AttrRequest& request) {
  TRY(fs().SetAttr(caller_, ref.ino(), request));
  return {};
}

Status CoreDriver::Chmod(const std::string& path, mode_t mode) {
  return Set(TRY(Walk(path, true)), {.mode = mode});
}

Status CoreDriver::Chown(const std::string& path, uid_t uid, gid_t gid) {
  AttrRequest request{.kill_privileges = true};
  if (uid != static_cast<uid_t>(-1)) request.uid = uid;
  if (gid != static_cast<gid_t>(-1)) request.gid = gid;
  return Set(TRY(WalkTo(path)), request);
}

Status CoreDriver::Utimens(const std::string& path, const FileTimes& times) {
  AttrRequest request;
  request.atime_now = times.atime.tv_nsec == UTIME_NOW;
  request.mtime_now = times.mtime.tv_nsec == UTIME_NOW;
  const auto wanted = [](const timespec& t) -> std::optional<Timestamp> {
    if (t.tv_nsec == UTIME_NOW || t.tv_nsec == UTIME_OMIT) return std::nullopt;
    return Timestamp::From(t);
  };
  request.atime = wanted(times.atime);
  request.mtime = wanted(times.mtime);
  return Set(TRY(WalkTo(path)), request);
}

Status CoreDriver::Truncate(const std::string& path, uint64_t size) {
  const Ref ref = TRY(Walk(path, true));
  const struct stat st = TRY(AttrOf(ref));
  if (S_ISDIR(st.st_mode)) return Fail(EISDIR, "truncate");
  if (!S_ISREG(st.st_mode)) return Fail(EINVAL, "truncate");
  return Set(ref, {.size = size, .kill_privileges = KillsPrivileges()});
}

Result<struct stat> CoreDriver::Stat(const std::string& path) {
  return AttrOf(TRY(WalkTo(path)));
}

Result<struct statvfs> CoreDriver::StatFs() { return fs().StatFs(); }

/// The kernel refuses the user's attributes on what is no file or directory.
Status CoreDriver::MayHaveXattr(const Ref& ref, const std::string& name) {
  const struct stat st = TRY(AttrOf(ref));
  const bool may =
      S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || !name.starts_with("user.");
  if (!may) return Fail(EPERM, "setxattr");
  return {};
}

Status CoreDriver::SetXattr(const std::string& path, const std::string& name,
                            std::string_view value, int flags) {
  const XattrMode mode = flags == XATTR_CREATE    ? XattrMode::kCreate
                         : flags == XATTR_REPLACE ? XattrMode::kReplace
                                                  : XattrMode::kAny;
  const Ref ref = TRY(WalkTo(path));
  TRY(MayHaveXattr(ref, name));
  return fs().SetXattr(caller_, ref.ino(), name, value, mode);
}

Result<std::string> CoreDriver::GetXattr(const std::string& path,
                                         const std::string& name) {
  const Ref ref = TRY(WalkTo(path));
  return fs().GetXattr(ref.ino(), name);
}

Result<std::vector<std::string>> CoreDriver::ListXattrs(
    const std::string& path) {
  const Ref ref = TRY(WalkTo(path));
  return fs().ListXattrs(ref.ino());
}

Status CoreDriver::RemoveXattr(const std::string& path,
                               const std::string& name) {
  const Ref ref = TRY(WalkTo(path));
  TRY(MayHaveXattr(ref, name));
  return fs().RemoveXattr(caller_, ref.ino(), name);
}

// Directories.

Result<Handle> CoreDriver::OpenDir(const std::string& path) {
  return Open(path, O_RDONLY | O_DIRECTORY, 0);
}

Status CoreDriver::CloseDir(Handle handle) { return Erase(handle); }

Result<std::vector<Entry>> CoreDriver::ReadDir(Handle handle, uint64_t cookie,
                                               size_t count) {
  const OpenFile* file = TRY(Find(handle, false));
  std::vector<Entry> entries;
  TRY(fs().ReadDirectory(file->ref.ino(), cookie, [&](const DirEntry& entry) {
    if (entries.size() >= std::max<size_t>(count, 1)) return false;
    entries.push_back(
        {.name = entry.name,
         .cookie = entry.cookie,
         .ino = entry.st_ino,
         .type = static_cast<unsigned char>(IFTODT(ModeBits(entry.type)))});
    return true;
  }));
  return entries;
}

}  // namespace txfs::testing
