#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fs/vaults.h"
#include "journal/base/bytes.h"
#include "journal/base/result.h"
#include "journal/base/types.h"

namespace txfs {

/// Something in a vault, as it is when the commit is done.
struct VaultEntry {
  std::string mount, path;  ///< as in a Spot
  uint64_t ino = 0;
  uint32_t mode = 0;  ///< with S_IF* bits
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t size = 0;  ///< of a directory 0
  Timestamp mtime;
  /// A file that has a name elsewhere, too: what is done there is no damage.
  bool shared = false;
  /// A directory that could not be looked into.
  bool sealed = false;

  bool operator==(const VaultEntry&) const = default;
};

/// All that a vault has, by mount and path.
using VaultManifest = std::vector<VaultEntry>;

/// Reads names and attributes, and no content.
Result<VaultManifest> TakeManifest(const Vault& vault);

/// What is no longer as `manifest` says, each as "d0/file is missing". Changes
/// of content that leave size and time of modification alone are not seen.
Result<std::vector<std::string>> CompareManifest(const Vault& vault,
                                                 const VaultManifest& manifest);

/// Encodes per docs/format.md, "Vault manifest".
[[nodiscard]] Bytes EncodeManifest(const VaultManifest& manifest);
/// EBADMSG; EPROTONOSUPPORT for a newer version.
Result<VaultManifest> DecodeManifest(ByteSpan in);

}  // namespace txfs
