#include "journal/support/filesystem_kind.h"

#include <linux/magic.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace txfs {
namespace {

constexpr std::array<uint32_t, 11> kServedElsewhere = {
    NFS_SUPER_MAGIC,  SMB_SUPER_MAGIC,  SMB2_SUPER_MAGIC, CIFS_SUPER_MAGIC,
    V9FS_MAGIC,       AFS_SUPER_MAGIC,  AFS_FS_MAGIC,     CODA_SUPER_MAGIC,
    CEPH_SUPER_MAGIC, FUSE_SUPER_MAGIC, NCP_SUPER_MAGIC,
};

}  // namespace

bool IsServedElsewhere(const struct statfs& filesystem) {
  return std::ranges::count(kServedElsewhere,
                            static_cast<uint32_t>(filesystem.f_type)) != 0;
}

}  // namespace txfs
