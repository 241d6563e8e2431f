#include "journal/rewind.h"

#include <algorithm>
#include <ranges>
#include <vector>

#include "journal/support/overloaded.h"

namespace txfs {

void Rewind::Undo(Lsn lsn, Change change) {
  if (!change.edits.empty() && !IsInternal(change.op)) {
    changes += change.repeats;
  }
  const Lsn born = change.op == Op::kRevert ? kNoLsn : lsn;
  for (Edit& edit : std::views::reverse(change.edits)) {
    std::visit(Overloaded{[&](ExtentEdit& e) { Undo(lsn, born, e); },
                          [&](auto& e) { Undo(e); }},
               edit);
  }
}

Rewind::PastInode& Rewind::PastOf(Ino ino) {
  const auto [place, fresh] = by_ino_.try_emplace(ino, inodes.size());
  if (fresh) inodes.emplace_back().ino = ino;
  return inodes[place->second];
}

void Rewind::Undo(InodeEdit& edit) {
  PastInode& past = PastOf(edit.ino);
  past.has =
      edit.before ? PastInode::Record::kReturns : PastInode::Record::kVanishes;
  past.attr.reset();
  auto& record = edit.before ? edit.before : edit.after;
  if (record) past.record = std::move(record);
}

void Rewind::Undo(AttrEdit& edit) {
  PastInode& past = PastOf(edit.ino);
  switch (past.has) {
    case PastInode::Record::kStays:
      past.attr = edit.before;
      break;
    case PastInode::Record::kReturns:
      past.record->attr = edit.before;
      break;
    case PastInode::Record::kVanishes:
      break;
  }
}

void Rewind::Undo(DentryEdit& edit) {
  dentries[{edit.parent, std::move(edit.name)}] = edit.before;
}

Rewind::PastContent& Rewind::ContentOf(const Extent& extent) {
  const ContentRef& ref = extent.content;
  PastContent& past = content[{ref.segment, ref.record_position}];
  past.length = ref.record_length;
  return past;
}

void Rewind::Undo(Lsn lsn, Lsn born, ExtentEdit& edit) {
  auto& rows = PastOf(edit.ino).extents;
  for (const Extent& extent : edit.after) {
    rows[extent.offset] = std::nullopt;
    if (extent.content.segment == 0) continue;
    PastContent& past = ContentOf(extent);
    past.live -= static_cast<int64_t>(extent.length);
    past.born = born;
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

void Rewind::Undo(XattrEdit& edit) {
  xattrs[{edit.ino, std::move(edit.name)}] = std::move(edit.before);
}

void Rewind::ApplyTo(State& state) const {
  // A table takes rows that follow each other with less work.
  std::vector<const PastInode*> sorted;
  sorted.reserve(inodes.size());
  for (const PastInode& past : inodes) sorted.push_back(&past);
  std::ranges::sort(sorted, {},
                    [](const PastInode* past) { return past->ino; });

  for (const PastInode* past : sorted) {
    switch (past->has) {
      case PastInode::Record::kStays:
        if (past->attr) state.SetAttr(past->ino, *past->attr);
        break;
      case PastInode::Record::kReturns:
        state.SetInode(past->ino, past->record);
        break;
      case PastInode::Record::kVanishes:
        state.SetInode(past->ino, std::nullopt);
        break;
    }
  }
  for (const auto& [key, value] : dentries) {
    state.SetDentry(key.first, key.second, value);
  }
  for (const PastInode* past : sorted) {
    for (const auto& [offset, extent] : past->extents) {
      if (extent) {
        state.PutExtent(past->ino, *extent);
      } else {
        state.EraseExtent(past->ino, {.offset = offset});
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
