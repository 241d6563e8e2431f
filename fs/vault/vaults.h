#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fs/base/base_directory.h"
#include "fs/host/mount_table.h"
#include "fs/vault/commit_step.h"
#include "journal/support/bytes.h"
#include "journal/support/result.h"
#include "journal/support/types.h"
#include "journal/support/unique_fd.h"

namespace txfs {

/// The purpose of a file in a vault: the first letter of its name
/// (docs/format.md, "Commit plan").
enum class VaultSlot : char {
  kStaged = 'n',   ///< new; after an exchange, the object that it replaced
  kTaken = 'd',    ///< removed from the base
  kMoving = 'm',   ///< a base object during its move to another name
  kHeld = 'h',     ///< a hard link that keeps a file with several names
  kPatch = 'p',    ///< bytes that a patch writes
  kPatched = 'o',  ///< bytes that a patch overwrites
};

[[nodiscard]] std::string SlotName(VaultSlot slot, uint64_t number);
/// Whether `name` has the form of a SlotName.
[[nodiscard]] bool IsSlotName(std::string_view name);
/// Whether `name` is of the slot `slot`.
[[nodiscard]] bool IsSlot(VaultSlot slot, std::string_view name);
/// Whether `spot` is of the slot `slot` of a vault.
[[nodiscard]] inline bool IsSlot(VaultSlot slot, const Spot& spot) {
  return spot.vault && IsSlot(slot, std::string_view(spot.path));
}
/// The slot of the object that moved away, from the slot of the object that
/// replaced it.
[[nodiscard]] std::string MovingSlotOf(std::string_view staged);

/// A name in the base directory of an object, reserved for txfs, instead of a
/// slot in the vault: for directories that only may be renamed within their
/// parent. `ino`: st_ino of the object.
[[nodiscard]] std::string BesideName(VaultSlot slot, uint64_t ino);
/// Whether `spot` is of a BesideName.
[[nodiscard]] bool IsBeside(const Spot& spot);
[[nodiscard]] bool IsBeside(VaultSlot slot, const Spot& spot);
/// Whether `spot` keeps objects for txfs: in the vault, or beside an object.
[[nodiscard]] inline bool IsKeeping(const Spot& spot) {
  return spot.vault || IsBeside(spot);
}

/// Name of the file with a vault's sums (fs/vault/vault_sums.h).
inline constexpr const char* kSumsFile = "sums";

/// The open directories of one commit's vault, by mount; "" is the filesystem
/// of the base's root (BaseMounts).
using Vault = std::map<std::string, UniqueFd>;

/// The directory in which `spot`, a name in the vault, lies.
[[nodiscard]] Result<int> DirectoryOf(const Vault& vault, const Spot& spot);

/// The ctimes of a vault's directories. A changed stamp means that files were
/// added or removed. Empty: unknown.
using VaultStamp = std::vector<Timestamp>;

/// Whether every later change gives another stamp.
[[nodiscard]] bool IsOld(const VaultStamp& stamp);

/// The vaults of a store's commits, by id (docs/recovery.md, "Words").
///
/// They lie in the store if its files can be renamed into the workspace; else
/// in a directory in the workspace's root whose identity the store has
/// recorded. A vault also has a part in the root of each filesystem mounted in
/// the workspace that the commit changes.
class Vaults {
 public:
  /// `store`: the store's directory. Both outlive this.
  Vaults(const BaseDirectory& base, int store);

  /// Makes the empty vault `id`.
  Result<Vault> Make(const std::string& id) const;
  /// Makes its parts on `mounts`. Call it at most once for each vault.
  Status AddParts(const std::string& id, const std::set<std::string>& mounts,
                  Vault& vault) const;
  /// Opens vault `id` with all its parts. ENODEV names a filesystem that is not
  /// mounted.
  Result<Vault> Open(const std::string& id) const;
  /// Ids of all vaults.
  Result<std::vector<std::string>> Ids() const;
  /// Bytes of blocks in vault `id`; 0 when there is none.
  Result<uint64_t> Bytes(const std::string& id) const;
  /// Removes vault `id` with its parts. If a filesystem is not mounted, its
  /// part stays, and so does the id; call Remove again later.
  Status Remove(const std::string& id) const;

  /// Removes the empty directory `ino` that a commit kept in the base at the
  /// BesideName `path`. Leaves anything else there.
  Status RemoveBeside(const std::string& path, uint64_t ino) const;

  /// The path of a file in vault `id` for OpenFile and Read.
  static std::string PathOf(const std::string& id, const Spot& spot);
  Result<SharedFd> OpenFile(const std::string& path) const;
  [[nodiscard]] VaultStamp StampOf(const std::string& id) const;
  /// Calls `visit` with path (for OpenFile) and st_ino of every regular file
  /// that can be found in vault `id`, also in directories that the commit
  /// removed.
  void ForEachFile(
      const std::string& id,
      const std::function<void(std::string path, uint64_t ino)>& visit) const;
  /// Reads from a file, as ReadFully.
  Result<size_t> Read(const std::string& path, uint64_t offset,
                      MutableByteSpan out) const;

 private:
  Result<UniqueFd> OpenParent(bool make) const;
  /// The directory in the workspace's root. ENOENT if there is none that the
  /// store has recorded.
  Result<UniqueFd> OpenPlace() const;
  Result<UniqueFd> MakePlace() const;
  Status RemovePlaceIfEmpty() const;
  static Result<std::vector<std::string>> PartsOf(int vault);
  Status MakePart(const std::string& id, const std::string& mount) const;
  /// The txfs mount whose root is the directory `mount`; none: it is another.
  [[nodiscard]] std::optional<MountEntry> FindTxfsMountAt(
      const std::string& mount) const;
  Result<UniqueFd> OpenPart(const std::string& id,
                            const std::string& mount) const;
  Result<bool> RemovePart(const std::string& id,
                          const std::string& mount) const;
  /// Calls `visit` with each directory of vault `id`: `path` in the directory
  /// `in`, and the prefix of OpenFile for paths in it.
  void ForEachDirectory(
      const std::string& id,
      const std::function<void(const BaseDirectory& in, const std::string& path,
                               const char* prefix)>& visit) const;

  const BaseDirectory& base_;
  int store_;
  bool in_store_;
};

/// Decodes a vault's list of the mounts on which it has parts (docs/format.md,
/// "Store"). EBADMSG.
Result<std::vector<std::string>> DecodeParts(std::string_view list);

/// Makes a directory and restores the times of its parent directory.
Status MakeUnseen(int directory, const char* name);

}  // namespace txfs
