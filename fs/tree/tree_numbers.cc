#include <sys/stat.h>

#include "fs/tree/tree.h"

namespace txfs {
namespace {

/// The number of a base object, as long as no other inode has it.
uint64_t OwnNumber(uint64_t dev, uint64_t ino) {
  if (dev == 0) return ino;
  // An object on a filesystem mounted in the base: high bits, which inode
  // numbers on disk do not reach, separate it from the root's.
  return ino ^ ((1 + dev % 1023) << 41);
}

}  // namespace

/// Tools treat two files with one number as hard links, and tree walks stop at
/// a directory with a known number.
void Tree::Number(Inode& inode) {
  if (inode.number != 0) return;
  const auto& base = inode.record.base;
  inode.number =
      base ? FreeNumber({base->dev, base->ino}) : kNewInodeBit | Raw(inode.ino);
  if (Inode* former = numbers_.Find(inode.number)) numbers_.Erase(*former);
  numbers_.Insert(inode);
}

/// Whether a list of its directory shows another number once it is gone.
bool Tree::HasOtherNumber(const Inode& inode) {
  const auto& base = inode.record.base;
  return !base || inode.number != OwnNumber(base->dev, base->ino);
}

/// Before an inode with such a number is gone: lists of `parent`, also those of
/// the kernel, stay true.
void Tree::KeepNumber(const Inode& inode, Inode& parent) {
  const auto& base = inode.record.base;
  if (!base || inode.IsOrphan()) {
    ++parent.names.Make().version;
    return;
  }
  const std::scoped_lock lock(told_mutex_);
  told_numbers_[{base->dev, base->ino}] = inode.number;
  told_any_ = true;
}

void Tree::DropNumber(const Inode& inode) { numbers_.Erase(inode); }

/// The inode that has a number has only this one, so the number that follows
/// from its Ino is free, or leads to a third inode.
uint64_t Tree::FreeNumber(BaseKey object) const {
  const uint64_t own = OwnNumber(object.dev, object.ino);
  if (const uint64_t told = ToldNumber(object); told != own) {
    const Inode* holder = numbers_.Find(told);
    if (holder == nullptr || IsFormer(*holder, object)) return told;
  }
  uint64_t number = own;
  for (;;) {
    const Inode* holder = numbers_.Find(number);
    if (holder == nullptr || IsFormer(*holder, object)) break;
    number = kNewInodeBit | kOtherInodeBit | Raw(holder->ino);
  }
  if (number != own) {
    const std::scoped_lock lock(told_mutex_);
    told_numbers_[object] = number;
    told_any_ = true;
  }
  return number;
}

/// The kernel keeps lists of directories, and nothing tells it that the inode
/// that had the number of one of their files is gone.
uint64_t Tree::ToldNumber(BaseKey object) const {
  if (!told_any_) return OwnNumber(object.dev, object.ino);
  const std::scoped_lock lock(told_mutex_);
  const auto told = told_numbers_.find(object);
  return told == told_numbers_.end() ? OwnNumber(object.dev, object.ino)
                                     : told->second;
}

/// Whether the base file of `orphan` is `object`: an undo brought it back.
/// While it is open, the base cannot give its number to another file.
bool Tree::IsFormer(const Inode& orphan, BaseKey object) const {
  if (!orphan.IsOrphan() || !orphan.orphan->pinned_base) return false;
  struct stat st{};
  return ::fstat(orphan.orphan->pinned_base->get(), &st) == 0 &&
         BaseKey{RelativeDevice(st.st_dev), st.st_ino} == object;
}

uint64_t Tree::NumberOf(const Inode& directory, const BaseEntry& entry) const {
  const BaseKey key{DeviceOf(directory), entry.ino};
  if (entry.type != FileType::kDirectory && base_files_.Find(key) != nullptr) {
    const bool has_others = base_files_.FindIf(key, [](const Inode& known) {
      return known.record.base->nlink > 1;
    }) != nullptr;
    const std::string path = JoinPath(directory.record.base->path, entry.name);
    const Inode* inode = FindBaseFile(path, {key, entry.type, has_others});
    if (inode != nullptr && !inode->IsOrphan()) return inode->number;
  }
  return FreeNumber(key);
}

}  // namespace txfs
