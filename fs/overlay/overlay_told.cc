// The kernel decides who may read a base object by the owner, mode and access
// control list that it cached, for ever. The daemon reads with its own rights,
// so it must compare them with the base.

#include <sys/stat.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fs/host/xattrs.h"
#include "fs/overlay/base_follower.h"
#include "fs/overlay/overlay.h"
#include "fs/posix/acl.h"

namespace txfs {
namespace {

/// A list of the transaction's own says nothing about that of the base.
uint64_t ToldAclOfBase(const Inode& inode) {
  return inode.attr().xattrs_owned ? kAclNotAsked : inode.told_acl.load();
}

}  // namespace

bool OverlayFilesystem::IsGuarded(const Inode& inode) const {
  // Only the daemon's user has access to the mount.
  if (!options_.is_for_others) return false;
  if (!inode.record.base) return false;
  // An orphan file reads only the same object.
  if (inode.IsOrphan() && !inode.IsDirectory()) return false;
  return !inode.upper || !halted_;
}

Status OverlayFilesystem::CheckTold(Ino ino, const Told& told,
                                    const struct stat& now, int fd) const {
  const BaseIdentity object{.dev = base_.RelativeDevice(now.st_dev),
                            .ino = now.st_ino};
  // The kernel must ask again; looking at the base again does not help.
  if (doubts_.IsAwaited(ino))
    return Fail(ESTALE, "the kernel must look up this inode again");
  // A new access control list changes the ctime.
  const bool is_unchanged =
      object == told.object && Timestamp::From(now.st_ctim) == told.ctime;
  const bool compares_acl = fd != OriginReader::kNoAcl && !is_unchanged;
  const bool is_told =
      !doubts_.Has(ino) && told.Covers(now) &&
      (object == told.object || AreAncestorsAsTold(ino)) &&
      (!compares_acl || IsAclAsTold(AclToldOf(ino), told.mode,
                                    XattrOf(ProcPath(fd), kAccessAcl)));
  if (is_told) return {};
  doubts_.Add(ino);
  return Fail(ESTALE, "the object, its owner or its mode changed in the base");
}

Status OverlayFilesystem::CheckTold(Ino ino, const Told& told, int fd) const {
  struct stat now{};
  if (::fstat(fd, &now) != 0) return Fail(errno, "stat");
  return CheckTold(ino, told, now, fd);
}

uint64_t OverlayFilesystem::AclToldOf(Ino ino) const {
  const ReaderLock lock(tree_mutex_);
  const Inode* inode = tree_.Find(ino);
  return inode == nullptr ? kAclNotAsked : ToldAclOfBase(*inode);
}

Status OverlayFilesystem::CheckDirectory(Ino ino, const Told& told,
                                         const std::string& place) const {
  // The cached descriptor may be of a directory that was moved.
  const auto now = base_.Stat(place);
  if (now && S_ISDIR(now->st_mode)) {
    TRY(CheckTold(ino, told, *now, OriginReader::kNoAcl));
  }
  const auto directory = base_.OpenDirectory(place);
  // The caller finds the same error.
  if (!directory) return {};
  return CheckTold(ino, told, (*directory)->get());
}

bool OverlayFilesystem::AreAncestorsAsTold(Ino ino) const {
  struct Above {
    Ino ino;
    BaseOrigin origin;
    uint64_t told_acl;
  };
  std::vector<Above> above;
  {
    const ReaderLock lock(tree_mutex_);
    const Inode* inode = tree_.Find(ino);
    while (inode != nullptr && !inode->links.empty()) {
      inode = tree_.Find(inode->links.front().parent);
      if (inode == nullptr || !inode->record.base) continue;
      above.push_back({inode->ino, *inode->record.base, ToldAclOfBase(*inode)});
    }
  }
  bool as_told = true;
  for (const auto& [directory, origin, told_acl] : above) {
    const auto now = base_.Stat(origin.path);
    const bool is_told = now && Told::Of(origin).Covers(*now) &&
                         (Timestamp::From(now->st_ctim) == origin.ctime ||
                          IsAclAsTold(told_acl, origin.mode,
                                      base_.GetXattr(origin.path, kAccessAcl)));
    if (is_told) continue;
    doubts_.Add(directory);
    as_told = false;
  }
  return as_told;
}

void OverlayFilesystem::SettleDoubts(
    const std::function<void(const StaleCaches&)>& tell) {
  const std::vector<Ino> doubted = doubts_.All();
  if (doubted.empty()) return;
  StaleCaches stale = WhileFrozen([&](Frozen& frozen) {
    frozen.ForgetDirectories();
    return BaseFollower(frozen).LookAgain(doubted);
  });
  stale.Append(InFlight(stale));
  if (!stale.empty()) tell(stale);
  std::set<Ino> dropped(stale.inodes.begin(), stale.inodes.end());
  dropped.insert(stale.attributes.begin(), stale.attributes.end());
  doubts_.Settle(doubted, dropped);
}

}  // namespace txfs
