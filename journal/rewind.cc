#include "journal/rewind.h"

#include <algorithm>
#include <ranges>

namespace txfs {

void Rewind::Undo(Lsn lsn, const Change& change) {
  if (!change.edits.empty()) ++changes;
  for (const Edit& edit : std::views::reverse(change.edits)) {
    std::visit([&](const auto& e) { Undo(lsn, e); }, edit);
  }
}

void Rewind::Undo(Lsn, const InodeEdit& edit) {
  PastInode& past = inodes[edit.ino];
  past.record = edit.before;
  if (edit.after) past.untouched = *edit.after;
  attrs.erase(edit.ino);
}

void Rewind::Undo(Lsn, const AttrEdit& edit) {
  const auto inode = inodes.find(edit.ino);
  if (inode == inodes.end()) {
    attrs[edit.ino] = edit.before;
  } else if (inode->second.record) {
    inode->second.record->attr = edit.before;
  }
}

void Rewind::Undo(Lsn, const DentryEdit& edit) {
  dentries[{edit.parent, edit.name}] = edit.before;
}

Rewind::PastContent& Rewind::ContentOf(const Extent& extent) {
  const ContentRef& ref = extent.content;
  PastContent& past = content[{ref.segment, ref.record_position}];
  past.length = ref.record_length;
  return past;
}

void Rewind::Undo(Lsn lsn, const ExtentEdit& edit) {
  auto& rows = extents[edit.ino];
  for (const Extent& extent : edit.after) {
    rows[extent.offset] = std::nullopt;
    if (extent.content.segment == 0) continue;
    PastContent& past = ContentOf(extent);
    past.live -= static_cast<int64_t>(extent.length);
    past.born = lsn;
  }
  for (const Extent& extent : edit.before) {
    rows[extent.offset] = extent;
    if (extent.content.segment == 0) continue;
    PastContent& past = ContentOf(extent);
    past.live += static_cast<int64_t>(extent.length);
    past.died = std::max(past.died, lsn);
    // What was there before came with an older change.
    past.born = kNoLsn;
  }
}

void Rewind::Undo(Lsn, const XattrEdit& edit) {
  xattrs[{edit.ino, edit.name}] = edit.before;
}

void Rewind::ApplyTo(State& state) const {
  for (const auto& [ino, past] : inodes) state.SetInode(ino, past.record);
  for (const auto& [ino, attr] : attrs) state.SetAttr(ino, attr);
  for (const auto& [key, value] : dentries) {
    state.SetDentry(key.first, key.second, value);
  }
  for (const auto& [ino, rows] : extents) {
    for (const auto& [offset, extent] : rows) {
      if (extent) {
        state.PutExtent(ino, *extent);
      } else {
        state.EraseExtent(ino, {.offset = offset});
      }
    }
  }
  for (const auto& [key, value] : xattrs) {
    state.SetXattr(key.first, key.second, value);
  }
}

void Rewind::CountLive(const Extent& extent, int sign) {
  if (extent.content.segment == 0) return;
  ContentOf(extent).live += sign * static_cast<int64_t>(extent.length);
}

}  // namespace txfs
