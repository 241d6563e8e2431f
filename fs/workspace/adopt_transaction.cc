#include "fs/workspace/adopt_transaction.h"

#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fs/host/xattrs.h"
#include "journal/image.h"

namespace txfs {
namespace {

bool IsCopyOf(const BaseOrigin& origin, const struct stat& st) {
  if (origin.mode != st.st_mode) return false;
  if (S_ISDIR(st.st_mode)) return true;
  return origin.size == static_cast<uint64_t>(st.st_size) &&
         origin.mtime == Timestamp::From(st.st_mtim);
}

void Note(const struct stat& st, const BaseDirectory& base,
          BaseOrigin& origin) {
  origin.dev = base.RelativeDevice(st.st_dev);
  origin.ino = st.st_ino;
  origin.size = static_cast<uint64_t>(st.st_size);
  origin.uid = st.st_uid;
  origin.gid = st.st_gid;
  origin.mtime = Timestamp::From(st.st_mtim);
  origin.ctime = Timestamp::From(st.st_ctim);
}

class Adoption {
 public:
  Adoption(const Image& image, const BaseDirectory& base, NotedObjects objects)
      : image_(image), base_(base), objects_(objects) {}

  std::vector<Edit> Edits() const {
    std::vector<Edit> edits;
    for (const auto& [ino, record] : image_.inodes) {
      InodeRecord after = Adopted(ino, record);
      if (after == record) continue;
      edits.emplace_back(
          InodeEdit{.ino = ino, .before = record, .after = std::move(after)});
    }
    for (const auto& [key, value] : image_.xattrs) {
      // No mount makes others.
      if (key.second.starts_with("user.")) continue;
      edits.emplace_back(XattrEdit{.ino = key.first,
                                   .name = key.second,
                                   .before = value,
                                   .after = InBase(key.first, key.second)});
    }
    return edits;
  }

 private:
  /// The access control list that the base object has now, if any.
  std::optional<std::string> InBase(Ino ino, const std::string& name) const {
    const auto found = image_.inodes.find(ino);
    const bool may_have =
        IsAclName(name) && found != image_.inodes.end() && found->second.base;
    if (!may_have) return std::nullopt;
    auto acl = base_.GetXattr(found->second.base->path, name);
    if (!acl) return std::nullopt;
    return std::move(*acl);
  }

  InodeRecord Adopted(Ino ino, const InodeRecord& record) const {
    InodeRecord after = record;
    after.attr.uid = ::geteuid();
    after.attr.gid = ::getegid();
    if (record.base) {
      const auto st = base_.Stat(record.base->path);
      if (st) {
        after.attr.uid = st->st_uid;
        after.attr.gid = st->st_gid;
      }
      const bool follows = objects_ == NotedObjects::kOfOriginal && st &&
                           IsCopyOf(*record.base, *st);
      if (follows) Note(*st, base_, *after.base);
    }
    if (record.attr.type == FileType::kRegular && !IsUnchanged(ino, record)) {
      after.attr.mode &= ~uint32_t{S_ISUID | S_ISGID};
    }
    return after;
  }

  /// In content and mode.
  bool IsUnchanged(Ino ino, const InodeRecord& record) const {
    const auto extent = image_.extents.lower_bound({ino, 0});
    const bool has_extents =
        extent != image_.extents.end() && extent->first.first == ino;
    return record.base && !has_extents &&
           record.attr.size == record.base->size &&
           record.attr.base_limit >= record.attr.size &&
           ((record.attr.mode ^ record.base->mode) & 07777) == 0;
  }

  const Image& image_;
  const BaseDirectory& base_;
  const NotedObjects objects_;
};

}  // namespace

Status AdoptTransaction(Journal& journal, const BaseDirectory& base,
                        NotedObjects objects) {
  Image image;
  TRY(journal.Load(image));
  const Change change{.op = Op::kFollow,
                      .time = Clock::System().Now(),
                      .pid = static_cast<uint32_t>(::getpid()),
                      .uid = ::geteuid(),
                      .exe = "txfs",
                      .edits = Adoption(image, base, objects).Edits()};
  TRY(journal.Settle(change));
  return journal.Drain();
}

}  // namespace txfs
