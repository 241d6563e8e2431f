#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fs/vault/vaults.h"
#include "journal/support/bytes.h"
#include "journal/support/result.h"
#include "journal/support/types.h"

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
  Timestamp ctime;  ///< of a directory 0; of a manifest of version 1, too
  /// A file that has a name elsewhere, too: what is done there is no damage.
  bool shared = false;
  /// A directory that could not be looked into.
  bool sealed = false;

  bool operator==(const VaultEntry&) const = default;
};

/// All that a vault has but its sums, by mount and path: its directory, whose
/// path is empty, and everything in it.
using VaultManifest = std::vector<VaultEntry>;

/// Reads names and attributes, and no content.
Result<VaultManifest> TakeManifest(const Vault& vault);

/// How a vault differs from its manifest.
struct VaultDifferences {
  /// It is not that vault but a copy of it, in which inode numbers are others:
  /// only the rest was compared.
  bool is_copy = false;
  std::vector<std::string> list;  ///< each as "d0/file is missing"
  /// Files of which only the ctime is another, and which have no sum:
  /// "d0/file".
  std::vector<std::string> doubts;
};

/// What is no longer as `manifest` says. Content is read only of files that
/// were touched and have a sum.
Result<VaultDifferences> CompareManifest(const Vault& vault,
                                         const VaultManifest& manifest);

/// What is at `path` of a vault's part on `mount`, for messages.
[[nodiscard]] std::string NameInVault(const std::string& mount,
                                      const std::string& path);

/// Encodes per docs/format.md, "Vault manifest".
[[nodiscard]] Bytes EncodeManifest(const VaultManifest& manifest);
/// EBADMSG; EPROTONOSUPPORT for a newer version.
Result<VaultManifest> DecodeManifest(ByteSpan in);

}  // namespace txfs
