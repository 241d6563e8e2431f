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

/// A longer run of bytes has no checksum, bytes.
inline constexpr uint64_t kMaxSumPiece = uint64_t{64} << 20;

/// A run of bytes of a file, and its checksum.
struct SumPiece {
  uint64_t offset = 0;
  uint64_t length = 0;
  uint64_t checksum = 0;

  bool operator==(const SumPiece&) const = default;
};

/// What is known of the content of one regular file of a vault. It keeps its
/// content wherever the steps of the commit, or of an undo, move it.
struct ContentSum {
  std::string mount, path;  ///< as in a Spot, when the sum was made
  uint64_t ino = 0;
  uint64_t size = 0;
  Timestamp mtime;  ///< one with another time is of another content
  /// What no piece has is zeros; else nothing is known of it.
  bool whole = true;
  std::vector<SumPiece> pieces;

  bool operator==(const ContentSum&) const = default;
};

/// Those of a vault.
struct VaultSums {
  /// The commit, or undo, for whose manifest no sum is missing; empty: none.
  std::string complete_for;
  std::vector<ContentSum> sums;

  bool operator==(const VaultSums&) const = default;
};

/// Reads `file`, but not its holes, a piece at a time. `stop` is asked between
/// them; ECANCELED when it says so.
Result<ContentSum> SumContent(int file, uint64_t size,
                              const std::function<bool()>& stop);

/// Whether `file` has the content that `sum` says.
Result<bool> HasContent(int file, const ContentSum& sum);

/// None when there are none yet. EBADMSG; EPROTONOSUPPORT for a newer version.
Result<VaultSums> ReadSums(const Vault& vault);
/// Whether they say that they are complete for `id`; without a look at the rest
/// of them.
[[nodiscard]] bool HasCompleteSums(const Vault& vault, const std::string& id);
/// The first of a vault; durable with it.
Status MakeSums(const Vault& vault, const VaultSums& sums);
/// Others in their place, durably.
Status ReplaceSums(const Vault& vault, const VaultSums& sums);

/// A file that has other content than its sum says.
struct OtherContent {
  std::string mount, path;  ///< as in a Spot
  std::string what;         ///< "has other content", or why it cannot be read
};

/// Of the files that are where they were when their sums were made. In a copy
/// of the store inode numbers are others. Adds to `checked` the bytes of each
/// file that is read.
Result<std::vector<OtherContent>> FindOtherContent(
    const Vault& vault, const std::vector<ContentSum>& sums, bool is_copy,
    uint64_t* checked = nullptr);

/// The sums of `manifest`, split by whether there is one.
struct SumsByFile {
  std::vector<ContentSum> found;
  /// Files that are to have one. Those that have other names are not: what is
  /// done under these is no damage.
  std::vector<const VaultEntry*> missing;
};
[[nodiscard]] SumsByFile MatchSums(const VaultManifest& manifest,
                                   const VaultSums& sums);

/// What was made of the sums that a vault lacks.
struct NewSums {
  std::vector<ContentSum> sums;
  bool complete = true;  ///< none is missing any more
};

/// Reads `files`, which are of the manifest of a commit, or undo, that left the
/// vault as it is. When `stop` says so the rest is missing.
NewSums SumFiles(const Vault& vault,
                 const std::vector<const VaultEntry*>& files,
                 const std::function<bool()>& stop);

/// Adds those of `more` that it has none for yet: another daemon may have made
/// the same.
void AddSums(VaultSums& sums, std::vector<ContentSum> more);

/// Encodes per docs/format.md, "Content sums".
[[nodiscard]] Bytes EncodeSums(const VaultSums& sums);
Result<VaultSums> DecodeSums(ByteSpan in);

}  // namespace txfs
