#include "fs/commit_view.h"

#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include "fs/commit_image.h"
#include "fs/committer.h"
#include "fs/tree.h"
#include "journal/base/file.h"

namespace txfs {
namespace {

constexpr size_t kCompareBytes = 1 << 20;

/// An object as the steps of a commit move it about.
struct Node {
  Spot origin;                     ///< where it was before
  std::set<std::string> before;    ///< its names in the base before
  std::vector<Spot> after;         ///< and afterwards, of base and vault
  std::optional<Delta> old_bytes;  ///< of a patch
  std::optional<ObjectAttributes> set_before, set_after;
  /// Names in it that the steps looked at; null: taken away.
  std::map<std::string, std::shared_ptr<Node>> children;

  [[nodiscard]] std::set<std::string> AfterNames() const {
    std::set<std::string> names;
    for (const Spot& spot : after) {
      if (!spot.vault) names.insert(spot.path);
    }
    return names;
  }
};
using NodePtr = std::shared_ptr<Node>;

/// `path` where `spot` is.
Spot At(const Spot& spot, std::string path) {
  return {spot.vault, std::move(path), spot.mount};
}

/// The directories of a commit's vault, by mount.
using VaultDirectories = std::map<std::string, BaseDirectory>;

/// Goes through the steps with names only, to learn what came from where.
class StepTracer {
 public:
  StepTracer() {
    base_->before.insert("");
    nodes_.push_back(base_);
  }

  void Trace(const CommitSteps& steps) {
    for (const CommitStep& step : steps) Do(step);
    Locate(*base_, Spot::Base(""));
    for (const auto& [mount, vault] : vaults_) {
      Locate(*vault, Spot::Vault("", mount));
    }
  }

  /// Every object that a step is about, but also parents of such.
  [[nodiscard]] const std::vector<NodePtr>& nodes() const { return nodes_; }
  /// New content, and what it replaced.
  [[nodiscard]] const std::map<const Node*, NodePtr>& replaced() const {
    return replaced_;
  }

 private:
  void Do(const CommitStep& step) {
    switch (step.kind) {
      case StepKind::kMove: {
        NodePtr node = Find(step.from, 0);
        PairBySlot(step, node);
        Entry(step.from) = nullptr;
        Entry(step.to) = std::move(node);
        return;
      }
      case StepKind::kExchange: {
        NodePtr fresh = Find(step.from, 0);
        NodePtr old = Find(step.to, 0);
        replaced_[fresh.get()] = old;
        Entry(step.from) = std::move(old);
        Entry(step.to) = std::move(fresh);
        return;
      }
      case StepKind::kLink: {
        NodePtr node = Find(step.from, step.ino);
        Entry(step.to) = std::move(node);
        return;
      }
      case StepKind::kUnlink:
        Find(step.from, step.ino);
        Find(step.to, step.ino);
        Entry(step.to) = nullptr;
        return;
      case StepKind::kPatch:
        Find(step.to, step.ino)->old_bytes = step.before;
        return;
      case StepKind::kAttributes: {
        const NodePtr node = step.set_after ? Find(step.to, 0) : Origin(step);
        if (!node) return;
        node->set_before = step.set_before;
        node->set_after = step.set_after;
        return;
      }
    }
  }

  /// What was at `step.from` in the base, and no longer is; null when no other
  /// step is about it.
  NodePtr Origin(const CommitStep& step) const {
    const auto found = by_origin_.find(step.from.path);
    return found == by_origin_.end() ? nullptr : found->second;
  }

  /// A file that was moved and replaced is "m" and a number in the vault, what
  /// took its place "n" and the same (commit_plan.cc).
  void PairBySlot(const CommitStep& step, const NodePtr& node) {
    const Spot& slot = step.to.vault ? step.to : step.from;
    if (!slot.path.starts_with('m') && !slot.path.starts_with('n')) return;
    const std::string number = slot.path.substr(1);
    NodePtr& out = taken_out_[number];
    if (step.to.vault) {
      out = node;
    } else if (out && out != node && out->origin.vault != node->origin.vault) {
      replaced_[node.get()] = out;
    }
  }

  NodePtr& Root(const Spot& spot) {
    if (!spot.vault) return base_;
    NodePtr& root = vaults_[spot.mount];
    if (!root) {
      root =
          std::make_shared<Node>(Node{.origin = Spot::Vault("", spot.mount)});
    }
    return root;
  }

  NodePtr& Entry(const Spot& spot) {
    if (spot.path.empty()) return Root(spot);
    const NodePtr parent =
        Find(At(spot, std::string(ParentPath(spot.path))), 0);
    return parent->children[std::string(BaseName(spot.path))];
  }

  /// What stands there. `ino`, if it is not 0, tells names of one object.
  NodePtr Find(const Spot& spot, uint64_t ino) {
    if (spot.path.empty()) return Root(spot);
    const NodePtr parent =
        Find(At(spot, std::string(ParentPath(spot.path))), 0);
    const std::string name(BaseName(spot.path));
    const auto known = parent->children.find(name);
    if (known != parent->children.end() && known->second) {
      if (ino != 0) by_ino_.try_emplace(ino, known->second);
      return known->second;
    }
    const Spot origin = At(parent->origin, JoinPath(parent->origin.path, name));
    NodePtr node = ino != 0 ? by_ino_[ino] : nullptr;
    if (!node) {
      node = std::make_shared<Node>(Node{.origin = origin});
      nodes_.push_back(node);
      if (ino != 0) by_ino_[ino] = node;
    }
    if (!origin.vault) {
      node->before.insert(origin.path);
      by_origin_.try_emplace(origin.path, node);
    }
    parent->children[name] = node;
    return node;
  }

  static void Locate(Node& node, const Spot& spot) {
    node.after.push_back(spot);
    for (const auto& [name, child] : node.children) {
      if (child) Locate(*child, At(spot, JoinPath(spot.path, name)));
    }
  }

  NodePtr base_ = std::make_shared<Node>();
  std::map<std::string, NodePtr> vaults_;  // by mount
  std::vector<NodePtr> nodes_;
  std::map<uint64_t, NodePtr> by_ino_;
  std::map<std::string, NodePtr> by_origin_;  // by path in the base
  std::map<const Node*, NodePtr> replaced_;
  std::map<std::string, NodePtr> taken_out_;
};

/// Makes net changes of what a plan did, by what base and vault have now.
class ViewBuilder {
 public:
  ViewBuilder(const BaseDirectory& base, const Vaults& vaults,
              const VaultDirectories& vault, std::string vault_id,
              const CommitImage& image)
      : base_(base),
        vaults_(vaults),
        vault_(vault),
        vault_id_(std::move(vault_id)) {
    for (const ImageEntry& entry : image) image_[entry.path] = &entry;
  }

  Status Build(const CommitSteps& steps, const CommitImage& image,
               CommitView& view) {
    for (Conflict& conflict : TRY(CompareImage(base_, image))) {
      drift_[conflict.path] = std::move(conflict.reason);
    }
    tracer_.Trace(steps);
    for (const NodePtr& node : tracer_.nodes()) {
      for (const std::string& name : node->AfterNames()) known_.insert(name);
    }
    for (const auto& [fresh, old] : tracer_.replaced()) {
      paired_.insert(old.get());
    }
    for (const NodePtr& node : tracer_.nodes()) TRY(AddNode(*node));
    return Pair(view);
  }

 private:
  /// What a name that came was before, as the steps have it.
  struct Source {
    std::string path;
    bool same_object = false;  ///< then it is known whether these differ
    bool content = false;
    bool xattrs = false;
  };

  Status AddNode(const Node& node) {
    const std::set<std::string> after = node.AfterNames();
    if (node.origin.vault) {
      for (const std::string& path : after) TRY(AddTree(path));
      const auto replaced = tracer_.replaced().find(&node);
      if (replaced == tracer_.replaced().end() || after.empty()) return {};
      return AddReplaced(*replaced->second, *after.begin());
    }
    if (after.empty() && paired_.contains(&node)) return {};
    std::vector<std::string> went;
    std::vector<std::string> came;
    std::ranges::set_difference(node.before, after, std::back_inserter(went));
    std::ranges::set_difference(after, node.before, std::back_inserter(came));
    const size_t moved = std::min(went.size(), came.size());
    for (size_t i = 0; i < moved; ++i) TRY(AddMoved(node, went[i], came[i]));
    for (size_t i = moved; i < went.size(); ++i) TRY(AddGone(node, went[i]));
    for (size_t i = moved; i < came.size(); ++i) TRY(AddTree(came[i]));
    const bool changed = node.old_bytes || node.set_before;
    if (moved != 0 || !changed || after.empty()) return {};
    return AddChanged(node, *node.before.begin(), *after.begin());
  }

  // --- sides

  [[nodiscard]] Result<std::reference_wrapper<const BaseDirectory>> DirectoryOf(
      const Spot& spot) const {
    if (!spot.vault) return std::cref(base_);
    const auto found = vault_.find(spot.mount);
    if (found != vault_.end()) return std::cref(found->second);
    return Fail(EBADMSG, "the vault has no part on " + spot.mount);
  }

  Result<ChangeSide> SideAt(const Spot& spot) const {
    const BaseDirectory& in = TRY(DirectoryOf(spot));
    ChangeSide side;
    const struct stat st = TRY(in.Stat(spot.path));
    side.attr = AttrOf(st);
    if (S_ISLNK(st.st_mode)) side.symlink = TRY(in.ReadLink(spot.path));
    if (spot.vault) {
      side.vault_path = Vaults::PathOf(vault_id_, spot);
    } else {
      side.base_path = spot.path;
    }
    return side;
  }

  /// The side in the base that the commit left at `path`: when that has
  /// changed, what the image knows of it.
  Result<ChangeSide> SideLeft(const std::string& path) {
    const auto then = image_.find(path);
    auto side = SideAt(Spot::Base(path));
    const auto drift = drift_.find(ShownPath(path));
    if (drift == drift_.end()) return side;
    lost_[path] = drift->second;
    if (then == image_.end() || !then->second->exists) return side;
    const ImageEntry& entry = *then->second;
    ChangeSide left;
    left.attr.type = TypeOfMode(entry.mode).value_or(FileType::kRegular);
    left.attr.mode = entry.mode & 07777;
    left.attr.uid = entry.uid;
    left.attr.gid = entry.gid;
    left.attr.size = entry.size;
    left.attr.mtime = entry.mtime;
    left.base_path = path;
    return left;
  }

  /// The before side of an object that the commit changed in place, or not.
  [[nodiscard]] ChangeSide Before(const Node& node, ChangeSide side) const {
    if (node.set_before) {
      side.attr.mode = node.set_before->mode;
      side.attr.uid = node.set_before->uid;
      side.attr.gid = node.set_before->gid;
      side.attr.mtime = node.set_before->mtime;
    }
    if (node.old_bytes) {
      side.attr.size = node.old_bytes->size;
      side.delta = node.old_bytes;
      side.delta->name = JoinPath(vault_id_, side.delta->name);
    }
    return side;
  }

  // --- names

  /// A name that came, and everything below it that did.
  Status AddTree(const std::string& path) {
    TRY(AddLeft(path));
    const std::string below = path + "/";
    for (auto it = image_.lower_bound(below);
         it != image_.end() && it->first.starts_with(below); ++it) {
      const std::string child(it->first);
      if (!it->second->exists || IsWithinKnown(child, path)) continue;
      TRY(AddLeft(child));
    }
    return {};
  }

  Status AddLeft(const std::string& path) {
    afters_[path] = TRY(SideLeft(path));
    return {};
  }

  /// Whether `path`, or a directory between it and `top`, is an object of its
  /// own.
  [[nodiscard]] bool IsWithinKnown(std::string path,
                                   const std::string& top) const {
    for (; path != top && !path.empty(); path = ParentPath(path)) {
      if (known_.contains(path)) return true;
    }
    return false;
  }

  /// A name that went; what was below it is where it is now.
  Status AddGone(const Node& node, const std::string& path) {
    if (node.after.empty()) return {};
    return AddGoneTree(node, path, node.after.front());
  }

  Status AddGoneTree(const Node& node, const std::string& path,
                     const Spot& now) {
    auto side = SideAt(now);
    if (!side && side.error().code == ENOENT) return {};
    if (!side) return std::unexpected(std::move(side).error());
    const bool descends = now.vault && side->attr.type == FileType::kDirectory;
    befores_[path] = Before(node, *std::move(side));
    if (!descends) return {};
    const BaseDirectory& in = TRY(DirectoryOf(now));
    for (const BaseEntry& entry : TRY(in.List(now.path))) {
      TRY(AddGoneTree(Node{}, JoinPath(path, entry.name),
                      At(now, JoinPath(now.path, entry.name))));
    }
    return {};
  }

  /// An object with another name, and what came along with it.
  Status AddMoved(const Node& node, const std::string& old,
                  const std::string& path) {
    TRY(AddChanged(node, old, path));
    const auto side = afters_.find(path);
    if (side == afters_.end() ||
        side->second.attr.type != FileType::kDirectory) {
      return {};
    }
    const auto entries = base_.List(path);
    if (!entries && entries.error().code == ENOENT) return {};
    for (const BaseEntry& entry : TRY(entries)) {
      const std::string child = JoinPath(path, entry.name);
      if (known_.contains(child)) continue;
      TRY(AddMoved(Node{}, JoinPath(old, entry.name), child));
    }
    return {};
  }

  Status AddChanged(const Node& node, const std::string& old,
                    const std::string& path) {
    auto side = SideLeft(path);
    if (!side && side.error().code == ENOENT) return {};
    if (!side) return std::unexpected(std::move(side).error());
    befores_[old] = Before(node, *side);
    afters_[path] = *std::move(side);
    sources_[path] = {
        .path = old,
        .same_object = true,
        .content = node.old_bytes.has_value(),
        .xattrs = node.set_before && node.set_after &&
                  node.set_before->xattrs != node.set_after->xattrs};
    return {};
  }

  /// `path` has the content that replaced `old`'s.
  Status AddReplaced(const Node& old, const std::string& path) {
    if (old.after.empty() || old.before.empty()) return {};
    ChangeSide side = TRY(SideAt(old.after.front()));
    const std::string& old_path = *old.before.begin();
    befores_[old_path] = Before(old, std::move(side));
    sources_[path] = {.path = old_path};
    return {};
  }

  // --- changes

  /// As git does: a name that is on both sides is one change, whatever moved
  /// there; then come renames.
  Status Pair(CommitView& view) {
    std::set<std::string> used;
    for (const auto& [path, after] : afters_) {
      if (befores_.contains(path)) used.insert(path);
    }
    for (auto& [path, after] : afters_) {
      NetChange change{.path = path, .after = after};
      const auto source = sources_.find(path);
      if (befores_.contains(path)) {
        change.before = befores_[path];
      } else if (source != sources_.end() &&
                 befores_.contains(source->second.path) &&
                 used.insert(source->second.path).second) {
        change.old_path = source->second.path;
        change.before = befores_[change.old_path];
      }
      TRY(Settle(std::move(change), view));
    }
    for (auto& [path, before] : befores_) {
      if (used.contains(path)) continue;
      TRY(Settle({.path = path, .before = before}, view));
    }
    std::ranges::sort(view.changes, {}, &NetChange::path);
    return {};
  }

  /// Kind and differences. What is equal is no change.
  Status Settle(NetChange change, CommitView& view) {
    if (change.before && change.after) {
      TRY(Compare(change));
      const bool is_equal = change.kind == ChangeKind::kModified &&
                            !change.content && !change.attributes;
      if (is_equal) return {};
    } else {
      change.kind = change.after ? ChangeKind::kAdded : ChangeKind::kDeleted;
      change.content = true;
    }
    const auto lost = LostPart(change);
    if (lost && change.content) view.lost.push_back({change.path, *lost});
    view.changes.push_back(std::move(change));
    return {};
  }

  Status Compare(NetChange& change) const {
    const Attr& before = change.before->attr;
    const Attr& after = change.after->attr;
    change.kind = before.type != after.type  ? ChangeKind::kTypeChanged
                  : !change.old_path.empty() ? ChangeKind::kRenamed
                                             : ChangeKind::kModified;
    change.attributes = before.mode != after.mode || before.uid != after.uid ||
                        before.gid != after.gid;
    const auto source = sources_.find(change.path);
    const std::string& old =
        change.old_path.empty() ? change.path : change.old_path;
    if (source != sources_.end() && source->second.path == old &&
        source->second.same_object) {
      change.content = source->second.content;
      change.attributes |= source->second.xattrs;
      return {};
    }
    change.content = LostPart(change) || !TRY(SameContent(change));
    return {};
  }

  /// What became of the content of a side that was in the base.
  [[nodiscard]] std::optional<std::string> LostPart(
      const NetChange& change) const {
    for (const auto& side : {change.before, change.after}) {
      if (!side || !side->vault_path.empty()) continue;
      const auto found = lost_.find(side->base_path);
      if (found != lost_.end()) return found->second;
    }
    return std::nullopt;
  }

  Result<bool> SameContent(const NetChange& change) const {
    const ChangeSide& a = *change.before;
    const ChangeSide& b = *change.after;
    if (a.attr.type != b.attr.type || a.symlink != b.symlink) return false;
    if (a.attr.type != FileType::kRegular) return true;
    if (a.attr.size != b.attr.size || a.delta || b.delta) return false;
    const SharedFd old = TRY(OpenSide(a));
    const SharedFd fresh = TRY(OpenSide(b));
    Bytes left(kCompareBytes);
    Bytes right(kCompareBytes);
    for (uint64_t offset = 0; offset < a.attr.size; offset += left.size()) {
      const size_t n = TRY(ReadFully(old->get(), offset, left));
      const size_t m = TRY(ReadFully(fresh->get(), offset, right));
      if (n != m || !std::ranges::equal(ByteSpan(left).first(n),
                                        ByteSpan(right).first(m))) {
        return false;
      }
    }
    return true;
  }

  [[nodiscard]] Result<SharedFd> OpenSide(const ChangeSide& side) const {
    if (side.vault_path.empty()) return base_.OpenFile(side.base_path);
    return vaults_.OpenFile(side.vault_path);
  }

  const BaseDirectory& base_;
  const Vaults& vaults_;
  const VaultDirectories& vault_;
  const std::string vault_id_;
  std::map<std::string_view, const ImageEntry*, std::less<>> image_;
  std::map<std::string, std::string> drift_;  ///< path to reason
  StepTracer tracer_;
  std::set<std::string> known_;  ///< names in the base of traced objects
  std::set<const Node*> paired_;
  std::map<std::string, std::string> lost_;             ///< path to reason
  std::map<std::string, ChangeSide> befores_, afters_;  ///< by path
  std::map<std::string, Source> sources_;               ///< of names of afters_
};

/// The view of what takes back what `view` shows.
void SwapSides(CommitView& view) {
  for (NetChange& change : view.changes) {
    std::swap(change.before, change.after);
    if (!change.old_path.empty()) {
      for (Conflict& lost : view.lost) {
        if (lost.path == change.path) lost.path = change.old_path;
      }
      std::swap(change.path, change.old_path);
    }
    if (change.kind == ChangeKind::kAdded) {
      change.kind = ChangeKind::kDeleted;
    } else if (change.kind == ChangeKind::kDeleted) {
      change.kind = ChangeKind::kAdded;
    }
  }
  std::ranges::sort(view.changes, {}, &NetChange::path);
}

}  // namespace

Result<CommitView> ViewCommit(Store& store, const BaseDirectory& base,
                              const std::string& wanted) {
  CommitView view;
  const std::vector<TransactionSummary> list = TRY(store.List());
  view.summary = TRY(FindTransaction(list, wanted));
  // What an undo took away, and what it brought back, is what its commit did.
  TransactionSummary newest = view.summary;
  bool swapped = false;
  for (; !newest.undone_by.empty(); swapped = !swapped) {
    newest = TRY(store.history().Read(newest.undone_by));
  }
  if (!newest.undoable) return view;
  const Committer committer(store, base);
  const CommitRecord record = TRY(committer.ReadRecord(newest.id));
  const std::string bytes = TRY(store.history().ReadImage(newest.id));
  const CommitImage image = TRY(DecodeImage(AsBytes(bytes)));
  VaultDirectories vault;
  for (auto& [mount, fd] : TRY(committer.vaults().Open(record.vault))) {
    vault.try_emplace(mount, std::move(fd));
  }
  view.has_changes = true;
  TRY(ViewBuilder(base, committer.vaults(), vault, record.vault, image)
          .Build(record.steps, image, view));
  if (swapped) SwapSides(view);
  return view;
}

}  // namespace txfs
