#include "fs/follow_copy.h"

#include <unistd.h>

#include <utility>
#include <vector>

#include "journal/image.h"

namespace txfs {
namespace {

/// A record of the journal stays small beside its ring.
constexpr size_t kEditsPerChange = 100;

bool IsCopyOf(const BaseOrigin& origin, const struct stat& st) {
  if (origin.mode != st.st_mode) return false;
  if (S_ISDIR(st.st_mode)) return true;
  return origin.size == static_cast<uint64_t>(st.st_size) &&
         origin.mtime == Timestamp::From(st.st_mtim);
}

std::optional<InodeEdit> EditOf(Ino ino, const InodeRecord& record,
                                const BaseDirectory& base) {
  if (!record.base) return {};
  const auto st = base.Stat(record.base->path);
  if (!st || !IsCopyOf(*record.base, *st)) return {};
  InodeRecord after = record;
  after.base->dev = base.RelativeDevice(st->st_dev);
  after.base->ino = st->st_ino;
  after.base->size = static_cast<uint64_t>(st->st_size);
  after.base->uid = st->st_uid;
  after.base->gid = st->st_gid;
  after.base->mtime = Timestamp::From(st->st_mtim);
  after.base->ctime = Timestamp::From(st->st_ctim);
  if (after == record) return {};
  return InodeEdit{.ino = ino, .before = record, .after = std::move(after)};
}

Status Append(Journal& journal, std::vector<Edit> edits) {
  Change change{.op = Op::kFollow,
                .time = Clock::System().Now(),
                .pid = static_cast<uint32_t>(::getpid()),
                .uid = ::geteuid(),
                .exe = "txfs",
                .edits = std::move(edits)};
  TRY(journal.Append(change));
  return {};
}

}  // namespace

Status FollowCopy(Journal& journal, const BaseDirectory& base) {
  Image image;
  TRY(journal.Load(image));
  std::vector<Edit> edits;
  for (const auto& [ino, record] : image.inodes) {
    auto edit = EditOf(ino, record, base);
    if (edit) edits.emplace_back(*std::move(edit));
    if (edits.size() == kEditsPerChange) {
      TRY(Append(journal, std::exchange(edits, {})));
    }
  }
  if (!edits.empty()) TRY(Append(journal, std::move(edits)));
  return journal.Drain();
}

}  // namespace txfs
