#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "fs/base/base_directory.h"
#include "journal/change.h"
#include "journal/check.h"
#include "journal/support/bytes.h"
#include "journal/support/checksum.h"
#include "journal/support/mutex.h"
#include "journal/support/types.h"
#include "journal/support/unique_fd.h"

namespace txfs {

/// Identity and state of a base file, to detect any change of it.
struct Fingerprint {
  uint64_t dev = 0;  ///< as BaseOrigin::dev
  uint64_t ino = 0;
  uint64_t size = 0;
  Timestamp mtime, ctime;

  static Fingerprint Of(const BaseOrigin& origin);
  auto operator<=>(const Fingerprint&) const = default;
};

struct FingerprintHash {
  size_t operator()(const Fingerprint& state) const;
};

/// Whether `st` of a file is that of `state`.
[[nodiscard]] bool IsUnchanged(const struct stat& st, const Fingerprint& state);

/// Whether the open file `fd` of `base` has the identity, size and mtime of
/// `state`; a rename may have changed its ctime. If the filesystem has birth
/// times, a later file with the same inode number is excluded.
[[nodiscard]] bool IsInState(const BaseDirectory& base, int fd,
                             const Fingerprint& state);

/// Whether the open file `fd` of `base` is the file of `state`, whatever its
/// content is now. Without birth times in the filesystem, IsInState.
[[nodiscard]] bool IsSameFile(const BaseDirectory& base, int fd,
                              const Fingerprint& state);

/// Whether the open file `fd` has a birth time and it is not after `time`.
[[nodiscard]] bool IsBornBefore(int fd, const Timestamp& time);

/// Contents of base files from before the changes of the transaction, in the
/// file `preimages` of its directory (docs/format.md). They are the ancestors
/// of three-way merges, and show whether a base file was modified or only
/// touched. Of a file over kMaxSize only the hash is kept, once ReadAlong has
/// seen all of it. Thread-safe.
///
/// Correctness does not depend on a pre-image, so these functions do not fail:
/// with a full store or damage a pre-image is missing.
class Preimages {
 public:
  /// Maximum size of kept content, bytes.
  static constexpr uint64_t kMaxSize = 256 << 10;

  /// `dir`: the transaction's directory. Reads nothing yet.
  explicit Preimages(UniqueFd dir) : dir_(std::move(dir)) {}

  /// Whether Save would add a pre-image.
  bool Wants(const Fingerprint& state);
  /// Keeps the content of the open file `fd` if it is in `state`.
  void Save(const Fingerprint& state, int fd);

  /// Takes the content that was read from the open file `fd` in `state`. After
  /// a sequential read of a whole large file, its hash is kept.
  void ReadAlong(const Fingerprint& state, int fd, uint64_t offset,
                 ByteSpan bytes);

  std::optional<Bytes> Find(const Fingerprint& state);
  std::optional<ContentHash> FindHash(const Fingerprint& state);
  /// Checksum of the content, with which records of the spool can be compared.
  /// Known of small files, and of those that this process saved.
  std::optional<uint64_t> FindChecksum(const Fingerprint& state);

  /// Reads the index, if nothing has read it. It may be long: call this before
  /// WhileFrozen.
  void Prepare();

  /// Bytes on disk.
  uint64_t bytes();

 private:
  struct Entry {
    uint64_t position = 0;  ///< of the content
    ContentHash hash;
    uint64_t checksum = 0;  ///< of the content; 0: not known
  };

  /// A large file with a sequential read in progress.
  struct Reading {
    Fingerprint state;
    uint64_t next = 0;  ///< offset of the next unread byte
    std::unique_ptr<ContentHasher> hasher;
  };

  /// Reads the index, once.
  void Load() REQUIRES(mutex_);
  /// Creates the file if it does not exist. Returns whether it can be written.
  bool Start() REQUIRES(mutex_);
  /// `record`: space for a header, then the content, if kept. `checksum`: 0 if
  /// it is not.
  void Append(const Fingerprint& state, const ContentHash& hash,
              uint64_t checksum, Bytes record) REQUIRES(mutex_);

  const UniqueFd dir_;
  Mutex mutex_;
  bool loaded_ GUARDED_BY(mutex_) = false;
  bool foreign_ GUARDED_BY(mutex_) =
      false;  ///< newer version or damaged: finds and saves nothing
  UniqueFd file_ GUARDED_BY(mutex_);  ///< -1 until the first save
  uint64_t end_ GUARDED_BY(mutex_) = 0;
  std::unordered_map<Fingerprint, Entry, FingerprintHash> index_
      GUARDED_BY(mutex_);
  Reading reading_ GUARDED_BY(mutex_);
};

/// Checks the file in the transaction directory `dir` with the contents. An
/// incomplete last record is valid: SIGKILL can leave it.
Status CheckPreimages(int dir, const Findings& findings);

}  // namespace txfs
