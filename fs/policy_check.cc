#include "fs/policy_check.h"

#include <set>

namespace txfs {
namespace {

using policy::Effect;
using policy::Layer;

policy::Op JudgedOp(Op op) {
  // Both begin with the same ones, in the same order (policy_check_test).
  return static_cast<policy::Op>(static_cast<uint8_t>(op) - 1);
}

Layer LayerOf(const Inode& inode) {
  return inode.record.base ? Layer::kBase : Layer::kNew;
}

}  // namespace

bool PolicyCheck::Cares(Effect effect) const {
  return policy_ != nullptr &&
         policy_->Cares(policy::MaskOf(effect) |
                        policy::MaskOf(JudgedOp(change_.op)));
}

Status PolicyCheck::Judge(Effect effect, std::string_view path, Layer layer) {
  const policy::Verdict verdict =
      policy::Evaluate(*policy_, {.op = JudgedOp(change_.op),
                                  .effect = effect,
                                  .path = path,
                                  .layer = layer,
                                  .exe = change_.exe,
                                  .uid = change_.uid});
  if (verdict.action == policy::Action::kAudit && change_.rule.empty()) {
    change_.rule = verdict.rule->id;
  }
  if (verdict.action != policy::Action::kDeny) return {};
  return std::unexpected(Error{.code = verdict.rule->error,
                               .message = verdict.rule->reason,
                               .hint = verdict.rule->suggest,
                               .kind = ErrorKind::kVetoed,
                               .rule = verdict.rule->id});
}

Status PolicyCheck::Make(const Inode& directory, std::string_view name) {
  if (!Cares(Effect::kMake)) return {};
  return Judge(Effect::kMake, tree_.PathOf(directory, name), Layer::kNew);
}

Status PolicyCheck::Remove(const Inode& directory, std::string_view name,
                           const Inode& child) {
  if (Cares(Effect::kRemove)) {
    TRY(Judge(Effect::kRemove, tree_.PathOf(directory, name), LayerOf(child)));
  }
  // Its other names lose a link.
  const bool has_others = !child.IsDirectory() && child.attr().nlink > 1;
  return has_others ? Alter(Effect::kAttributes, child) : Status();
}

Status PolicyCheck::Alter(Effect effect, const Inode& inode) {
  if (!Cares(effect) || inode.IsOrphan()) return {};
  for (const std::string& path : tree_.VisiblePaths(inode)) {
    TRY(Judge(effect, path, LayerOf(inode)));
  }
  return {};
}

Status PolicyCheck::Move(const Inode& from, std::string_view name,
                         const Inode& to, std::string_view new_name,
                         const Inode& child) {
  if (!Cares(Effect::kRemove) && !Cares(Effect::kMake)) return {};
  const std::string old_path = tree_.PathOf(from, name);
  const std::string new_path = tree_.PathOf(to, new_name);
  TRY(Judge(Effect::kRemove, old_path, LayerOf(child)));
  TRY(Judge(Effect::kMake, new_path, LayerOf(child)));
  return child.IsDirectory() ? JudgeBelow(child, old_path, new_path) : Status();
}

/// Looks only where a rule may be about something.
Status PolicyCheck::JudgeBelow(const Inode& directory,
                               const std::string& old_path,
                               const std::string& new_path) {
  const policy::Mask mask = policy::MaskOf(Effect::kRemove) |
                            policy::MaskOf(Effect::kMake) |
                            policy::MaskOf(JudgedOp(change_.op));
  struct Below {
    const Inode* inode;  ///< nullptr: only the base has it
    std::string base_path, old_path, new_path;
  };
  const auto base_path_of = [](const Inode& inode) {
    return inode.record.base ? inode.record.base->path : std::string();
  };
  std::vector<Below> todo{
      {&directory, base_path_of(directory), old_path, new_path}};
  while (!todo.empty()) {
    const Below below = std::move(todo.back());
    todo.pop_back();
    if (!policy_->MayMatchBelow(mask, below.old_path) &&
        !policy_->MayMatchBelow(mask, below.new_path)) {
      continue;
    }
    const auto meet = [&](const std::string& name, const Inode* inode,
                          std::string base_path, bool is_directory) -> Status {
      const Layer layer = base_path.empty() ? Layer::kNew : Layer::kBase;
      Below next{inode, std::move(base_path), JoinPath(below.old_path, name),
                 JoinPath(below.new_path, name)};
      TRY(Judge(Effect::kRemove, next.old_path, layer));
      TRY(Judge(Effect::kMake, next.new_path, layer));
      if (is_directory) todo.push_back(std::move(next));
      return {};
    };
    if (below.inode != nullptr) {
      for (const auto& [name, slot] : below.inode->slots) {
        if (slot.upper.kind != DentryKind::kInode) continue;
        const Inode* child = tree_.Find(slot.upper.ino);
        if (child == nullptr) continue;
        TRY(meet(name, child, base_path_of(*child), child->IsDirectory()));
      }
    }
    if (below.base_path.empty()) continue;
    for (const BaseEntry& entry : TRY(base_.List(below.base_path))) {
      if (below.inode != nullptr &&
          below.inode->UpperSlot(entry.name) != nullptr) {
        continue;
      }
      const Slot* cached = below.inode == nullptr
                               ? nullptr
                               : below.inode->CachedSlot(entry.name);
      const Inode* child =
          cached == nullptr ? nullptr : tree_.Find(cached->cached);
      TRY(meet(entry.name, child, JoinPath(below.base_path, entry.name),
               entry.type == FileType::kDirectory));
    }
  }
  return {};
}

}  // namespace txfs
