// The kernel decides who may read a base object by the owner and mode that it
// cached, for ever. The daemon reads with its own rights, so it must compare
// them with the base.

#include <sys/stat.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fs/overlay/base_follower.h"
#include "fs/overlay/overlay.h"

namespace txfs {

bool OverlayFilesystem::IsGuarded(const Inode& inode) const {
  // Only the daemon's user has access to the mount.
  if (!options_.is_for_others) return false;
  if (!inode.record.base) return false;
  // An orphan file reads only the same object.
  if (inode.IsOrphan() && !inode.IsDirectory()) return false;
  return !inode.upper || !halted_;
}

Status OverlayFilesystem::CheckTold(Ino ino, const Told& told,
                                    const struct stat& now) const {
  const BaseIdentity object{.dev = base_.RelativeDevice(now.st_dev),
                            .ino = now.st_ino};
  // The kernel must ask again; looking at the base again does not help.
  if (doubts_.IsAwaited(ino))
    return Fail(ESTALE, "the kernel must look up this inode again");
  const bool is_told = !doubts_.Has(ino) && told.Covers(now) &&
                       (object == told.object || AreAncestorsAsTold(ino));
  if (is_told) return {};
  doubts_.Add(ino);
  return Fail(ESTALE, "the object, its owner or its mode changed in the base");
}

Status OverlayFilesystem::CheckTold(Ino ino, const Told& told, int fd) const {
  struct stat now{};
  if (::fstat(fd, &now) != 0) return Fail(errno, "stat");
  return CheckTold(ino, told, now);
}

Status OverlayFilesystem::CheckDirectory(Ino ino, const Told& told,
                                         const std::string& place) const {
  // The cached descriptor may be of a directory that was moved.
  const auto now = base_.Stat(place);
  if (now && S_ISDIR(now->st_mode)) TRY(CheckTold(ino, told, *now));
  const auto directory = base_.OpenDirectory(place);
  // The caller finds the same error.
  if (!directory) return {};
  return CheckTold(ino, told, (*directory)->get());
}

bool OverlayFilesystem::AreAncestorsAsTold(Ino ino) const {
  std::vector<std::pair<Ino, BaseOrigin>> above;
  {
    const ReaderLock lock(tree_mutex_);
    const Inode* inode = tree_.Find(ino);
    while (inode != nullptr && !inode->links.empty()) {
      inode = tree_.Find(inode->links.front().parent);
      if (inode == nullptr || !inode->record.base) continue;
      above.emplace_back(inode->ino, *inode->record.base);
    }
  }
  bool as_told = true;
  for (const auto& [directory, origin] : above) {
    const auto now = base_.Stat(origin.path);
    if (now && Told::Of(origin).Covers(*now)) continue;
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
