#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "fs/base/base_directory.h"
#include "journal/change.h"
#include "journal/check.h"
#include "journal/support/bytes.h"
#include "journal/support/checksum.h"
#include "journal/support/mutex.h"
#include "journal/support/types.h"
#include "journal/support/unique_fd.h"

namespace txfs {

/// A state of a base file: another state has another fingerprint.
struct Fingerprint {
  uint64_t dev = 0;  ///< as BaseOrigin::dev
  uint64_t ino = 0;
  uint64_t size = 0;
  Timestamp mtime, ctime;

  static Fingerprint Of(const BaseOrigin& origin);
  auto operator<=>(const Fingerprint&) const = default;
};

/// Whether a file that has `st` now is in `state`.
[[nodiscard]] bool IsUnchanged(const struct stat& st, const Fingerprint& state);

/// Whether the open file `fd` of `base` is in `state`, but for its ctime, which
/// a rename changes. Not one that was made since and got the inode number,
/// where the filesystem keeps times of birth.
[[nodiscard]] bool IsInState(const BaseDirectory& base, int fd,
                             const Fingerprint& state);

/// Whether the open file `fd` of `base` is the one that was in `state`,
/// whatever was done to it since, where the filesystem keeps times of birth;
/// where it does not, IsInState.
[[nodiscard]] bool IsSameFile(const BaseDirectory& base, int fd,
                              const Fingerprint& state);

/// Whether the open file `fd` is known to have been there at `time`.
[[nodiscard]] bool IsBornBefore(int fd, const Timestamp& time);

/// Contents of base files as they were before the transaction changed them:
/// the ancestors of three-way merges, and what tells a base file that was
/// changed from one that was only touched. Of large ones only the hash, if
/// somebody has read them. The file `preimages` of a
/// transaction's directory (docs/format.md). Thread-safe.
///
/// Nothing depends on a pre-image being there, so nothing here fails: in a full
/// store there is none, and what is damaged is not there.
class Preimages {
 public:
  /// The content of a larger file is not kept, bytes.
  static constexpr uint64_t kMaxSize = 256 << 10;

  /// `dir`: the transaction's directory. Reads nothing yet.
  explicit Preimages(UniqueFd dir) : dir_(std::move(dir)) {}

  /// Whether Save would do something.
  bool Wants(const Fingerprint& state);
  /// Keeps the content of the open file `fd`, provided that it is in `state`.
  void Save(const Fingerprint& state, int fd);

  /// `bytes` at `offset` were read from the open file `fd`, which was in
  /// `state`. When all of a large file was, in order, its hash is kept.
  void ReadAlong(const Fingerprint& state, int fd, uint64_t offset,
                 ByteSpan bytes);

  std::optional<Bytes> Find(const Fingerprint& state);
  std::optional<ContentHash> FindHash(const Fingerprint& state);

  /// Bytes on disk.
  uint64_t bytes();

 private:
  struct Entry {
    uint64_t position = 0;  ///< of the content
    ContentHash hash;
  };

  /// A large file that somebody is reading.
  struct Reading {
    Fingerprint state;
    uint64_t next = 0;  ///< offset of what has not been read
    std::unique_ptr<ContentHasher> hasher;
  };

  /// Reads the index, once.
  void Load() REQUIRES(mutex_);
  /// Makes the file if there is none. Whether something can be saved.
  bool Start() REQUIRES(mutex_);
  /// `record`: room for a header, and the content, if that is kept.
  void Append(const Fingerprint& state, const ContentHash& hash, Bytes record)
      REQUIRES(mutex_);

  const UniqueFd dir_;
  Mutex mutex_;
  bool loaded_ GUARDED_BY(mutex_) = false;
  bool foreign_ GUARDED_BY(mutex_) =
      false;                          ///< of a newer version, or damaged:
                                      ///< none are found, none are saved
  UniqueFd file_ GUARDED_BY(mutex_);  ///< none before the first is saved
  uint64_t end_ GUARDED_BY(mutex_) = 0;
  std::map<Fingerprint, Entry> index_ GUARDED_BY(mutex_);
  Reading reading_ GUARDED_BY(mutex_);
};

/// Checks the file in the transaction directory `dir`, contents included. That
/// the last record is not complete is no problem: a kill leaves it so.
Status CheckPreimages(int dir, const Findings& findings);

}  // namespace txfs
