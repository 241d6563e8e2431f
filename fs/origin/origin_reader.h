#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fs/base/base_directory.h"
#include "fs/base/base_file_cache.h"
#include "fs/origin/moved_files.h"
#include "fs/origin/overwritten.h"
#include "fs/origin/preimages.h"
#include "fs/origin/vault_files.h"
#include "fs/tree/extent_map.h"
#include "journal/support/mutex.h"

namespace txfs {

/// The base file of an inode, and its recorded state.
struct OriginFile {
  Ino ino = kNoIno;
  std::string path;                      ///< recorded path, in the base
  std::vector<std::string> other_paths;  ///< other paths that may lead to it
  Fingerprint state;                     ///< the recorded state
  Told told;
  bool guarded = false;  ///< it must match the attributes that the kernel has
  bool must_match = false;  ///< `path` must lead to the same object
  bool changed = false;     ///< read the content of the recorded state
  bool may_follow = false;  ///< as OverwrittenContent::Noted
  SharedFd pinned;          ///< opened before a commit moved it
};

/// The object that has the base's extended attributes of an inode.
struct OriginXattrs {
  std::string path;                  ///< in the base
  std::optional<Fingerprint> state;  ///< the file to open, even if moved
  Ino ino = kNoIno;
  bool upper = false;
  std::optional<Told> told;  ///< the kernel's attributes, if guarded
  bool asks_acl = false;     ///< the kernel asks for the access control list
};

/// Reads base files in their recorded state: from the base, from the vaults to
/// which commits moved them, from pre-images, or by reverting the patches of
/// later commits. Thread-safe; its locks are leaves.
class OriginReader {
 public:
  /// Fails (ESTALE) if the open object with these attributes contradicts the
  /// ones that the kernel has for the inode. kNoAcl instead of the descriptor:
  /// without its access control list.
  using CheckTold =
      std::function<Status(Ino, const Told&, const struct stat&, int)>;
  static constexpr int kNoAcl = -1;

  /// `base` outlives this.
  OriginReader(const BaseDirectory& base, CheckTold check_told)
      : base_(base),
        check_told_(std::move(check_told)),
        moved_(base),
        files_(base) {}

  /// Call before the first read, or never.
  void UseVaults(std::unique_ptr<VaultFiles> vaults,
                 std::unique_ptr<OverwrittenContent> overwritten);
  /// Sets the start of the transaction.
  void BeginsAt(Timestamp time);
  /// Sets the place of new pre-images and returns the former; null: keeps none.
  std::shared_ptr<Preimages> UsePreimages(std::shared_ptr<Preimages> preimages);
  [[nodiscard]] std::shared_ptr<Preimages> preimages() const;

  // Content.
  /// Opens the base file, also if it was moved. ESTALE: the path leads to
  /// another object and the file is not found.
  Result<SharedFd> Open(const OriginFile& file);
  /// The content of the recorded state of a base file that has left it. Reads
  /// of one request share it.
  struct OldState {
    struct stat seen{};  ///< attributes at the time of this search
    std::optional<Bytes> preimage;
    OverwrittenContent::Patches patches;

    [[nodiscard]] bool exists() const { return preimage || !patches.empty(); }
  };
  /// Fills `out` from `offset`; zeros beyond the end of the file.
  Status Read(const OriginFile& file, OldState& old, uint64_t offset,
              MutableByteSpan out);
  /// Receives a range that may have nonzero bytes; returns whether to continue.
  using RangeVisitor = std::function<bool(Range)>;
  /// Visits the parts of `range` that are not holes of the file, in order.
  bool VisitData(const OriginFile& file, Range range,
                 const RangeVisitor& visit);
  /// The whole content in the recorded state, if it is known and fits in a
  /// record.
  std::optional<Bytes> OldContent(const BaseOrigin& origin);
  /// Reads a file of the base, as ReadFully.
  Result<size_t> ReadBase(const std::string& path, uint64_t offset,
                          MutableByteSpan out);
  /// EACCES: the daemon may not read the file of `ino`, so a commit could not
  /// keep the unchanged part of its content.
  Status CheckReadable(Ino ino, const BaseOrigin& origin);

  // Pre-images. Failures are ignored: correctness does not depend on them.
  /// Keeps the content of the file of `ino`.
  void KeepPreimage(Ino ino, const BaseOrigin& origin);
  /// Keeps the content of a base file whose name the transaction took.
  void KeepPreimage(const std::string& path, const struct stat& st);

  // Extended attributes, tracked ones only.
  /// Empty if the object is gone.
  Result<std::vector<std::string>> ListXattrs(const OriginXattrs& source);
  Result<std::string> GetXattr(const OriginXattrs& source,
                               const std::string& name);
  /// Empty if the object is gone.
  Result<std::map<std::string, std::string>> Xattrs(const OriginXattrs& source);
  /// The attributes of the base object at `path`; empty if it is gone. ESTALE:
  /// its st_ino is not `ino`.
  Result<std::map<std::string, std::string>> BaseXattrs(
      const std::string& path, std::optional<uint64_t> ino = {}) const;

  [[nodiscard]] BaseFileCache& files() { return files_; }
  [[nodiscard]] MovedFiles& moved() { return moved_; }

 private:
  [[nodiscard]] Fingerprint FingerprintOf(const struct stat& st) const;
  /// Opens a file that is not at its recorded path: in a vault or renamed.
  /// nullptr: not found.
  SharedFd FindElsewhere(const Fingerprint& state, const std::string& path);
  /// Finds the old state of the open base file `fd`. Call after the read.
  /// Searches again only if the file has changed since `old`.
  Status FindOldState(const OriginFile& file, int fd, OldState& old) const;
  /// EAGAIN: another process wrote to the file during the read.
  Status TryRead(const OriginFile& file, int fd, OldState& old, uint64_t offset,
                 MutableByteSpan out) const;
  [[nodiscard]] bool IsAsTold(const OriginFile& file, int fd) const;
  Result<SharedFd> OpenSource(const OriginXattrs& source);
  /// Opens the file if it is not at its path; null if it is. ENOENT: not found.
  Result<SharedFd> OpenMoved(const OriginXattrs& source);

  const BaseDirectory& base_;
  const CheckTold check_told_;
  std::unique_ptr<VaultFiles> vaults_;
  std::unique_ptr<OverwrittenContent> overwritten_;
  MovedFiles moved_;
  BaseFileCache files_;
  mutable Mutex mutex_;
  std::shared_ptr<Preimages> preimages_ GUARDED_BY(mutex_);
};

}  // namespace txfs
