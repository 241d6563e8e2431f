#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fs/base/base_directory.h"
#include "fs/vault/commit_step.h"
#include "journal/support/bytes.h"
#include "journal/support/result.h"
#include "journal/support/types.h"
#include "journal/support/unique_fd.h"

namespace txfs {

/// What a file in a vault is there for: the first letter of its name
/// (docs/format.md, "Commit plan").
enum class VaultSlot : char {
  kStaged = 'n',   ///< new, and what an exchange put in its place
  kTaken = 'd',    ///< taken away
  kMoving = 'm',   ///< a base object on its way to another name
  kHeld = 'h',     ///< a name that holds a file of several names
  kPatch = 'p',    ///< bytes that a patch writes
  kPatched = 'o',  ///< bytes that a patch overwrites
};

[[nodiscard]] std::string SlotName(VaultSlot slot, uint64_t number);
/// Whether `name` is one that SlotName makes.
[[nodiscard]] bool IsSlotName(std::string_view name);
/// Whether `name` is one of such a slot.
[[nodiscard]] bool IsSlot(VaultSlot slot, std::string_view name);
/// For a file that was moved and replaced: the name of what moved, by that of
/// what took its place.
[[nodiscard]] std::string MovingSlotOf(std::string_view staged);

/// In a vault: what is known of the content of its files
/// (fs/vault/vault_sums.h).
inline constexpr const char* kSumsFile = "sums";

/// The open directories of one commit's vault, by mount: "" is the base's own
/// filesystem (BaseMounts).
using Vault = std::map<std::string, UniqueFd>;

/// Where `spot`, which is in the vault, is looked up.
[[nodiscard]] Result<int> DirectoryOf(const Vault& vault, const Spot& spot);

/// Times of change of a vault's directories; others mean that files came or
/// went. Empty: they are not known.
using VaultStamp = std::vector<Timestamp>;

/// Whether what happens from now on gives another stamp.
[[nodiscard]] bool IsOld(const VaultStamp& stamp);

/// The vaults of a store's commits, by id (docs/recovery.md, "Words").
///
/// They lie in the store where its files can be renamed into the workspace,
/// else in a directory in the workspace's root, which counts only if the store
/// has its identity. For each filesystem mounted in the workspace that the
/// commit changes, a vault has a part in the root of that.
class Vaults {
 public:
  /// `store`: the store's directory. Both outlive this.
  Vaults(const BaseDirectory& base, int store);

  /// Makes vault `id`, empty.
  Result<Vault> Make(const std::string& id) const;
  /// Makes its parts on `mounts`. Once for each vault.
  Status AddParts(const std::string& id, const std::set<std::string>& mounts,
                  Vault& vault) const;
  /// Opens vault `id` with all its parts. Says which filesystem is not there.
  Result<Vault> Open(const std::string& id) const;
  /// Ids of those there are.
  Result<std::vector<std::string>> Ids() const;
  /// Bytes of blocks in vault `id`; 0 when there is none.
  Result<uint64_t> Bytes(const std::string& id) const;
  /// Removes it with its parts. What is on a filesystem that is not mounted
  /// stays for another time, and so does the id.
  Status Remove(const std::string& id) const;

  /// A name for a file in vault `id` that OpenFile and Read take.
  static std::string PathOf(const std::string& id, const Spot& spot);
  Result<SharedFd> OpenFile(const std::string& path) const;
  [[nodiscard]] VaultStamp StampOf(const std::string& id) const;
  /// Shows `visit` every regular file in vault `id` that can be found, with its
  /// inode number: its path as OpenFile takes it. Also those in directories
  /// that were taken away.
  void ForEachFile(
      const std::string& id,
      const std::function<void(std::string path, uint64_t ino)>& visit) const;
  /// Reads a file, as ReadFully.
  Result<size_t> Read(const std::string& path, uint64_t offset,
                      MutableByteSpan out) const;

 private:
  Result<UniqueFd> OpenParent(bool make) const;
  /// The directory in the workspace's root. ENOENT when there is none that the
  /// store knows.
  Result<UniqueFd> OpenPlace() const;
  Result<UniqueFd> MakePlace() const;
  Status RemovePlaceIfEmpty() const;
  static Result<std::vector<std::string>> PartsOf(int vault);
  Status MakePart(const std::string& id, const std::string& mount) const;
  Result<UniqueFd> OpenPart(const std::string& id,
                            const std::string& mount) const;
  Result<bool> RemovePart(const std::string& id,
                          const std::string& mount) const;
  /// The directories of vault `id`, each with the directory that its path is
  /// of, and what OpenFile wants before a path in it.
  void ForEachDirectory(
      const std::string& id,
      const std::function<void(const BaseDirectory& in, const std::string& path,
                               const char* prefix)>& visit) const;

  const BaseDirectory& base_;
  int store_;
  bool in_store_;
};

/// The mounts on which a vault has parts, as its list of them has them
/// (docs/format.md, "Store"). EBADMSG.
Result<std::vector<std::string>> DecodeParts(std::string_view list);

/// Makes a directory in another one without a trace in the times of that.
Status MakeUnseen(int directory, const char* name);

}  // namespace txfs
