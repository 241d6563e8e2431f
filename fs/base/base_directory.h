#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "journal/change.h"
#include "journal/support/mutex.h"
#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs {

/// `directory` + "/" + `name`; only `name` if the directory is the root "".
[[nodiscard]] std::string JoinPath(std::string_view directory,
                                   std::string_view name);
/// The part before the last slash, "" when there is none.
[[nodiscard]] std::string_view ParentPath(std::string_view path);
/// The part after the last slash.
[[nodiscard]] std::string_view BaseName(std::string_view path);
/// Whether `path` is `ancestor` or below it. "" is above everything.
[[nodiscard]] bool IsAtOrBelow(std::string_view path,
                               std::string_view ancestor);

/// A base path for users: "." for the root.
[[nodiscard]] std::string ShownPath(const std::string& path);

/// Prefix of the names under which a filesystem mounted in the base keeps
/// vaults of commits. Users' files cannot have such names, in any directory.
inline constexpr const char* kMountVaults = ".txfs-vault";
/// In the root: the place of the store in earlier versions, and of the agent's
/// files in a mount. A store there is foreign.
inline constexpr const char* kStoreName = ".txfs";
/// Whether `name`, in the root or in another directory, is reserved for txfs.
[[nodiscard]] bool IsReservedName(bool in_root, std::string_view name);

/// A shared descriptor; the last owner closes it.
using SharedFd = std::shared_ptr<UniqueFd>;

/// One name in a base directory.
struct BaseEntry {
  std::string name;
  uint64_t ino = 0;
  FileType type = FileType::kRegular;
};

/// Whether `error` means that a path no longer leads to an object: it is gone,
/// or something above it is not a directory.
[[nodiscard]] inline bool IsGone(const Error& error) {
  return error.code == ENOENT || error.code == ENOTDIR || error.code == ELOOP;
}
/// IsGone, or that the caller may not read there.
[[nodiscard]] inline bool IsClosedOrGone(const Error& error) {
  return error.code == EACCES || IsGone(error);
}

/// Whether `dir` is on an overlay. There, the first write through one of
/// several hard links in a lower layer makes a separate file of it.
[[nodiscard]] bool IsOverlay(int dir);

class BaseDirectory;
/// The entries of the directory `path`; none if it is gone: another transaction
/// deleted it.
[[nodiscard]] Result<std::vector<BaseEntry>> ListIfThere(
    const BaseDirectory& base, const std::string& path);
/// The entries of the directory `path`; none if it is gone, or if this process
/// may not list or search it.
[[nodiscard]] Result<std::vector<BaseEntry>> ListIfOpen(
    const BaseDirectory& base, const std::string& path);

/// The base: the real workspace below one descriptor.
///
/// Paths are relative to the root and of any length. No symbolic link is
/// followed, and nothing outside the root is reached, whatever other processes
/// do to the base meanwhile. Names reserved for txfs do not exist here.
/// Thread-safe.
class BaseDirectory {
 public:
  explicit BaseDirectory(UniqueFd root);

  /// lstat(2). ENOENT also if a parent is missing or is not a directory.
  Result<struct stat> Stat(const std::string& path) const;
  /// Stat of each of `names` in `directory`, with one lookup of the directory.
  /// If the directory cannot be opened, each result is that error.
  std::vector<Result<struct stat>> StatEach(
      const std::string& directory,
      std::span<const std::string_view> names) const;
  /// The same as Stat, also of a name that is reserved for txfs.
  Result<struct stat> StatReserved(const std::string& path) const;
  Result<std::vector<BaseEntry>> List(const std::string& path) const;
  /// Opens a file for reading. Does not block if it is a FIFO.
  Result<SharedFd> OpenFile(const std::string& path) const;
  /// The target of the symbolic link with the st_ino `ino`; ESTALE if another
  /// object is at `path`.
  Result<std::string> ReadLink(const std::string& path, uint64_t ino) const;
  Result<std::string> ReadLink(const std::string& path) const;
  /// The names of the tracked attributes.
  Result<std::vector<std::string>> ListXattrs(const std::string& path) const;
  Result<std::string> GetXattr(const std::string& path,
                               const std::string& name) const;
  /// O_PATH descriptor of an object; for a symbolic link, of the link itself.
  Result<UniqueFd> OpenPath(const std::string& path) const;
  /// A directory's descriptor, for *at calls. An O_PATH descriptor if this user
  /// may search the directory, and not list it.
  Result<SharedFd> OpenDirectory(const std::string& path) const;

  /// Closes cached descriptors of directories, after a commit changed the base.
  void DropCache() const;

  /// Total length of the directory paths that this process had the kernel walk,
  /// bytes. For tests.
  static uint64_t walked();

  [[nodiscard]] int root() const { return root_.get(); }
  /// st_dev of the root.
  [[nodiscard]] uint64_t device() const { return device_; }
  /// The form of `dev` in BaseOrigin::dev.
  [[nodiscard]] uint64_t RelativeDevice(uint64_t dev) const {
    return dev == device_ ? 0 : dev;
  }

 private:
  struct CachedDirectory {
    std::string path;
    SharedFd fd;
  };
  using Recent = std::list<CachedDirectory>;

  enum class Names : bool { kShown, kAll };
  Result<struct stat> Stat(const std::string& path, Names names) const;
  /// A directory in which a name is looked at. ENOENT if it is no directory.
  Result<SharedFd> OpenParent(const std::string& directory) const;

  struct Nearest {
    SharedFd fd;        ///< null if none is open
    size_t length = 0;  ///< of its path
    uint64_t drops = 0;
  };
  /// The open descriptor of the directory `path` or of its nearest ancestor.
  Nearest FindNearest(const std::string& path) const EXCLUDES(mutex_);
  /// Caches a descriptor, unless the cache was dropped since it had `drops`;
  /// closes the least recently used one if there are too many.
  void Remember(const std::string& path, SharedFd fd, uint64_t drops) const
      EXCLUDES(mutex_);
  UniqueFd root_;
  uint64_t device_ = 0;
  mutable Mutex mutex_;
  mutable Recent recent_ GUARDED_BY(mutex_);  ///< newest first
  mutable std::unordered_map<std::string_view, Recent::iterator> by_path_
      GUARDED_BY(mutex_);
  mutable uint64_t drops_ GUARDED_BY(mutex_) = 0;  ///< counts DropCache
};

/// Whether the base object at `path` has tracked attributes (IsTrackedXattr).
[[nodiscard]] bool HasTrackedXattrs(const BaseDirectory& base,
                                    const std::string& path);

}  // namespace txfs
