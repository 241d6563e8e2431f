#include "fs/overlay/path_events.h"

#include <sys/stat.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace txfs {
namespace {

class EventFinder {
 public:
  explicit EventFinder(const Frozen& frozen)
      : tree_(frozen.tree), base_(frozen.base) {}

  void AddNames(const StaleCaches& stale) {
    for (const StaleCaches::Watched& name : stale.watched) {
      const Inode* parent = tree_.Find(name.parent);
      if (parent == nullptr) continue;
      const auto directory = tree_.VisiblePath(*parent, {}, &paths_);
      if (!directory) continue;
      const auto [known, is_new] =
          changes_.try_emplace({*directory, name.name}, Change{});
      Change& change = known->second;
      if (is_new) {
        change.parent = name.parent;
        change.now = Look(*parent, name.name);
        if (name.name.empty()) change.was = change.now;
      }
      // One that was replaced is reported as gone and as new.
      if (name.was_there) change.was = Kind{name.was_directory};
    }
  }

  void AddContent(const std::vector<Ino>& inos) {
    for (const Ino ino : inos) {
      const Inode* inode = tree_.Find(ino);
      if (inode == nullptr || inode->IsDirectory()) continue;
      for (const Inode::Link& link : inode->links) {
        const Inode* parent = tree_.Find(link.parent);
        if (parent == nullptr) continue;
        const auto directory = tree_.VisiblePath(*parent, {}, &paths_);
        if (!directory) continue;
        changes_.try_emplace({*directory, link.name},
                             Change{link.parent, Kind{}, Kind{}});
      }
    }
  }

  [[nodiscard]] std::vector<PathEvent> Take() const {
    std::vector<PathEvent> events;
    for (const auto& entry : changes_) {
      const Change& change = entry.second;
      const auto add = [&](PathEvent::Kind kind, const Kind& what) {
        events.push_back({.kind = kind,
                          .parent = change.parent,
                          .directory = entry.first.first,
                          .name = entry.first.second,
                          .is_directory = what.is_directory});
      };
      const bool stays = change.was && change.now &&
                         change.was->is_directory == change.now->is_directory;
      if (stays) {
        add(PathEvent::Kind::kChanged, *change.now);
        continue;
      }
      if (change.was) add(PathEvent::Kind::kWent, *change.was);
      if (change.now) add(PathEvent::Kind::kCame, *change.now);
    }
    return events;
  }

 private:
  struct Kind {
    bool is_directory = false;
  };
  struct Change {
    Ino parent = kNoIno;
    std::optional<Kind> was, now;
  };

  [[nodiscard]] std::optional<Kind> Look(const Inode& parent,
                                         const std::string& name) const {
    if (name.empty()) return Kind{true};
    const Inode* inode = tree_.FindChild(parent, name);
    if (inode != nullptr) return Kind{inode->IsDirectory()};
    if (Tree::IsDecided(parent, name)) return {};
    const auto st = base_.Stat(JoinPath(parent.record.base->path, name));
    if (!st) return {};
    return Kind{S_ISDIR(st->st_mode)};
  }

  const Tree& tree_;
  const BaseDirectory& base_;
  PathMemo paths_;
  /// By directory and name: what came in a directory follows the directory.
  std::map<std::pair<std::string, std::string>, Change> changes_;
};

std::vector<PathEvent> EventsOfDirectories(const Tree& tree,
                                           const StaleCaches& stale) {
  std::set<Ino> directories;
  for (const StaleCaches::Watched& name : stale.watched) {
    directories.insert(name.parent);
  }
  for (const auto* list : {&stale.inodes, &stale.attributes}) {
    for (const Ino ino : *list) {
      const Inode* inode = tree.Find(ino);
      if (inode == nullptr || inode->IsDirectory()) continue;
      for (const Inode::Link& link : inode->links) {
        directories.insert(link.parent);
      }
    }
  }
  if (directories.size() > kMostPathEvents) directories = {kRootIno};
  PathMemo paths;
  std::vector<PathEvent> events;
  for (const Ino ino : directories) {
    const Inode* inode = tree.Find(ino);
    if (inode == nullptr) continue;
    auto path = tree.VisiblePath(*inode, {}, &paths);
    if (!path) continue;
    events.push_back({.parent = ino,
                      .directory = std::move(*path),
                      .name = {},
                      .is_directory = true});
  }
  return events;
}

}  // namespace

std::vector<PathEvent> EventsOf(const Frozen& frozen,
                                const StaleCaches& stale) {
  const size_t most =
      stale.watched.size() + stale.inodes.size() + stale.attributes.size();
  if (most > kMostPathEvents) return EventsOfDirectories(frozen.tree, stale);
  EventFinder finder(frozen);
  finder.AddNames(stale);
  finder.AddContent(stale.inodes);
  finder.AddContent(stale.attributes);
  return finder.Take();
}

}  // namespace txfs
