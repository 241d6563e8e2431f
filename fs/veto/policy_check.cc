#include "fs/veto/policy_check.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "fs/host/process_identity.h"
#include "fs/tree/own_names.h"
#include "journal/support/file.h"

namespace txfs {
namespace {

using policy::Effect;
using policy::Layer;

policy::Op JudgedOp(Op op) {
  // Both enumerations begin with the same operations in the same order.
  static_assert(static_cast<int>(Op::kCreate) - 1 ==
                static_cast<int>(policy::Op::kCreate));
  static_assert(static_cast<int>(Op::kExchange) - 1 ==
                static_cast<int>(policy::Op::kExchange));
  static_assert(static_cast<int>(Op::kRemovexattr) - 1 ==
                static_cast<int>(policy::Op::kRemovexattr));
  if (op == Op::kRead) return policy::Op::kRead;
  return static_cast<policy::Op>(static_cast<uint8_t>(op) - 1);
}

bool HasOneName(const Inode& inode) {
  if (inode.IsDirectory()) return true;
  const auto& base = inode.record.base;
  return inode.attr().nlink == 1 && (!base || base->nlink == 1);
}

/// Refuses a reserved name and names below it, whatever the policy.
Status CheckOwn(const Tree& tree, const BaseDirectory& base,
                const Inode& directory, std::string_view name) {
  if (!OwnNames(tree, base).Has(directory, name)) return {};
  return Veto(OwnNamesRule(), tree.PathOf(directory, name));
}

/// The verdict of `policy` on `event`. Drops the program from `event` if it
/// does not count. That check is slower than a second verdict, so it runs only
/// if an unknown program could change the verdict or ask.
policy::Verdict JudgeProgram(const policy::Policy& policy, policy::Event& event,
                             uint32_t pid, const BaseDirectory& base) {
  const policy::Verdict verdict = policy::Evaluate(policy, event);
  // An unknown program can only make the verdict stricter.
  if (event.exe.empty() || verdict.action == policy::Action::kDeny) {
    return verdict;
  }
  policy::Event unknown = event;
  unknown.exe = {};
  const policy::Verdict strict = policy::Evaluate(policy, unknown);
  const bool is_asked = strict.action > policy::Action::kHold;
  if (strict.rule == verdict.rule && !is_asked) return verdict;
  const auto process = static_cast<pid_t>(pid);
  if (ProgramCounts(process, PathOfFd(base.root()))) return verdict;
  event = unknown;
  return strict;
}

}  // namespace

policy::Type JudgedType(FileType type) {
  switch (type) {
    case FileType::kRegular:
      return policy::Type::kFile;
    case FileType::kDirectory:
      return policy::Type::kDirectory;
    case FileType::kSymlink:
      return policy::Type::kSymlink;
    default:
      return policy::Type::kOther;
  }
}

bool PolicyCheck::Cares(Effect effect) const {
  return policy_ != nullptr &&
         policy_->Cares(policy::MaskOf(effect) |
                        policy::MaskOf(JudgedOp(change_.op)) |
                        (effect == Effect::kRemove ? policy::kMove : 0));
}

PolicyCheck::Thing PolicyCheck::ThingOf(const Attr& attr, bool has_base) {
  const bool is_empty = attr.type == FileType::kRegular && attr.size == 0;
  const Layer layer = has_base   ? Layer::kBase
                      : is_empty ? Layer::kEmpty
                                 : Layer::kNew;
  return {layer, JudgedType(attr.type)};
}

PolicyCheck::Thing PolicyCheck::ThingOf(const Inode& inode) {
  return ThingOf(inode.attr(), inode.record.base.has_value());
}

Status PolicyCheck::Judge(Effect effect, std::string_view path, Thing thing,
                          std::string_view other_end) {
  // An operation never makes a base object.
  const bool is_made = effect == Effect::kMake && thing.layer == Layer::kBase;
  const Layer layer = is_made ? Layer::kNew : thing.layer;
  policy::Event event{.op = JudgedOp(change_.op),
                      .effect = effect,
                      .path = path,
                      .layer = layer,
                      .type = thing.type,
                      .other_end = other_end,
                      .moved = thing.moved && effect == Effect::kRemove,
                      .exe = change_.exe,
                      .uid = user_};
  const policy::Verdict verdict =
      JudgeProgram(*policy_, event, change_.pid, base_);
  if (verdict.action == policy::Action::kAllow) return {};
  if (verdict.action == policy::Action::kDeny) {
    return Veto(*verdict.rule, path);
  }
  if (verdict.action > noted_) {
    noted_ = verdict.action;
    change_.rule = verdict.rule->id;
  }
  if (verdict.action <= policy::Action::kHold) return {};
  return Inquire(event, *verdict.rule);
}

Status PolicyCheck::Inquire(const policy::Event& event,
                            const policy::Rule& decisive) {
  // Without an inquiry the caller cannot be asked.
  if (inquiry_ == nullptr) return Veto(decisive, event.path);
  for (const policy::Rule* rule : policy_->Matching(event)) {
    if (rule->action <= policy::Action::kHold) continue;
    TRY(inquiry_->Note(policy_, *rule, event));
  }
  return {};
}

Status PolicyCheck::Make(const Inode& directory, std::string_view name,
                         const InodeRecord& record) {
  TRY(CheckOwn(tree_, base_, directory, name));
  if (!Cares(Effect::kMake)) return {};
  return Judge(Effect::kMake, tree_.PathOf(directory, name),
               ThingOf(record.attr, record.base.has_value()));
}

Status PolicyCheck::Remove(const Inode& directory, std::string_view name,
                           const Inode& child) {
  TRY(CheckOwn(tree_, base_, directory, name));
  if (Cares(Effect::kRemove)) {
    TRY(Judge(Effect::kRemove, tree_.PathOf(directory, name), ThingOf(child)));
  }
  // Other hard links get a lower link count.
  const bool has_others = !child.IsDirectory() && child.attr().nlink > 1;
  if (!has_others) return {};
  return AlterNames(Effect::kAttributes, child, ThingOf(child),
                    tree_.PathOf(directory, name));
}

Status PolicyCheck::Alter(Effect effect, const Inode& inode,
                          std::optional<uint64_t> size) {
  if (OwnNames(tree_, base_).HasAny(inode)) {
    return Veto(OwnNamesRule(), tree_.PathOf(inode));
  }
  Thing thing = ThingOf(inode);
  const bool gets_content = effect == Effect::kContent && size != 0;
  if (gets_content && thing.layer == Layer::kEmpty) thing.layer = Layer::kNew;
  return AlterNames(effect, inode, thing, std::nullopt);
}

Status PolicyCheck::Read(const Inode& inode) {
  if (!Cares(Effect::kRead)) return {};
  const Thing thing = ThingOf(inode);
  // A file of the base keeps the names that it has there, wherever the
  // transaction moves them.
  if (inode.record.base) {
    for (const std::string& path : TRY(BasePathsOf(*inode.record.base))) {
      TRY(Judge(Effect::kRead, path, thing));
    }
  }
  return AlterNames(Effect::kRead, inode, thing, std::nullopt);
}

Status PolicyCheck::AlterNames(Effect effect, const Inode& inode, Thing thing,
                               const std::optional<std::string>& but) {
  if (!Cares(effect) || inode.IsOrphan()) return {};
  for (const std::string& path : TRY(PathsOf(inode))) {
    if (path != but) TRY(Judge(effect, path, thing));
  }
  return {};
}

Result<std::vector<std::string>> PolicyCheck::PathsOf(const Inode& inode) {
  std::vector<std::string> paths = tree_.VisiblePaths(inode);
  if (paths.size() == 1 && HasOneName(inode)) return paths;
  if (inode.record.base && !inode.IsDirectory()) {
    TRY(AddUnseen(*inode.record.base, paths));
  }
  std::ranges::sort(paths);
  const auto repeated = std::ranges::unique(paths);
  paths.erase(repeated.begin(), repeated.end());
  return paths;
}

Result<std::vector<std::string>> PolicyCheck::BasePathsOf(
    const BaseOrigin& base) {
  std::vector<std::string> paths{base.path};
  if (base.nlink <= 1) return paths;
  const uint64_t device = base.dev == 0 ? base_.device() : base.dev;
  std::ranges::move(
      TRY(links_.PathsOf(*policy_, device, base.ino,
                         [this] { return tree_.MovedDirectories(); })),
      std::back_inserter(paths));
  return paths;
}

Status PolicyCheck::AddUnseen(const BaseOrigin& base,
                              std::vector<std::string>& paths) {
  for (const std::string& path : TRY(BasePathsOf(base))) {
    // An upper entry hides the base name.
    if (auto seen = tree_.VisibleBase(path)) paths.push_back(std::move(*seen));
  }
  return {};
}

Status PolicyCheck::Move(const Inode& from, std::string_view name,
                         const Inode& to, std::string_view new_name,
                         const Inode& child) {
  TRY(CheckOwn(tree_, base_, from, name));
  TRY(CheckOwn(tree_, base_, to, new_name));
  if (!Cares(Effect::kRemove) && !Cares(Effect::kMake)) return {};
  const std::string old_path = tree_.PathOf(from, name);
  const std::string new_path = tree_.PathOf(to, new_name);
  Thing thing = ThingOf(child);
  thing.moved = change_.op == Op::kRename;
  TRY(Judge(Effect::kRemove, old_path, thing));
  TRY(Judge(Effect::kMake, new_path, thing));
  return child.IsDirectory() ? JudgeBelow(child, old_path, new_path) : Status();
}

/// Reads only directories where a rule may match.
Status PolicyCheck::JudgeBelow(const Inode& directory,
                               const std::string& old_path,
                               const std::string& new_path) {
  const policy::Mask mask = policy::MaskOf(Effect::kRemove) |
                            policy::MaskOf(Effect::kMake) | policy::kMove |
                            policy::MaskOf(JudgedOp(change_.op));
  struct Below {
    const Inode* inode;  ///< nullptr: only the base has it
    std::string base_path, old_path, new_path;
  };
  const auto base_path_of = [](const Inode& inode) {
    return inode.record.base ? inode.record.base->path : std::string();
  };
  std::vector<Below> pending{
      {&directory, base_path_of(directory), old_path, new_path}};
  while (!pending.empty()) {
    const Below below = std::move(pending.back());
    pending.pop_back();
    if (!policy_->MayMatchBelow(mask, below.old_path) &&
        !policy_->MayMatchBelow(mask, below.new_path)) {
      continue;
    }
    const auto meet = [&](const std::string& name, const Inode* inode,
                          std::string base_path, Thing thing) -> Status {
      Below next{inode, std::move(base_path), JoinPath(below.old_path, name),
                 JoinPath(below.new_path, name)};
      thing.moved = change_.op == Op::kRename;
      TRY(Judge(Effect::kRemove, next.old_path, thing, next.new_path));
      TRY(Judge(Effect::kMake, next.new_path, thing, next.old_path));
      if (thing.type == policy::Type::kDirectory) {
        pending.push_back(std::move(next));
      }
      return {};
    };
    if (below.inode != nullptr) {
      // Includes children that the base deleted and the tree still has.
      std::vector<std::pair<std::string, const Inode*>> children;
      tree_.ForEachChild(*below.inode,
                         [&](const std::string& name, const Inode& child) {
                           children.emplace_back(name, &child);
                         });
      for (const auto& [name, child] : children) {
        TRY(meet(name, child, base_path_of(*child), ThingOf(*child)));
      }
    }
    if (below.base_path.empty()) continue;
    auto entries = base_.List(below.base_path);
    if (!entries) {
      // The caller may rename a directory without the right to read it.
      if (IsClosedOrGone(entries.error())) continue;
      return std::unexpected(std::move(entries).error());
    }
    for (const BaseEntry& entry : *entries) {
      // Known to lead to an inode or to be deleted.
      if (below.inode != nullptr && below.inode->Knows(entry.name)) continue;
      TRY(meet(entry.name, nullptr, JoinPath(below.base_path, entry.name),
               {Layer::kBase, JudgedType(entry.type)}));
    }
  }
  return {};
}

}  // namespace txfs
