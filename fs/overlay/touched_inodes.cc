#include "fs/overlay/touched_inodes.h"

#include <variant>

namespace txfs {
namespace {

void NoteValue(const DentryValue& value, std::unordered_set<Ino>& inos) {
  if (value.kind == DentryKind::kInode) inos.insert(value.ino);
}

void NoteEdit(const Edit& edit, std::unordered_set<Ino>& inos) {
  if (const auto* name = std::get_if<DentryEdit>(&edit)) {
    NoteValue(name->before, inos);
    NoteValue(name->after, inos);
    return;
  }
  std::visit(
      [&](const auto& of) {
        if constexpr (requires { of.ino; }) inos.insert(of.ino);
      },
      edit);
}

}  // namespace

std::shared_ptr<const TouchedInodes> TouchWatches::Watch() {
  std::erase_if(watching_, [](const auto& watch) { return watch.expired(); });
  auto touched = std::make_shared<TouchedInodes>();
  touched->freezes_ = freezes_;
  watching_.push_back(touched);
  return touched;
}

void TouchWatches::Note(const Change& change, bool moves_directories) {
  for (const auto& watch : watching_) {
    const auto touched = watch.lock();
    if (!touched) continue;
    touched->may_move_ = touched->may_move_ || moves_directories;
    for (const Edit& edit : change.edits) NoteEdit(edit, touched->inos_);
  }
}

}  // namespace txfs
