#include "fs/overlay/new_object.h"

#include <sys/stat.h>

#include "fs/host/xattrs.h"
#include "fs/posix/acl.h"

namespace txfs {

InodeRecord NewRecord(FileType type, uint32_t mode) {
  InodeRecord record;
  record.attr.type = type;
  record.attr.mode = mode & 07777;
  record.attr.nlink = type == FileType::kDirectory ? 2 : 1;
  return record;
}

std::map<std::string, std::string> InheritAcl(
    const std::optional<std::string>& list, const Caller& caller, Attr& attr) {
  if (attr.type == FileType::kSymlink) return {};
  const auto acl = list ? ModeOfAcl(*list) : std::nullopt;
  if (!acl) {
    attr.mode &= ~(caller.umask & 0777);
    return {};
  }
  std::map<std::string, std::string> lists;
  attr.mode &= ~uint32_t{0777} | acl->bits;
  if (!acl->is_minimal) lists[kAccessAcl] = AclWithMode(*list, attr.mode);
  if (attr.type == FileType::kDirectory) lists[kDefaultAcl] = *list;
  attr.xattrs_owned = !lists.empty();
  return lists;
}

void SetOwner(InodeRecord& record, const Inode& directory,
              const Caller& caller) {
  Attr& attr = record.attr;
  attr.uid = caller.uid;
  attr.gid = caller.gid;
  if ((directory.attr().mode & S_ISGID) == 0) return;
  attr.gid = directory.attr().gid;
  if (attr.type == FileType::kDirectory) attr.mode |= S_ISGID;
}

}  // namespace txfs
