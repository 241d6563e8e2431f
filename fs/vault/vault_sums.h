#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fs/vault/vault_manifest.h"
#include "fs/vault/vaults.h"
#include "journal/support/bytes.h"
#include "journal/support/result.h"

namespace txfs {

/// Largest piece of a file with one checksum, bytes.
inline constexpr uint64_t kMaxSumPiece = uint64_t{64} << 20;

/// A piece of a file with its checksum.
struct SumPiece {
  uint64_t offset = 0;
  uint64_t length = 0;
  uint64_t checksum = 0;

  bool operator==(const SumPiece&) const = default;
};

/// The known content of one regular file in a vault. Steps of the commit or of
/// an undo move the file, but do not change its content.
struct ContentSum {
  std::string mount, path;  ///< as in a Spot, when the sum was made
  uint64_t ino = 0;
  uint64_t size = 0;
  Timestamp mtime;  ///< a file with another mtime has other content
  /// The bytes in no piece are zeros; else they are unknown.
  bool whole = true;
  std::vector<SumPiece> pieces;

  bool operator==(const ContentSum&) const = default;
};

/// The sums of a vault.
struct VaultSums {
  /// Id of the commit or undo whose manifest has all its sums; empty: none.
  std::string complete_for;
  std::vector<ContentSum> sums;

  bool operator==(const VaultSums&) const = default;
};

/// Computes the sum of `file`, without reading its holes. Calls `stop` between
/// the pieces; ECANCELED if it returns true.
Result<ContentSum> SumContent(int file, uint64_t size,
                              const std::function<bool()>& stop);

/// Whether `file` has the content of `sum`.
Result<bool> HasContent(int file, const ContentSum& sum);

/// Empty if there are none yet. EBADMSG; EPROTONOSUPPORT for a newer version.
Result<VaultSums> ReadSums(const Vault& vault);
/// Whether the vault's sums are marked complete for `id`. Does not read the
/// sums.
[[nodiscard]] bool HasCompleteSums(const Vault& vault, const std::string& id);
/// Writes the first sums of a vault; durable together with the vault.
Status MakeSums(const Vault& vault, const VaultSums& sums);
/// Replaces the sums of a vault, durably.
Status ReplaceSums(const Vault& vault, const VaultSums& sums);

/// A file whose content differs from its sum.
struct OtherContent {
  std::string mount, path;  ///< as in a Spot
  std::string what;         ///< "has other content", or why it cannot be read
};

/// Checks the files that are where they were when their sums were made; in a
/// copy of the store (`is_copy`), without comparing inode numbers. Adds the
/// size of each file that is read to `checked`.
Result<std::vector<OtherContent>> FindOtherContent(
    const Vault& vault, const std::vector<ContentSum>& sums, bool is_copy,
    uint64_t* checked = nullptr);

/// The files of a manifest, split by whether they have a sum.
struct SumsByFile {
  std::vector<ContentSum> found;
  /// Files that need a sum. Those with other hard links do not: changes through
  /// these are not damage.
  std::vector<const VaultEntry*> missing;
};
[[nodiscard]] SumsByFile MatchSums(const VaultManifest& manifest,
                                   const VaultSums& sums);

/// New sums for files that lacked them.
struct NewSums {
  std::vector<ContentSum> sums;
  bool complete = true;  ///< each file has one
};

/// Computes sums for `files`, which are entries of the manifest of the last
/// commit or undo that changed the vault. Ends early if `stop` returns true.
NewSums SumFiles(const Vault& vault,
                 const std::vector<const VaultEntry*>& files,
                 const std::function<bool()>& stop);

/// Adds those of `more` that `sums` does not have yet: another daemon may have
/// made the same.
void AddSums(VaultSums& sums, std::vector<ContentSum> more);

/// Encodes per docs/format.md, "Content sums".
[[nodiscard]] Bytes EncodeSums(const VaultSums& sums);
Result<VaultSums> DecodeSums(ByteSpan in);

}  // namespace txfs
