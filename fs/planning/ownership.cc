#include "fs/planning/ownership.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/base/base_lock.h"
#include "fs/base/owner_access.h"
#include "fs/host/process_identity.h"
#include "journal/support/file.h"

namespace txfs {

Ownership::Ownership(Frozen& frozen, bool asks)
    : frozen_(frozen), asks_(asks), user_(::geteuid()), groups_(OwnGroups()) {}

bool Ownership::MaySetGroup(uint32_t gid) const {
  return user_ == 0 || groups_.contains(gid);
}

bool Ownership::MayReplace(const BaseOrigin& file) const {
  if (user_ != 0 && (file.uid != user_ || !MaySetGroup(file.gid))) return false;
  const auto parent =
      frozen_.base.OpenDirectory(std::string(ParentPath(file.path)));
  if (!parent) return true;
  const int dir = (*parent)->get();
  return MayWrite(dir, ".") && LockOf(dir, ".") == BaseLock::kNone &&
         LockOf(dir, std::string(BaseName(file.path))) == BaseLock::kNone;
}

std::string Ownership::FindNest(const Inode& inode) {
  const Attr& attr = inode.attr();
  const bool needs_one = attr.type == FileType::kRegular &&
                         !inode.record.base && !inode.links.empty() &&
                         !MaySetGroup(attr.gid);
  if (!needs_one) return {};
  const Inode* at = frozen_.tree.Find(inode.links.front().parent);
  const uint64_t device = at != nullptr ? frozen_.tree.DeviceOf(*at) : 0;
  while (at != nullptr && frozen_.tree.DeviceOf(*at) == device) {
    const auto& base = at->record.base;
    const bool passes_on =
        base && base->gid == attr.gid && (base->mode & S_ISGID) != 0;
    if (passes_on && MakesFilesOf(base->path, attr.gid)) return base->path;
    if (at->links.empty()) break;
    at = frozen_.tree.Find(at->links.front().parent);
  }
  return {};
}

bool Ownership::MakesFilesOf(const std::string& directory, uint32_t gid) {
  const auto [found, is_new] = nests_.try_emplace(directory, false);
  if (!is_new) return found->second;
  const auto opened = frozen_.base.OpenDirectory(directory);
  if (!opened) return false;
  struct stat st{};
  if (asks_) {
    found->second = ::fstat((*opened)->get(), &st) == 0 && st.st_gid == gid &&
                    (st.st_mode & S_ISGID) != 0 &&
                    MayWrite((*opened)->get(), ".");
    return found->second;
  }
  const auto file = OpenAt((*opened)->get(), ".", O_TMPFILE | O_RDWR, 0600);
  found->second = file && ::fstat(file->get(), &st) == 0 && st.st_gid == gid;
  return found->second;
}

void Ownership::Note(const Inode& inode, const std::string& path, bool is_made,
                     const std::string& nest) {
  if (user_ == 0) return;
  const Attr& attr = inode.attr();
  const BaseOrigin* const stays =
      is_made || !inode.record.base ? nullptr : &*inode.record.base;
  if (attr.uid != (stays != nullptr ? stays->uid : user_)) owners_.Add(path);
  const bool keeps_group =
      (stays != nullptr && stays->gid == attr.gid) || !nest.empty() ||
      ((stays == nullptr || stays->uid == user_) && MaySetGroup(attr.gid));
  if (!keeps_group) of_group_.Add(path);
}

void Ownership::Lost::Add(const std::string& path) {
  if (count++ == 0) first = path;
}

std::vector<std::string> Ownership::Withheld() const {
  std::vector<std::string> sentences;
  const auto add = [&](const char* kind, const Lost& lost) {
    if (lost.count == 0) return;
    std::string sentence = std::string(kind) + " not committed: " + lost.first;
    if (lost.count > 1) {
      sentence += " and " + std::to_string(lost.count - 1) + " more";
    }
    sentences.push_back(std::move(sentence));
  };
  add("owner", owners_);
  add("group", of_group_);
  return sentences;
}

}  // namespace txfs
