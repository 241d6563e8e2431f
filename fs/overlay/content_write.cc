#include "fs/overlay/content_write.h"

#include "fs/origin/preimages.h"

namespace txfs {

std::optional<BaseOrigin> PreimageOf(const Inode& inode) {
  const bool is_the_bases =
      inode.record.base && !inode.IsOrphan() && !inode.orphan->pinned_base &&
      inode.attr().type == FileType::kRegular && !inode.ContentChanged() &&
      inode.record.base->size <= Preimages::kMaxSize;
  return is_the_bases ? inode.record.base : std::nullopt;
}

void ReleaseAll(Journal& journal, const std::vector<Extent>& extents, Lsn lsn) {
  for (const Extent& extent : extents) {
    if (extent.content.segment != 0) journal.Release(extent, lsn);
  }
}

}  // namespace txfs
