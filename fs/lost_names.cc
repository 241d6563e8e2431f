#include "fs/lost_names.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fs/base_mounts.h"
#include "fs/link_search.h"
#include "journal/base/pieces.h"

namespace txfs {
namespace {

class OtherNames {
 public:
  OtherNames(Tree& tree, const BaseDirectory& base)
      : tree_(tree), base_(base) {}

  void Note() {
    std::vector<Inode*> nameless;
    tree_.ForEachUpper([&](Inode& inode) {
      if (inode.IsDirectory() || inode.IsOrphan() || !inode.record.base ||
          inode.record.base->nlink < 2) {
        return;
      }
      const auto st = base_.Stat(inode.record.base->path);
      if (!st && !IsGone(st.error())) return;
      if (st) {
        inode.lost = false;  // or another file, which hides what is lost
      } else if (auto known = KnownName(inode)) {
        inode.record.base->path = std::move(*known);
      } else if (!inode.lost) {
        nameless.push_back(&inode);
      }
    });
    if (!nameless.empty()) Search(nameless);
  }

 private:
  /// A name in the base under which the overlay shows it.
  std::optional<std::string> KnownName(const Inode& inode) const {
    for (const Inode::Link& link : inode.links) {
      const Inode* parent = tree_.Find(link.parent);
      const bool is_base = parent != nullptr && parent->record.base &&
                           parent->UpperSlot(link.name) == nullptr;
      if (!is_base) continue;
      std::string path = JoinPath(parent->record.base->path, link.name);
      const auto st = base_.Stat(path);
      if (st && tree_.IsOrigin(inode, *st)) return path;
    }
    return {};
  }

  void Search(const std::vector<Inode*>& nameless) {
    const auto mounts = BaseMounts::Read(base_);
    if (!mounts) return;
    std::map<std::string, std::set<uint64_t>> wanted;  // by mount
    for (Inode* inode : nameless) {
      const BaseOrigin& origin = *inode->record.base;
      wanted[mounts->Of(origin.path)].insert(origin.ino);
      inode->lost = true;
    }
    const std::set<std::string> hidden = HiddenNames();
    for (const auto& [mount, inos] : wanted) {
      // Content can be read by a hidden name, too.
      for (const auto& except : {hidden, std::set<std::string>()}) {
        const auto found = FindOtherNames(base_, *mounts, mount, inos, except);
        if (!found) continue;
        for (Inode* inode : nameless) Take(*inode, mount, *mounts, *found);
      }
    }
  }

  /// Shows it there, too, unless the transaction put something else there.
  void Take(Inode& inode, const std::string& mount, const BaseMounts& mounts,
            const std::map<uint64_t, std::string>& found) const {
    BaseOrigin& origin = *inode.record.base;
    const auto name = found.find(origin.ino);
    if (!inode.lost || name == found.end() || mounts.Of(origin.path) != mount) {
      return;
    }
    const auto st = base_.Stat(name->second);
    // Another file may have got the inode number.
    if (!st || !tree_.IsOrigin(inode, *st) ||
        static_cast<uint64_t>(st->st_size) != origin.size ||
        Timestamp::From(st->st_mtim) != origin.mtime) {
      return;
    }
    origin.path = name->second;
    inode.lost = false;
    if (Inode* directory = Obtain(std::string(ParentPath(origin.path)))) {
      Adopt(*directory, origin.path);
    }
  }

  /// The base directory `path`; null where the transaction hides it.
  Inode* Obtain(const std::string& path) const {
    if (path.empty()) return &tree_.root();
    if (Inode* known = tree_.FindBaseDirectory(path)) return known;
    Inode* parent = Obtain(std::string(ParentPath(path)));
    return parent == nullptr ? nullptr : Adopt(*parent, path);
  }

  Inode* Adopt(Inode& parent, const std::string& path) const {
    if (parent.UpperSlot(BaseName(path)) != nullptr) return nullptr;
    const auto object = FindObject(base_, path);
    if (!object || !*object) return nullptr;
    return &tree_.AdoptBase(parent, BaseName(path), **object);
  }

  /// The base's names that the transaction took away or put something on.
  std::set<std::string> HiddenNames() const {
    std::set<std::string> hidden;
    tree_.ForEachUpper([&](const Inode& inode) {
      if (!inode.IsDirectory() || !inode.record.base) return;
      for (const auto& [name, slot] : inode.slots) {
        if (slot.IsUpper()) {
          hidden.insert(JoinPath(inode.record.base->path, name));
        }
      }
    });
    return hidden;
  }

  Tree& tree_;
  const BaseDirectory& base_;
};

}  // namespace

void NoteOtherNames(Tree& tree, const BaseDirectory& base) {
  OtherNames(tree, base).Note();
}

}  // namespace txfs
