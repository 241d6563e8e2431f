#include <fcntl.h>
#include <sys/stat.h>

#include <utility>

#include "fs/host/xattrs.h"
#include "fs/overlay/overlay.h"
#include "fs/posix/acl.h"
#include "fs/posix/checks.h"
#include "fs/posix/privileges.h"
#include "fs/tree/own_xattrs.h"
#include "fs/veto/lock_check.h"

namespace txfs {
namespace {

Op OpOf(const AttrRequest& request) {
  if (request.size) return Op::kTruncate;
  if (request.mode) return Op::kChmod;
  if (request.uid || request.gid) return Op::kChown;
  return Op::kUtimens;
}

/// Whether `request` only sets all times to now.
bool IsTouch(const AttrRequest& request) {
  return request.atime_now && request.mtime_now && !request.size &&
         !request.mode && !request.uid && !request.gid;
}

constexpr uint32_t kPermissions = S_IRWXU | S_IRWXG | S_IRWXO;

/// As the kernel reports it for an object that cannot have such a list.
Status CheckAclOf(const Inode& inode, std::string_view name) {
  if (inode.attr().type == FileType::kSymlink) {
    return Fail(EOPNOTSUPP, "setxattr");
  }
  if (name == kDefaultAcl && !inode.IsDirectory()) {
    return Fail(EACCES, "setxattr");
  }
  return {};
}

/// Applies `request` to `attr`.
void ApplyRequest(const AttrRequest& request, bool is_in_group, Timestamp now,
                  Attr& attr) {
  if (request.mode) attr.mode = *request.mode & 07777;
  if (request.uid) attr.uid = *request.uid;
  if (request.gid) attr.gid = *request.gid;
  const bool chowned = request.uid || request.gid;
  // chown(2) clears these bits for every caller, except on a directory.
  const bool kill =
      request.kill_privileges || (chowned && attr.type != FileType::kDirectory);
  if (kill && !request.mode) {
    attr.mode = WithoutPrivileges(attr.mode, is_in_group);
  }
  if (request.size) attr.mtime = now;
  if (request.atime) attr.atime = *request.atime;
  if (request.mtime) attr.mtime = *request.mtime;
  if (request.atime_now) attr.atime = now;
  if (request.mtime_now) attr.mtime = now;
  attr.ctime = request.ctime.value_or(now);
}

}  // namespace

Result<struct stat> OverlayFilesystem::GetAttr(Ino ino) {
  const ReaderLock gate(gate_);
  const ReaderLock lock(tree_mutex_);
  return AnswerStat(*TRY(FindInode(ino)));
}

Result<std::optional<Timestamp>> OverlayFilesystem::BirthOf(Ino ino) {
  const ReaderLock gate(gate_);
  uint64_t number = 0;
  std::string place;
  {
    const ReaderLock lock(tree_mutex_);
    const Inode* inode = TRY(FindInode(ino));
    if (!inode->record.base) return *inode->own->born;
    number = inode->record.base->ino;
    place = TRY(PlaceInBase(*inode));
  }
  const auto object = base_.OpenPath(place);
  if (!object) return std::nullopt;
  struct statx stx{};
  constexpr unsigned kAsked = STATX_INO | STATX_BTIME;
  const bool is_known =
      ::statx(object->get(), "", AT_EMPTY_PATH, kAsked, &stx) == 0 &&
      (stx.stx_mask & kAsked) == kAsked && stx.stx_ino == number;
  if (!is_known) return std::nullopt;
  return Timestamp{stx.stx_btime.tv_sec, stx.stx_btime.tv_nsec};
}

Result<struct stat> OverlayFilesystem::SetAttr(const Caller& caller, Ino ino,
                                               const AttrRequest& request) {
  return Logged(Answered(caller,
                         [&](const Caller& asking) {
                           return DoSetAttr(asking, ino, request);
                         }),
                OpOf(request), caller, ino, {});
}

Result<struct stat> OverlayFilesystem::DoSetAttr(const Caller& caller, Ino ino,
                                                 const AttrRequest& request) {
  if (request.size) TRY(CheckRange(0, *request.size));
  Plan plan = StartPlan(OpOf(request), caller);
  const ReaderLock mutation(write_gate_);
  const ReaderLock gate(gate_);
  const WriterLock content(ContentLock(ino));
  if (request.size) TRY(CheckReadable(ino, *request.size == 0));
  std::optional<BaseOrigin> preimage;
  const struct stat st =
      TRY(ApplyAttr(std::move(plan), caller, ino, request, preimage));
  if (request.size) promised_space_.Trim(*journal_);
  if (preimage) origins_.KeepPreimage(ino, *preimage);
  return st;
}

Result<struct stat> OverlayFilesystem::ApplyAttr(
    Plan plan, const Caller& caller, Ino ino, const AttrRequest& request,
    std::optional<BaseOrigin>& preimage) {
  const WriterLock lock(tree_mutex_);
  Inode* inode = TRY(FindInode(ino));
  plan.change().path = tree_.PathOf(*inode);
  const LockCheck locks(base_);
  TRY(IsTouch(request) ? locks.Touch(*inode) : locks.Alter(*inode));
  PolicyCheck check = Judging(plan);
  if (request.size) {
    TRY(check.Alter(policy::Effect::kContent, *inode, request.size));
  }
  if (!request.size || request.mode || request.uid || request.gid) {
    TRY(check.Alter(policy::Effect::kAttributes, *inode));
  }
  std::vector<Extent> released;
  if (request.size) {
    if (inode->IsDirectory()) return Fail(EISDIR, "truncate");
    if (inode->attr().type != FileType::kRegular) {
      return Fail(EINVAL, "truncate");
    }
    preimage = PreimageOf(*inode);
    PlanTruncate(*inode, *request.size, plan, released);
  }
  const bool is_in_group =
      !LosesSetGroupId(options_.rights_of, caller, inode->attr());
  ApplyRequest(request, is_in_group, plan.now(), plan.EditAttr(*inode));
  const std::shared_ptr<Journal> retired = inode->orphan->retired;
  // As in ext4, an equal size drops what is reserved behind the end.
  const bool cuts = request.size && *request.size <= inode->attr().size;
  const Lsn lsn = TRY(AcceptFor(*inode, std::move(plan)));
  if (!retired) ReleaseAll(*journal_, released, lsn);
  if (cuts && inode->own->reserved) {
    inode->own->reserved->Drop({*request.size, UINT64_MAX});
  }
  inode->told_acl = kAclNotAsked;  // the kernel drops it after this request
  return AnswerStat(*inode);
}

void OverlayFilesystem::PlanTruncate(const Inode& inode, uint64_t size,
                                     Plan& plan,
                                     std::vector<Extent>& released) {
  Attr& attr = plan.EditAttr(inode);
  plan.change().offset = size;
  if (size < attr.size) {
    ExtentEdit edit = PlanExtents(inode, size, UINT64_MAX, {});
    released = ReleasedBy(edit, size, UINT64_MAX);
    plan.SetExtents(std::move(edit));
    attr.base_limit = std::min(attr.base_limit, size);
  }
  // The segment is freed when it has no live content.
  if (size == 0) attr.own_segment = 0;
  attr.size = size;
}

Result<std::string> OverlayFilesystem::ReadLink(Ino ino) {
  const ReaderLock gate(gate_);
  const ReaderLock lock(tree_mutex_);
  const Inode* inode = TRY(FindInode(ino));
  if (inode->attr().type != FileType::kSymlink) return Fail(EINVAL, "readlink");
  return inode->record.symlink();
}

// --- extended attributes ---------------------------------------------------

Result<OriginXattrs> OverlayFilesystem::SourceOfXattrs(
    const Inode& inode) const {
  OriginXattrs source{.path = TRY(PlaceInBase(inode)),
                      .state = {},
                      .ino = inode.ino,
                      .upper = inode.upper,
                      .told = {}};
  if (IsGuarded(inode)) source.told = Told::Of(*inode.record.base);
  // Another program may have replaced the base file of the changed inode.
  const bool may_move =
      inode.upper && inode.attr().type == FileType::kRegular && !halted_;
  if (may_move) source.state = Fingerprint::Of(*inode.record.base);
  return source;
}

Result<std::map<std::string, std::string>> OverlayFilesystem::ReadBaseXattrs(
    const std::string& path) {
  const ReaderLock gate(gate_);
  return origins_.BaseXattrs(path);
}

Result<std::map<std::string, std::string>> OverlayFilesystem::VisibleXattrs(
    Ino ino) {
  OriginXattrs source;
  {
    const ReaderLock lock(tree_mutex_);
    const Inode* inode = TRY(FindInode(ino));
    if (!inode->record.base || inode->attr().xattrs_owned) {
      return OwnXattrs(*inode);
    }
    source = TRY(SourceOfXattrs(*inode));
  }
  return origins_.Xattrs(source);
}

Result<std::string> OverlayFilesystem::GetXattr(Ino ino,
                                                std::string_view name) {
  // The kernel asks for security.capability at every first write.
  if (name.starts_with("security.")) return Fail(ENODATA, "getxattr");
  if (!IsTrackedXattr(name)) return Fail(EOPNOTSUPP, "getxattr");
  const bool is_access_acl = name == kAccessAcl;
  const ReaderLock gate(gate_);
  OriginXattrs source;
  uint32_t mode = 0;
  uint32_t mode_in_base = 0;
  {
    const ReaderLock lock(tree_mutex_);
    Inode* inode = TRY(FindInode(ino));
    mode = inode->attr().mode;
    if (!inode->record.base || inode->attr().xattrs_owned) {
      const auto found = inode->own->xattrs->find(name);
      Result<std::string> own = Fail(ENODATA, "getxattr");
      if (found != inode->own->xattrs->end()) own = found->second;
      if (!is_access_acl) return own;
      // A commit makes it that of the base.
      inode->told_acl = ToldAcl(own, mode);
      if (own) own = AclWithMode(std::move(*own), mode);
      return own;
    }
    mode_in_base = inode->record.base->mode;
    source = TRY(SourceOfXattrs(*inode));
    source.asks_acl = IsAclName(name);
  }
  auto value = origins_.GetXattr(source, std::string(name));
  // An object that is gone has no attributes.
  if (!value && IsGone(value.error())) value = Fail(ENODATA, "getxattr");
  if (!is_access_acl) return value;
  {
    const ReaderLock lock(tree_mutex_);
    Inode* inode = tree_.Find(ino);
    if (inode != nullptr) inode->told_acl = ToldAcl(value, mode_in_base);
  }
  if (value) value = AclWithMode(std::move(*value), mode);
  return value;
}

Result<std::optional<std::string>> OverlayFilesystem::DefaultAclOf(
    Ino directory) {
  std::string place;
  {
    const ReaderLock lock(tree_mutex_);
    const Inode* inode = TRY(FindDirectory(directory));
    if (!inode->record.base || inode->attr().xattrs_owned) {
      const auto found =
          inode->own->xattrs->find(std::string_view(kDefaultAcl));
      if (found == inode->own->xattrs->end()) return std::nullopt;
      return found->second;
    }
    place = TRY(PlaceInBase(*inode));
  }
  const auto opened = base_.OpenDirectory(place);
  if (!opened && IsGone(opened.error())) return std::nullopt;
  const SharedFd fd = TRY(opened);
  auto acl = XattrOf(ProcPath(fd->get()), kDefaultAcl);
  if (!acl && acl.error().code == ENODATA) return std::nullopt;
  return TRY(std::move(acl));
}

Result<std::vector<std::string>> OverlayFilesystem::ListXattrs(Ino ino) {
  const ReaderLock gate(gate_);
  OriginXattrs source;
  std::vector<std::string> names;
  {
    const ReaderLock lock(tree_mutex_);
    const Inode* inode = TRY(FindInode(ino));
    if (!inode->record.base || inode->attr().xattrs_owned) {
      for (const auto& [name, value] : OwnXattrs(*inode)) names.push_back(name);
      return names;
    }
    source = TRY(SourceOfXattrs(*inode));
  }
  return origins_.ListXattrs(source);
}

Status OverlayFilesystem::SetXattr(const Caller& caller, Ino ino,
                                   std::string_view name,
                                   std::string_view value, XattrMode mode) {
  Status set = CheckXattr(name, value);
  if (set && IsAclName(name) && !SupportsAcls(base_.root())) {
    set = Fail(EOPNOTSUPP, "setxattr");
  }
  if (set) {
    set = Answered(caller, [&](const Caller& asking) {
      return ChangeXattr(Op::kSetxattr, asking, ino, std::string(name),
                         std::string(value), mode);
    });
  }
  return Logged(std::move(set), Op::kSetxattr, caller, ino, {});
}

Status OverlayFilesystem::RemoveXattr(const Caller& caller, Ino ino,
                                      std::string_view name) {
  Status removed = Fail(EOPNOTSUPP, "removexattr");
  if (IsTrackedXattr(name)) {
    removed = Answered(caller, [&](const Caller& asking) {
      return ChangeXattr(Op::kRemovexattr, asking, ino, std::string(name),
                         std::nullopt, XattrMode::kReplace);
    });
  }
  return Logged(std::move(removed), Op::kRemovexattr, caller, ino, {});
}

Status OverlayFilesystem::ChangeXattr(Op op, const Caller& caller, Ino ino,
                                      const std::string& name,
                                      std::optional<std::string> value,
                                      XattrMode mode) {
  Plan plan = StartPlan(op, caller);
  const ReaderLock mutation(write_gate_);
  const ReaderLock gate(gate_);
  const WriterLock content(ContentLock(ino));
  const auto visible = TRY(VisibleXattrs(ino));
  const bool exists = visible.contains(name);
  if (mode == XattrMode::kCreate && exists) return Fail(EEXIST, OpName(op));
  if (mode == XattrMode::kReplace && !exists) return Fail(ENODATA, OpName(op));
  const WriterLock lock(tree_mutex_);
  Inode* inode = TRY(FindInode(ino));
  plan.change().path = tree_.PathOf(*inode);
  TRY(LockCheck(base_).Alter(*inode));
  TRY(Judging(plan).Alter(policy::Effect::kAttributes, *inode));
  if (IsAclName(name)) {
    TRY(CheckAclOf(*inode, name));
    inode->told_acl = kAclNotAsked;  // the kernel drops it after this request
  }
  Attr& attr = plan.EditAttr(*inode);
  attr.ctime = plan.now();
  if (name == kAccessAcl && value) {
    const AclMode acl = ModeOfAcl(*value).value_or(AclMode{});
    attr.mode = (attr.mode & ~kPermissions) | acl.bits;
    if (LosesSetGroupId(options_.rights_of, caller, attr))
      attr.mode &= ~uint32_t{S_ISGID};
    if (acl.is_minimal) value.reset();
  }
  // Without a list before and after, only the mode changes.
  if (!exists && !value) {
    TRY(AcceptFor(*inode, std::move(plan)));
    return {};
  }
  const bool owned = std::exchange(attr.xattrs_owned, true);
  if (!owned) {
    plan.SetXattr(*inode, std::string(kXattrsBefore),
                  EncodeXattrsBefore(visible));
    for (const auto& [other, bytes] : visible) {
      if (other != name) plan.SetXattr(*inode, other, bytes);
    }
  }
  RunBudget::Share share(budget_);
  TRY(share.Take(value ? value->size() : 0, 0));
  if (owned || value) plan.SetXattr(*inode, name, std::move(value));
  TRY(AcceptFor(*inode, std::move(plan)));
  share.Keep();
  return {};
}

}  // namespace txfs
