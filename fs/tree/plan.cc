#include "fs/tree/plan.h"

#include <algorithm>

namespace txfs {

ExtentEdit PlanExtents(const Inode& inode, uint64_t from, uint64_t to,
                       const std::vector<Extent>& fresh) {
  ExtentEdit edit{.ino = inode.ino};
  auto at = inode.extents.upper_bound(from);
  if (at != inode.extents.begin() && std::prev(at)->second.end() > from) --at;
  for (; at != inode.extents.end() && at->second.offset < to; ++at) {
    edit.before.push_back(at->second);
  }
  if (!edit.before.empty() && edit.before.front().offset < from) {
    const Extent& first = edit.before.front();
    edit.after.push_back(Clip(first, first.offset, from));
  }
  edit.after.insert(edit.after.end(), fresh.begin(), fresh.end());
  if (!edit.before.empty() && edit.before.back().end() > to) {
    const Extent& last = edit.before.back();
    edit.after.push_back(Clip(last, to, last.end()));
  }
  return edit;
}

std::vector<Extent> ReleasedBy(const ExtentEdit& edit, uint64_t from,
                               uint64_t to) {
  std::vector<Extent> released;
  for (const Extent& extent : edit.before) {
    const uint64_t start = std::max(extent.offset, from);
    const uint64_t end = std::min(extent.end(), to);
    if (start < end && extent.content.segment != 0) {
      released.push_back(Clip(extent, start, end));
    }
  }
  return released;
}

Plan::Plan(Op op, const Caller& caller, std::string exe, Timestamp now) {
  change_.op = op;
  change_.time = now;
  change_.pid = caller.pid;
  change_.uid = caller.uid;
  change_.exe = std::move(exe);
  if (caller.known) user_ = caller.uid;
  inquiry_ = caller.inquiry;
}

Plan::Working& Plan::Edited(const Inode& inode) {
  for (Working& working : working_) {
    if (working.inode == &inode) return working;
  }
  // A change has few inodes; the reserve keeps references valid.
  working_.reserve(8);
  return working_.emplace_back(&inode, inode.attr());
}

Attr& Plan::EditAttr(const Inode& inode) { return Edited(inode).attr; }

void Plan::TouchDirectory(const Inode& directory) {
  Attr& attr = EditAttr(directory);
  attr.mtime = attr.ctime = now();
}

uint32_t CountSubdirectories(uint32_t nlink, int64_t delta) {
  // Filesystems that do not count subdirectories show 1 (btrfs).
  if (nlink < 2) return nlink;
  // Later subdirectories of the base are not in the count.
  return static_cast<uint32_t>(std::max<int64_t>(nlink + delta, 2));
}

void Plan::CountSubdirectory(const Inode& directory, int delta) {
  if (delta == 0) return;
  Attr& attr = EditAttr(directory);
  attr.nlink = CountSubdirectories(attr.nlink, delta);
}

void Plan::AddInode(Ino ino, InodeRecord record) {
  head_.push_back(InodeEdit{ino, std::nullopt, std::move(record)});
}

void Plan::AddXattr(Ino ino, std::string name, std::string value) {
  tail_.push_back(
      XattrEdit{ino, std::move(name), std::nullopt, std::move(value)});
}

void Plan::DropContent(const Inode& inode) {
  if (!inode.extents.empty()) {
    ExtentEdit edit{.ino = inode.ino};
    for (const auto& [offset, extent] : inode.extents) {
      edit.before.push_back(extent);
    }
    tail_.push_back(std::move(edit));
  }
  for (const auto& [name, value] : *inode.own->xattrs) {
    tail_.push_back(XattrEdit{inode.ino, name, value, std::nullopt});
  }
}

void Plan::DropLink(const Inode& inode) {
  Attr& attr = EditAttr(inode);
  attr.ctime = now();
  attr.nlink = inode.IsDirectory() ? 0 : attr.nlink - 1;
  if (attr.nlink != 0) return;
  DropContent(inode);
  if (!inode.record.base) dropped_.push_back(&inode);
}

void Plan::SetDentry(const Inode& directory, std::string_view name,
                     DentryValue after) {
  DentryValue before;
  const auto slot = directory.names->slots.find(name);
  if (slot != directory.names->slots.end()) before = slot->second.upper;
  dentries_.push_back(
      DentryEdit{directory.ino, std::string(name), before, after});
}

void Plan::SetExtents(ExtentEdit edit) {
  if (!edit.before.empty() || !edit.after.empty()) {
    tail_.push_back(std::move(edit));
  }
}

void Plan::SetXattr(const Inode& inode, std::string name,
                    std::optional<std::string> after) {
  std::optional<std::string> before;
  const auto found = inode.own->xattrs->find(name);
  if (found != inode.own->xattrs->end()) before = found->second;
  tail_.push_back(XattrEdit{inode.ino, std::move(name), std::move(before),
                            std::move(after)});
}

Change Plan::Finish() && {
  std::vector<Edit>& edits = change_.edits;
  edits = std::move(head_);
  for (Working& working : working_) {
    const Inode& inode = *working.inode;
    InodeRecord record = inode.record;
    if (working.origin) record.base->path = *working.origin;
    if (!inode.upper) {
      edits.push_back(InodeEdit{inode.ino, std::nullopt, std::move(record)});
    } else if (working.origin) {
      edits.push_back(InodeEdit{inode.ino, inode.record, std::move(record)});
    }
    if (working.attr == inode.attr()) continue;
    edits.push_back(AttrEdit{inode.ino, inode.attr(), working.attr});
  }
  // The removal of the record follows nlink 0, which makes the tree keep the
  // content for open descriptors.
  for (const Inode* inode : dropped_) {
    InodeRecord last = inode->record;
    for (const Working& working : working_) {
      if (working.inode == inode) last.attr = working.attr;
    }
    edits.push_back(InodeEdit{inode->ino, std::move(last), std::nullopt});
  }
  std::ranges::move(dentries_, std::back_inserter(edits));
  std::ranges::move(tail_, std::back_inserter(edits));
  return std::move(change_);
}

}  // namespace txfs
