#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fs/linked_names.h"
#include "fs/overlay.h"

namespace txfs {
namespace {

/// Whether `inode` is a file that was touched, and left as it was, by no name
/// any more: others gave what it was in the base another one, under which it is
/// another inode.
bool IsNothing(const Tree& tree, const Inode& inode) {
  return !inode.IsDirectory() && tree.IsShadowed(inode) &&
         inode.IsUnchanged() && !inode.retired;
}

/// What the base has in its place, if that is another state, or another file
/// that nothing else here is.
std::optional<BaseObject> FindSuccessor(Tree& tree, const BaseDirectory& base,
                                        const Inode& inode) {
  const BaseOrigin& origin = *inode.record.base;
  auto object = FindObject(base, origin.path).value_or(std::nullopt);
  if (!object || object->st.st_nlink != 1 ||
      TypeOfMode(object->st.st_mode) != inode.attr().type ||
      tree.OriginOf(origin.path, object->st) == origin ||
      tree.IsTaken(object->st, inode)) {
    return std::nullopt;
  }
  return object;
}

}  // namespace

Status OverlayFilesystem::Frozen::Follow(Inode& inode, InodeRecord before,
                                         std::optional<InodeRecord> after) {
  Change change{.op = Op::kFollow,
                .time = Now(),
                .pid = static_cast<uint32_t>(::getpid()),
                .uid = ::geteuid(),
                .exe = "txfs",
                .path = tree.PathOf(inode)};
  change.edits.push_back(
      InodeEdit{inode.ino, std::move(before), std::move(after)});
  return [&]() NO_THREAD_SAFETY_ANALYSIS -> Status {  // held by WhileFrozen
    TRY(filesystem.AppendAndApply(change, nullptr));
    return {};
  }();
}

StaleCaches OverlayFilesystem::Frozen::FollowNames() {
  LookedFor found = LookForChanged(tree, base);
  for (LookedFor::Noted& was : found.noted) {
    Inode& inode = *tree.Find(was.ino);
    InodeRecord before = inode.record;
    before.base->path = std::move(was.before);
    // If it cannot be journaled, a resume looks for it again.
    std::ignore = Follow(inode, std::move(before), inode.record);
  }
  std::vector<Ino> several;
  tree.ForEachUpper([&](const Inode& inode) {
    if (inode.links.size() > 1) several.push_back(inode.ino);
  });
  StaleCaches stale = Refresh(several);
  std::ranges::move(found.shown, std::back_inserter(stale.names));
  std::ranges::copy(found.stale, std::back_inserter(stale.inodes));
  return stale;
}

StaleCaches OverlayFilesystem::Frozen::FollowBase() {
  // A commit that is half-way has made of the base what it is.
  const bool halted = [&]() NO_THREAD_SAFETY_ANALYSIS {
    return filesystem.halted_;
  }();
  if (halted) return {};
  base.DropCache();
  StaleCaches stale = FollowNames();
  std::vector<Inode*> as_they_were, nothing;
  tree.ForEachUpper([&](Inode& inode) {
    if (tree.IsAsItWas(inode)) as_they_were.push_back(&inode);
    if (IsNothing(tree, inode)) nothing.push_back(&inode);
  });
  // What cannot be journaled stays what it is, and its commit follows.
  for (Inode* inode : nothing) std::ignore = Follow(*inode, inode->record, {});
  for (Inode* inode : as_they_were) {
    const auto object = FindSuccessor(tree, base, *inode);
    if (!object || !Follow(*inode, inode->record, tree.RecordOf(*object))) {
      continue;
    }
    inode->base_blocks = static_cast<uint64_t>(object->st.st_blocks);
    filesystem.files_.Drop(inode->ino);
    stale.inodes.push_back(inode->ino);
  }
  return stale;
}

}  // namespace txfs
