#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "journal/change.h"
#include "journal/support/mutex.h"
#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs {

/// `directory` + "/" + `name`; just `name` when the directory is the root "".
[[nodiscard]] std::string JoinPath(std::string_view directory,
                                   std::string_view name);
/// The part before the last slash, "" when there is none.
[[nodiscard]] std::string_view ParentPath(std::string_view path);
/// The part after the last slash.
[[nodiscard]] std::string_view BaseName(std::string_view path);
/// Whether `path` is `ancestor` or below it. "" is above everything.
[[nodiscard]] bool IsAtOrBelow(std::string_view path,
                               std::string_view ancestor);

/// A base path for people: the root has a name, too.
[[nodiscard]] std::string ShownPath(const std::string& path);

/// What a mount in the base has for vaults of commits; no file of the user's
/// may have this name, in any directory.
inline constexpr const char* kMountVaults = ".txfs-vault";
/// In the root: where earlier versions had the store, and where a mount shows
/// the agent's own files. A store that lies there is foreign.
inline constexpr const char* kStoreName = ".txfs";
/// Whether `name`, in the root or another directory, is txfs's own.
[[nodiscard]] bool IsReservedName(bool in_root, std::string_view name);

/// A descriptor shared by those who read through it; closed by the last.
using SharedFd = std::shared_ptr<UniqueFd>;

/// One name in a base directory.
struct BaseEntry {
  std::string name;
  uint64_t ino = 0;
  FileType type = FileType::kRegular;
};

/// Whether an error says that a path leads to nothing any more: it is gone, or
/// something above it is no directory.
[[nodiscard]] inline bool IsGone(const Error& error) {
  return error.code == ENOENT || error.code == ENOTDIR || error.code == ELOOP;
}
/// The same, or that we may not look into it.
[[nodiscard]] inline bool IsClosedOrGone(const Error& error) {
  return error.code == EACCES || IsGone(error);
}

/// Whether `dir` is on an overlay, which makes another file of one of several
/// names in a lower layer as soon as it is written to.
[[nodiscard]] bool IsOverlay(int dir);

class BaseDirectory;
/// What is in the directory `path`, as far as we may look at it: nothing where
/// it is gone, or may not be listed or searched.
[[nodiscard]] Result<std::vector<BaseEntry>> ListIfOpen(
    const BaseDirectory& base, const std::string& path);

/// The base: the real workspace below one descriptor.
///
/// Paths are relative to the root, of any length; no symlink is followed and
/// nothing outside the root is reached, whatever somebody does to the base
/// meanwhile. Names that are txfs's own do not exist here. Thread-safe.
class BaseDirectory {
 public:
  explicit BaseDirectory(UniqueFd root);

  /// lstat(2). ENOENT also when a parent is missing or no directory.
  Result<struct stat> Stat(const std::string& path) const;
  Result<std::vector<BaseEntry>> List(const std::string& path) const;
  /// Opens a regular file for reading.
  Result<SharedFd> OpenFile(const std::string& path) const;
  /// Of the symbolic link that is object `ino`; ESTALE where it is another one.
  Result<std::string> ReadLink(const std::string& path, uint64_t ino) const;
  Result<std::string> ReadLink(const std::string& path) const;
  /// The names of the user.* attributes.
  Result<std::vector<std::string>> ListXattrs(const std::string& path) const;
  Result<std::string> GetXattr(const std::string& path,
                               const std::string& name) const;
  /// O_PATH descriptor of an object, of a symbolic link itself.
  Result<UniqueFd> OpenPath(const std::string& path) const;
  /// A directory's descriptor, for *at calls.
  Result<SharedFd> OpenDirectory(const std::string& path) const;

  /// Forgets descriptors of directories: after commit changed the base.
  void DropCache() const;

  /// Bytes of the paths that this process had the kernel walk for directories:
  /// for tests.
  static uint64_t walked();

  [[nodiscard]] int root() const { return root_.get(); }
  /// st_dev of the root.
  [[nodiscard]] uint64_t device() const { return device_; }
  /// As BaseOrigin::dev has it.
  [[nodiscard]] uint64_t RelativeDevice(uint64_t dev) const {
    return dev == device_ ? 0 : dev;
  }

 private:
  struct CachedDirectory {
    std::string path;
    SharedFd fd;
  };
  using Recent = std::list<CachedDirectory>;

  struct Nearest {
    SharedFd fd;        ///< null: none is open
    size_t length = 0;  ///< of its path
  };
  /// The directory `path`, or the nearest above it, that is open.
  Nearest FindNearest(const std::string& path) const EXCLUDES(mutex_);
  /// Keeps it open for a while, and closes the one that was not used longest.
  void Remember(const std::string& path, SharedFd fd) const EXCLUDES(mutex_);
  UniqueFd root_;
  uint64_t device_ = 0;
  mutable Mutex mutex_;
  mutable Recent recent_ GUARDED_BY(mutex_);  ///< newest first
  mutable std::unordered_map<std::string_view, Recent::iterator> by_path_
      GUARDED_BY(mutex_);
};

/// Whether the base object at `path` has user.* attributes.
[[nodiscard]] bool HasUserXattrs(const BaseDirectory& base,
                                 const std::string& path);

}  // namespace txfs
