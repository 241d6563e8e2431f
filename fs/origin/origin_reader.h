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

/// The base file of an inode, and the state in which the transaction noted it.
struct OriginFile {
  Ino ino = kNoIno;
  std::string path;                      ///< recorded path, in the base
  std::vector<std::string> other_paths;  ///< where the base may have it, too
  Fingerprint state;                     ///< when it was noted
  Told told;
  bool guarded = false;     ///< it must be as the kernel was told
  bool must_match = false;  ///< `path` must lead to the same object
  bool changed = false;     ///< read it as it was when it was noted
  bool may_follow = false;  ///< as OverwrittenContent::Noted
  SharedFd pinned;          ///< opened before a commit moved it
};

/// Where the extended attributes are that an inode has of the base.
struct OriginXattrs {
  std::string path;                  ///< in the base
  std::optional<Fingerprint> state;  ///< the file must be this one, also if it
                                     ///< was moved since
  Ino ino = kNoIno;
  bool upper = false;
  std::optional<Told> told;  ///< it must be as the kernel was told
};

/// Reads base files as they were when the transaction noted them: from the
/// base, from vaults where commits moved them to, from pre-images, or by
/// reverting the patches of later commits. Thread-safe; its locks are leaves.
class OriginReader {
 public:
  /// Fails (ESTALE) where the object with these attributes is not what the
  /// kernel was told about the inode.
  using CheckTold = std::function<Status(Ino, const Told&, const struct stat&)>;

  /// `base` outlives this.
  OriginReader(const BaseDirectory& base, CheckTold check_told)
      : base_(base),
        check_told_(std::move(check_told)),
        moved_(base),
        files_(base) {}

  /// Before the first read, if at all.
  void UseVaults(std::unique_ptr<VaultFiles> vaults,
                 std::unique_ptr<OverwrittenContent> overwritten);
  /// The transaction began at `time`.
  void BeginsAt(Timestamp time);
  /// Where pre-images go; null: none are kept. Returns those before.
  std::shared_ptr<Preimages> UsePreimages(std::shared_ptr<Preimages> preimages);
  [[nodiscard]] std::shared_ptr<Preimages> preimages() const;

  // Content.
  /// The base file, also where it was moved to. ESTALE: there is another one.
  Result<SharedFd> Open(const OriginFile& file);
  /// Of a base file that is not in the state in which it was noted: the
  /// content of that state. Kept between the reads of one request.
  struct OldState {
    struct stat seen{};  ///< the file when this was looked up
    std::optional<Bytes> preimage;
    OverwrittenContent::Patches patches;

    [[nodiscard]] bool exists() const { return preimage || !patches.empty(); }
  };
  /// Fills `out` from `offset`; zeros beyond the end of the file.
  Status Read(const OriginFile& file, OldState& old, uint64_t offset,
              MutableByteSpan out);
  /// Takes a range that may have other bytes than zeros; returns whether to go
  /// on.
  using RangeVisitor = std::function<bool(Range)>;
  /// Shows the parts of `range` that are no holes of the file, in order.
  bool VisitData(const OriginFile& file, Range range,
                 const RangeVisitor& visit);
  /// All of a file as it was when it was first touched, if that is kept and not
  /// larger than a record may be.
  std::optional<Bytes> OldContent(const BaseOrigin& origin);
  /// Reads a file of the base, as ReadFully.
  Result<size_t> ReadBase(const std::string& path, uint64_t offset,
                          MutableByteSpan out);
  /// EACCES: the daemon may not read the file of `ino`, so no commit could keep
  /// the part of its content that the transaction leaves.
  Status CheckReadable(Ino ino, const BaseOrigin& origin);

  // Pre-images. Failures leave none: correctness does not depend on them.
  /// Of the file of `ino`.
  void KeepPreimage(Ino ino, const BaseOrigin& origin);
  /// Of a base file whose name the transaction has taken.
  void KeepPreimage(const std::string& path, const struct stat& st);

  // Extended attributes, user.* only.
  /// ENOENT: the object is gone.
  Result<std::vector<std::string>> ListXattrs(const OriginXattrs& source);
  Result<std::string> GetXattr(const OriginXattrs& source,
                               const std::string& name);
  /// None where the object is gone.
  Result<std::map<std::string, std::string>> Xattrs(const OriginXattrs& source);
  /// Of the base object at `path`. ESTALE: it is not inode `ino`.
  Result<std::map<std::string, std::string>> BaseXattrs(
      const std::string& path, std::optional<uint64_t> ino = {}) const;

  [[nodiscard]] BaseFileCache& files() { return files_; }
  [[nodiscard]] MovedFiles& moved() { return moved_; }

 private:
  [[nodiscard]] Fingerprint FingerprintOf(const struct stat& st) const;
  /// A file that is not at its recorded path: in a vault, or under another
  /// name; or nullptr.
  SharedFd FindElsewhere(const Fingerprint& state, const std::string& path);
  /// The old state of the open base file `fd`, which was read before. Looks
  /// again only if the file has changed since `old` was found.
  Status FindOldState(const OriginFile& file, int fd, OldState& old) const;
  /// EAGAIN: somebody wrote to the file meanwhile.
  Status TryRead(const OriginFile& file, int fd, OldState& old, uint64_t offset,
                 MutableByteSpan out) const;
  [[nodiscard]] bool IsAsTold(const OriginFile& file, int fd) const;
  Result<SharedFd> OpenSource(const OriginXattrs& source);
  /// The file, if it is not at its path. ENOENT: it is nowhere.
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
