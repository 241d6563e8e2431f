#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fs/vault/vaults.h"
#include "journal/support/bytes.h"
#include "journal/support/result.h"
#include "journal/support/types.h"

namespace txfs {

/// An object in a vault, as it is at the end of the commit.
struct VaultEntry {
  std::string mount, path;  ///< as in a Spot
  uint64_t ino = 0;
  uint32_t mode = 0;  ///< with S_IF* bits
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t size = 0;  ///< 0 for a directory
  Timestamp mtime;
  Timestamp ctime;  ///< 0 for a directory, and in a manifest of version 1
  /// A file with a hard link outside the vault: changes through it are not
  /// damage.
  bool shared = false;
  /// A directory that this process could not read.
  bool sealed = false;

  bool operator==(const VaultEntry&) const = default;
};

/// Everything in a vault except its sums, sorted by mount and path: the vault's
/// directories, whose path is empty, and all objects in them.
using VaultManifest = std::vector<VaultEntry>;

/// Reads names and attributes, and no content.
Result<VaultManifest> TakeManifest(const Vault& vault);

/// The differences between a vault and its manifest.
struct VaultDifferences {
  /// The vault is a copy, which has other inode numbers: these were not
  /// compared.
  bool is_copy = false;
  std::vector<std::string> list;  ///< each as "d0/file is missing"
  /// Files that have no sum and of which only the ctime differs: "d0/file".
  std::vector<std::string> doubts;
};

/// Compares a vault with `manifest`. Reads the content only of files whose
/// ctime differs and that have a sum.
Result<VaultDifferences> CompareManifest(const Vault& vault,
                                         const VaultManifest& manifest);

/// The name for messages of the object at `path` in a vault's part on `mount`.
[[nodiscard]] std::string NameInVault(const std::string& mount,
                                      const std::string& path);

/// Encodes per docs/format.md, "Vault manifest".
[[nodiscard]] Bytes EncodeManifest(const VaultManifest& manifest);
/// EBADMSG; EPROTONOSUPPORT for a newer version.
Result<VaultManifest> DecodeManifest(ByteSpan in);

}  // namespace txfs
