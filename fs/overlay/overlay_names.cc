#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "fs/overlay/crossings.h"
#include "fs/overlay/new_object.h"
#include "fs/overlay/overlay.h"
#include "fs/posix/checks.h"
#include "fs/veto/lock_check.h"

namespace txfs {
namespace {

Result<bool> IsEmpty(const BaseDirectory& base, const Inode& directory) {
  if (directory.names->cached.size() != 0) return false;
  for (const auto& [name, slot] : directory.names->slots) {
    if (slot.upper.kind != DentryKind::kWhiteout) return false;
  }
  if (!directory.record.base) return true;
  const auto entries = TRY(ListIfThere(base, directory.record.base->path));
  for (const BaseEntry& entry : entries) {
    if (!directory.Knows(entry.name)) return false;
  }
  return true;
}

/// Counts a base name in the link count when it becomes upper: other programs
/// may have added it after the count was taken.
void CountMoved(Plan& plan, const Tree& tree, const Inode& directory,
                std::string_view name, const Inode& inode) {
  Attr& attr = plan.EditAttr(inode);
  attr.ctime = plan.now();
  if (inode.IsDirectory()) return;
  const uint32_t moved = directory.UpperSlot(name) == nullptr ? 1 : 0;
  attr.nlink = std::max(attr.nlink, tree.UpperNames(inode) + moved);
}

/// Whether a commit of this user can copy the object to another filesystem.
bool MayCopy(const Inode& inode) {
  const auto& base = inode.record.base;
  return !base || ::geteuid() == 0 ||
         (base->uid == ::geteuid() && (base->mode & S_IRUSR) != 0);
}

/// The entry that replaces a deleted name.
DentryValue Gone(const Inode& directory, std::string_view name,
                 const std::optional<BaseObject>& probe) {
  const bool in_base = directory.CachedChild(name) != nullptr || probe;
  return {.kind = in_base ? DentryKind::kWhiteout : DentryKind::kAbsent};
}

/// How much `child` adds to the link count of `directory`. A child that the
/// base deleted and only the tree still has adds 0.
int Subdirectories(const Inode& directory, std::string_view name,
                   const Inode& child, const std::optional<BaseObject>& probe) {
  // A base name counts as the object that the base has there now.
  const bool is_directory = directory.UpperSlot(name) != nullptr
                                ? child.IsDirectory()
                                : probe && S_ISDIR(probe->st.st_mode);
  return is_directory ? 1 : 0;
}

}  // namespace

void OverlayFilesystem::DropName(Plan& plan, const Inode& directory,
                                 std::string_view name,
                                 const Inode& inode) const {
  const auto others =
      std::ranges::count_if(inode.links, [&](const Inode::Link& link) {
        return link.parent != directory.ino || link.name != name;
      });
  // The link count omits names that other programs added to the base.
  const bool counted =
      inode.IsDirectory() || inode.attr().nlink > static_cast<uint64_t>(others);
  if (counted) plan.DropLink(inode);
  if (inode.IsDirectory() || !inode.record.base) return;
  std::string other;
  for (const Inode::Link& link : inode.links) {
    const Inode* parent = tree_.Find(link.parent);
    if (parent == &directory && link.name == name) continue;
    // Another upper name exists: the recorded path may stay.
    if (parent == nullptr || parent->UpperSlot(link.name) != nullptr) return;
    if (!parent->record.base) continue;
    other = JoinPath(parent->record.base->path, link.name);
    if (other == inode.record.base->path) return;
  }
  if (!other.empty()) plan.SetOrigin(inode, std::move(other));
}

// --- new names -------------------------------------------------------------

Result<Node> OverlayFilesystem::MakeEntry(Op op, const Caller& caller,
                                          Ino parent, std::string_view name,
                                          InodeRecord record) {
  TRY(CheckName(name));
  Plan plan = StartPlan(op, caller);
  const ReaderLock mutation(write_gate_);
  const ReaderLock gate(gate_);
  const std::optional<BaseObject> probe = TRY(ProbeBase(parent, name));
  const auto list = TRY(DefaultAclOf(parent));
  const auto lists = InheritAcl(list, caller, record.attr);
  auto made = ApplyMake(std::move(plan), caller, parent, name,
                        std::move(record), lists, probe);
  if (made) KeepPreimage(probe);
  return made;
}

Result<Node> OverlayFilesystem::ApplyMake(
    Plan plan, const Caller& caller, Ino parent, std::string_view name,
    InodeRecord record, const std::map<std::string, std::string>& xattrs,
    const std::optional<BaseObject>& probe) {
  const WriterLock lock(tree_mutex_);
  Inode* directory = TRY(FindDirectory(parent));
  if (directory->IsOrphan()) return Fail(ENOENT, "directory");
  if (Child(*directory, name, probe) != nullptr) return Fail(EEXIST, "create");
  plan.change().path = tree_.PathOf(*directory, name);
  TRY(LockCheck(base_).Make(*directory));
  TRY(Judging(plan).Make(*directory, name, record));

  SetOwner(record, *directory, caller);
  Attr& attr = record.attr;
  attr.atime = attr.mtime = attr.ctime = plan.now();
  const bool is_directory = attr.type == FileType::kDirectory;
  RunBudget::Share share(budget_);
  TRY(share.Take(record.symlink.size(), 1));
  const Ino ino = tree_.AllocateIno();
  plan.AddInode(ino, std::move(record));
  for (const auto& [key, value] : xattrs) plan.AddXattr(ino, key, value);
  plan.SetDentry(*directory, name, {DentryKind::kInode, ino});
  plan.TouchDirectory(*directory);
  if (is_directory) plan.CountSubdirectory(*directory, 1);
  TRY(Accept(std::move(plan)));
  share.Keep();
  Inode& made = *tree_.Find(ino);
  made.own.Make().born.Make() = made.attr().ctime;
  return Hold(made);
}

Result<Node> OverlayFilesystem::MakeAnswered(Op op, const Caller& caller,
                                             Ino parent, std::string_view name,
                                             const InodeRecord& record) {
  return Logged(Answered(caller,
                         [&](const Caller& asking) {
                           return MakeEntry(op, asking, parent, name, record);
                         }),
                op, caller, parent, name);
}

Result<Node> OverlayFilesystem::Create(const Caller& caller, Ino parent,
                                       std::string_view name, uint32_t mode) {
  return MakeAnswered(Op::kCreate, caller, parent, name,
                      NewRecord(FileType::kRegular, mode));
}

Result<Node> OverlayFilesystem::MakeNode(const Caller& caller, Ino parent,
                                         std::string_view name, uint32_t mode,
                                         uint64_t rdev) {
  const FileType type = TypeOfMode(mode).value_or(FileType::kRegular);
  InodeRecord record = NewRecord(type, mode);
  record.attr.rdev = rdev;
  const Op op = type == FileType::kRegular ? Op::kCreate : Op::kMknod;
  return MakeAnswered(op, caller, parent, name, record);
}

Result<Node> OverlayFilesystem::MakeDirectory(const Caller& caller, Ino parent,
                                              std::string_view name,
                                              uint32_t mode) {
  return MakeAnswered(Op::kMkdir, caller, parent, name,
                      NewRecord(FileType::kDirectory, mode));
}

Result<Node> OverlayFilesystem::MakeSymlink(const Caller& caller, Ino parent,
                                            std::string_view name,
                                            std::string_view target) {
  InodeRecord record = NewRecord(FileType::kSymlink, 0777);
  record.symlink = target;
  record.attr.size = target.size();
  return MakeAnswered(Op::kSymlink, caller, parent, name, record);
}

Result<Node> OverlayFilesystem::Link(const Caller& caller, Ino ino, Ino parent,
                                     std::string_view name) {
  auto linked = Answered(caller, [&](const Caller& asking) {
    return DoLink(asking, ino, parent, name);
  });
  if (!linked && IsUnnamed(ino)) {
    return Logged(std::move(linked), Op::kCreate, caller, parent, name);
  }
  return Logged(std::move(linked), Op::kLink, caller, ino, {}, parent, name);
}

Result<Node> OverlayFilesystem::DoLink(const Caller& caller, Ino ino,
                                       Ino parent, std::string_view name) {
  TRY(CheckName(name));
  Plan plan = StartPlan(Op::kLink, caller);
  const ReaderLock mutation(write_gate_);
  const ReaderLock gate(gate_);
  const std::optional<BaseObject> probe = TRY(ProbeBase(parent, name));
  // The content of a file that gets its first name becomes that of the
  // transaction.
  const WriterLock content(ContentLock(ino));
  TRY(AdoptRetired(ino));
  // The journal records its content in one change, which recovery does not
  // check: after a power loss the name would lead to what was never written.
  if (IsUnnamed(ino)) TRY(journal_->Sync());
  auto linked = ApplyLink(std::move(plan), ino, parent, name, probe);
  if (linked) KeepPreimage(probe);
  return linked;
}

Result<Node> OverlayFilesystem::ApplyLink(
    Plan plan, Ino ino, Ino parent, std::string_view name,
    const std::optional<BaseObject>& probe) {
  const WriterLock lock(tree_mutex_);
  Inode* directory = TRY(FindDirectory(parent));
  Inode* inode = TRY(FindInode(ino));
  if (inode->IsDirectory()) return Fail(EPERM, "link");
  const bool is_lost = inode->IsOrphan() && !inode->orphan->unnamed;
  if (directory->IsOrphan() || is_lost) return Fail(ENOENT, "link");
  if (Child(*directory, name, probe) != nullptr) return Fail(EEXIST, "link");
  const auto mounts = TRY(mounts_.Get());
  if (!Crossings(tree_, *mounts).MayLink(*inode, *directory)) {
    return Fail(EXDEV, "link");
  }
  if (inode->orphan->unnamed) {
    return NameUnnamed(std::move(plan), *directory, *inode, name);
  }
  plan.change().path = tree_.PathOf(*inode);
  plan.change().new_path = tree_.PathOf(*directory, name);
  const LockCheck locks(base_);
  TRY(locks.Make(*directory));
  TRY(locks.Alter(*inode));
  PolicyCheck check = Judging(plan);
  TRY(check.Alter(policy::Effect::kAttributes, *inode));
  TRY(check.Make(*directory, name, inode->record));

  Attr& attr = plan.EditAttr(*inode);
  ++attr.nlink;
  attr.ctime = plan.now();
  plan.SetDentry(*directory, name, {DentryKind::kInode, ino});
  plan.TouchDirectory(*directory);
  TRY(Accept(std::move(plan)));
  return Hold(*inode);
}

// --- names that go ---------------------------------------------------------

Status OverlayFilesystem::Unlink(const Caller& caller, Ino parent,
                                 std::string_view name) {
  return RemoveAnswered(Op::kUnlink, caller, parent, name);
}

Status OverlayFilesystem::RemoveDirectory(const Caller& caller, Ino parent,
                                          std::string_view name) {
  return RemoveAnswered(Op::kRmdir, caller, parent, name);
}

Status OverlayFilesystem::RemoveAnswered(Op op, const Caller& caller,
                                         Ino parent, std::string_view name) {
  return Logged(Answered(caller,
                         [&](const Caller& asking) {
                           return RemoveEntry(op, asking, parent, name);
                         }),
                op, caller, parent, name);
}

Status OverlayFilesystem::RemoveEntry(Op op, const Caller& caller, Ino parent,
                                      std::string_view name) {
  TRY(CheckName(name));
  Plan plan = StartPlan(op, caller);
  Ino ino = kNoIno;
  {
    const ReaderLock mutation(write_gate_);
    const ReaderLock gate(gate_);
    const std::optional<BaseObject> probe = TRY(ProbeBase(parent, name));
    TRY(CountBaseAhead());
    const WriterLock lock(tree_mutex_);
    Inode* directory = TRY(FindDirectory(parent));
    Inode* inode = Child(*directory, name, probe);
    if (inode == nullptr) return Fail(ENOENT, "remove");
    plan.change().path = tree_.PathOf(*directory, name);
    TRY(LockCheck(base_).Remove(*directory, *inode));
    const auto mounts = TRY(mounts_.Get());
    const bool is_busy =
        Crossings(tree_, *mounts).IsMountpoint(*directory, name, *inode);
    if (op == Op::kRmdir) {
      if (!inode->IsDirectory()) return Fail(ENOTDIR, "rmdir");
      if (is_busy) return Fail(EBUSY, "rmdir");
      if (!TRY(IsEmpty(base_, *inode))) return Fail(ENOTEMPTY, "rmdir");
    } else if (inode->IsDirectory()) {
      return Fail(EISDIR, "unlink");
    } else if (is_busy) {
      return Fail(EBUSY, "unlink");
    }
    TRY(Judging(plan).Remove(*directory, name, *inode));
    plan.CountSubdirectory(*directory,
                           -Subdirectories(*directory, name, *inode, probe));
    DropName(plan, *directory, name, *inode);
    plan.SetDentry(*directory, name, Gone(*directory, name, probe));
    plan.TouchDirectory(*directory);
    // Holds the inode, so that Forget below releases the content of a last
    // name, as when the kernel forgets the inode.
    ++inode->lookups;
    ino = inode->ino;
    auto accepted = Accept(std::move(plan));
    if (!accepted) {
      --inode->lookups;
      return std::unexpected(std::move(accepted).error());
    }
  }
  Forget(ino, 1);
  return {};
}

// --- rename ----------------------------------------------------------------

Status OverlayFilesystem::Rename(const Caller& caller, Ino parent,
                                 std::string_view name, Ino new_parent,
                                 std::string_view new_name, RenameMode mode) {
  const Op op = mode == RenameMode::kExchange ? Op::kExchange : Op::kRename;
  return Logged(Answered(caller,
                         [&](const Caller& asking) {
                           return DoRename(asking, parent, name, new_parent,
                                           new_name, mode);
                         }),
                op, caller, parent, name, new_parent, new_name);
}

struct OverlayFilesystem::RenameProbes {
  std::optional<BaseObject> from, to;
};

Status OverlayFilesystem::DoRename(const Caller& caller, Ino parent,
                                   std::string_view name, Ino new_parent,
                                   std::string_view new_name, RenameMode mode) {
  TRY(CheckName(name));
  TRY(CheckName(new_name));
  const Op op = mode == RenameMode::kExchange ? Op::kExchange : Op::kRename;
  Plan plan = StartPlan(op, caller);
  Ino replaced = kNoIno;
  {
    const ReaderLock mutation(write_gate_);
    const ReaderLock gate(gate_);
    const RenameProbes probes{.from = TRY(ProbeBase(parent, name)),
                              .to = TRY(ProbeBase(new_parent, new_name))};
    TRY(CountBaseAhead());
    replaced = TRY(ApplyRename(std::move(plan), {parent, name},
                               {new_parent, new_name}, mode, probes));
    KeepPreimage(probes.to);
  }
  if (replaced != kNoIno) Forget(replaced, 1);
  return {};
}

Status OverlayFilesystem::CheckRename(const RenameEnd& from,
                                      const RenameEnd& to, RenameMode mode) {
  const bool exchange = mode == RenameMode::kExchange;
  if (exchange && to.inode == nullptr) return Fail(ENOENT, "rename");
  if (mode == RenameMode::kNoReplace && to.inode != nullptr) {
    return Fail(EEXIST, "rename");
  }
  const bool is_cycle = (from.inode->IsDirectory() &&
                         tree_.IsBelow(*to.directory, from.inode->ino)) ||
                        (exchange && to.inode->IsDirectory() &&
                         tree_.IsBelow(*from.directory, to.inode->ino));
  if (is_cycle) return Fail(EINVAL, "rename");
  if (from.inode == to.inode) return {};
  const auto mounts = TRY(mounts_.Get());
  const Crossings crossings(tree_, *mounts);
  if (crossings.AreBindMounts(*from.directory, *to.directory)) {
    return Fail(EXDEV, "rename");
  }
  if (crossings.IsMountpoint(*from.directory, from.name, *from.inode) ||
      (to.inode != nullptr &&
       crossings.IsMountpoint(*to.directory, to.name, *to.inode))) {
    return Fail(EBUSY, "rename");
  }
  if (tree_.DeviceOf(*from.directory) != tree_.DeviceOf(*to.directory)) {
    // mv(1) then copies the file, with the rights of its user.
    const bool may_copy =
        MayCopy(*from.inode) && (!exchange || MayCopy(*to.inode));
    if (!may_copy) return Fail(EXDEV, "rename");
    TRY(CheckCrossing(from.inode->attr()));
    if (exchange) TRY(CheckCrossing(to.inode->attr()));
  }
  if (to.inode == nullptr || exchange) return {};
  const bool empty = !to.inode->IsDirectory() || !from.inode->IsDirectory() ||
                     TRY(IsEmpty(base_, *to.inode));
  return CheckReplace(from.inode->attr().type, {to.inode->attr().type, empty});
}

Status OverlayFilesystem::JudgeRename(Plan& plan, const RenameEnd& from,
                                      const RenameEnd& to, bool exchange) {
  const LockCheck locks(base_);
  TRY(locks.Remove(*from.directory, *from.inode));
  TRY(to.inode == nullptr ? locks.Make(*to.directory)
                          : locks.Remove(*to.directory, *to.inode));
  PolicyCheck check = Judging(plan);
  TRY(check.Move(*from.directory, from.name, *to.directory, to.name,
                 *from.inode));
  if (to.inode == nullptr) return {};
  if (!exchange) return check.Remove(*to.directory, to.name, *to.inode);
  return check.Move(*to.directory, to.name, *from.directory, from.name,
                    *to.inode);
}

Result<Ino> OverlayFilesystem::ApplyRename(Plan plan, NameIn old_name,
                                           NameIn new_name, RenameMode mode,
                                           const RenameProbes& probes) {
  const bool exchange = mode == RenameMode::kExchange;
  const WriterLock lock(tree_mutex_);
  RenameEnd from{TRY(FindDirectory(old_name.parent)), old_name.name};
  RenameEnd to{TRY(FindDirectory(new_name.parent)), new_name.name};
  from.inode = Child(*from.directory, from.name, probes.from);
  if (from.inode == nullptr) return Fail(ENOENT, "rename");
  to.inode = Child(*to.directory, to.name, probes.to);
  if (to.directory->IsOrphan()) return Fail(ENOENT, "rename");
  plan.change().path = tree_.PathOf(*from.directory, from.name);
  plan.change().new_path = tree_.PathOf(*to.directory, to.name);
  TRY(CheckRename(from, to, mode));
  if (from.inode == to.inode) return kNoIno;
  TRY(JudgeRename(plan, from, to, exchange));

  plan.CountSubdirectory(
      *from.directory,
      -Subdirectories(*from.directory, from.name, *from.inode, probes.from));
  plan.CountSubdirectory(*to.directory, from.inode->IsDirectory() ? 1 : 0);
  if (to.inode != nullptr) {
    plan.CountSubdirectory(
        *to.directory,
        -Subdirectories(*to.directory, to.name, *to.inode, probes.to));
  }
  CountMoved(plan, tree_, *from.directory, from.name, *from.inode);
  plan.TouchDirectory(*from.directory);
  plan.TouchDirectory(*to.directory);
  if (exchange && to.inode != nullptr) {  // CheckRename has seen to that
    plan.CountSubdirectory(*from.directory, to.inode->IsDirectory() ? 1 : 0);
    CountMoved(plan, tree_, *to.directory, to.name, *to.inode);
    plan.SetDentry(*from.directory, from.name,
                   {DentryKind::kInode, to.inode->ino});
  } else {
    plan.SetDentry(*from.directory, from.name,
                   Gone(*from.directory, from.name, probes.from));
    if (to.inode != nullptr) {
      DropName(plan, *to.directory, to.name, *to.inode);
    }
  }
  plan.SetDentry(*to.directory, to.name, {DentryKind::kInode, from.inode->ino});
  if (to.inode == nullptr || exchange) {
    TRY(Accept(std::move(plan)));
    return kNoIno;
  }
  // Holds the inode, so that Forget releases the content of a last name, as
  // when the kernel forgets the inode.
  ++to.inode->lookups;
  const Ino replaced = to.inode->ino;
  if (auto accepted = Accept(std::move(plan)); !accepted) {
    --to.inode->lookups;
    return std::unexpected(std::move(accepted).error());
  }
  return replaced;
}

}  // namespace txfs
