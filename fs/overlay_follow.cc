#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fs/overlay.h"

namespace txfs {
namespace {

/// Whether `inode` is a file that was touched, and left as it was, by no name
/// any more: others gave what it was in the base another one, under which it is
/// another inode.
bool IsNothing(const Tree& tree, const Inode& inode) {
  return !inode.IsDirectory() && tree.IsShadowed(inode) &&
         !inode.ContentChanged() && !inode.AttributesChanged() &&
         inode.attr().mtime == inode.record.base->mtime && !inode.retired;
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

StaleCaches OverlayFilesystem::Frozen::FollowBase() {
  StaleCaches stale;
  // A commit that is half-way has made of the base what it is.
  const bool halted = [&]() NO_THREAD_SAFETY_ANALYSIS {
    return filesystem.halted_;
  }();
  if (halted) return stale;
  std::vector<Inode*> as_they_were, nothing;
  tree.ForEachUpper([&](Inode& inode) {
    if (tree.IsAsItWas(inode)) as_they_were.push_back(&inode);
    if (IsNothing(tree, inode)) nothing.push_back(&inode);
  });
  const auto edit = [&](Inode& inode, std::optional<InodeRecord> after) {
    Change change{.op = Op::kFollow,
                  .time = Now(),
                  .pid = static_cast<uint32_t>(::getpid()),
                  .uid = ::geteuid(),
                  .exe = "txfs",
                  .path = tree.PathOf(inode)};
    change.edits.push_back(
        InodeEdit{inode.ino, inode.record, std::move(after)});
    // What cannot be journaled stays what it is, and its commit follows.
    return [&]() NO_THREAD_SAFETY_ANALYSIS {  // held by WhileFrozen
      return filesystem.AppendAndApply(change, nullptr).has_value();
    }();
  };
  for (Inode* inode : nothing) edit(*inode, {});
  if (!as_they_were.empty()) base.DropCache();
  for (Inode* inode : as_they_were) {
    const auto object = FindSuccessor(tree, base, *inode);
    if (!object || !edit(*inode, tree.RecordOf(*object))) continue;
    inode->base_blocks = static_cast<uint64_t>(object->st.st_blocks);
    filesystem.files_.Drop(inode->ino);
    stale.inodes.push_back(inode->ino);
  }
  return stale;
}

}  // namespace txfs
