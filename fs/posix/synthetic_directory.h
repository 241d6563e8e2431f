#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fs/posix/filesystem.h"
#include "journal/support/mutex.h"

namespace txfs {

/// A file with generated content.
struct SyntheticFile {
  std::string name;
  /// Called with no lock held, on any thread.
  std::function<std::string()> content;
  /// Identifies the content, which changes only if this does. Called before
  /// `content`, likewise. Empty: the content may change at each call.
  std::function<std::string()> version = {};
  /// Only the user of this process, who owns the mount, may read it.
  bool is_private = false;
};

/// A filesystem with one more, read-only directory in its root (EROFS). The
/// directory is reachable by name but not listed, so that programs find it only
/// on purpose.
///
/// Each lookup of a file in it makes a new inode with the same st_ino and the
/// content of that time. So the kernel's caches are never stale, and an open
/// descriptor reads one state to the end. Equal content is generated and kept
/// in memory once.
class SyntheticDirectory final : public Filesystem {
 public:
  /// `below` outlives it. `clock` gives the files their times.
  SyntheticDirectory(Filesystem& below, std::string name,
                     std::vector<SyntheticFile> files,
                     const Clock* clock = &Clock::System());

  Result<Node> Lookup(Ino parent, std::string_view name) override;
  void ExpectLookups(Ino parent,
                     std::span<const std::string_view> names) override;
  std::vector<Result<Node>> LookupAll(
      Ino parent, std::span<const std::string_view> names) override;
  bool ReportsNames(Ino directory) override;
  void Forget(Ino ino, uint64_t lookups) override;
  Result<Node> Create(const Caller& caller, Ino parent, std::string_view name,
                      uint32_t mode) override;
  Result<Node> MakeNode(const Caller& caller, Ino parent, std::string_view name,
                        uint32_t mode, uint64_t rdev) override;
  Result<Node> MakeDirectory(const Caller& caller, Ino parent,
                             std::string_view name, uint32_t mode) override;
  Result<Node> MakeSymlink(const Caller& caller, Ino parent,
                           std::string_view name,
                           std::string_view target) override;
  Result<Node> CreateUnnamed(const Caller& caller, Ino directory,
                             uint32_t mode) override;
  Result<Node> Link(const Caller& caller, Ino ino, Ino parent,
                    std::string_view name) override;
  Status Unlink(const Caller& caller, Ino parent,
                std::string_view name) override;
  Status RemoveDirectory(const Caller& caller, Ino parent,
                         std::string_view name) override;
  Status Rename(const Caller& caller, Ino parent, std::string_view name,
                Ino new_parent, std::string_view new_name,
                RenameMode mode) override;
  Status ReadDirectory(
      Ino ino, uint64_t cookie,
      const std::function<bool(const DirEntry&)>& visit) override;
  Result<struct stat> GetAttr(Ino ino) override;
  Result<std::optional<Timestamp>> BirthOf(Ino ino) override;
  Result<struct stat> SetAttr(const Caller& caller, Ino ino,
                              const AttrRequest& request) override;
  Result<std::string> ReadLink(Ino ino) override;
  Result<std::string> GetXattr(Ino ino, std::string_view name) override;
  Result<std::vector<std::string>> ListXattrs(Ino ino) override;
  Status SetXattr(const Caller& caller, Ino ino, std::string_view name,
                  std::string_view value, XattrMode mode) override;
  Status RemoveXattr(const Caller& caller, Ino ino,
                     std::string_view name) override;
  bool ChecksReads() override { return below_.ChecksReads(); }
  Status CheckRead(const Caller& caller, Ino ino) override;
  Result<size_t> Read(Ino ino, uint64_t offset, MutableByteSpan out) override;
  Result<size_t> Write(const Caller& caller, Ino ino, uint64_t offset,
                       ByteSpan bytes, WriteMode mode) override;
  Status Allocate(const Caller& caller, Ino ino, uint64_t offset,
                  uint64_t length, AllocateMode mode) override;
  Result<size_t> CopyRange(const Caller& caller, Ino from, uint64_t from_offset,
                           Ino to, uint64_t to_offset,
                           uint64_t length) override;
  Result<uint64_t> Seek(Ino ino, uint64_t offset, int whence) override;
  Status Sync() override { return below_.Sync(); }
  void SettleDoubts(
      const std::function<void(const StaleCaches&)>& tell) override {
    below_.SettleDoubts(tell);
  }
  Result<struct statvfs> StatFs() override { return below_.StatFs(); }

 private:
  using SharedText = std::shared_ptr<const std::string>;
  /// The state of a file at a lookup.
  struct Snapshot {
    SharedText content;
    struct stat st{};
    uint64_t lookups = 1;
  };
  using SharedSnapshot = std::shared_ptr<const Snapshot>;
  /// The latest content of a file.
  struct Made {
    std::string version;
    SharedText content;
  };

  [[nodiscard]] bool IsDirectory(Ino parent, std::string_view name) const {
    return parent == kRootIno && name == name_;
  }
  /// Whether the name is the directory or in it, and so read-only.
  [[nodiscard]] bool Has(Ino parent, std::string_view name) const;
  [[nodiscard]] Result<struct stat> DirectoryStat();
  [[nodiscard]] Result<struct stat> FileStat(size_t index, size_t size);
  SharedText ContentOf(size_t index) EXCLUDES(mutex_);
  /// Counts one more snapshot with `content`. ENFILE: over the memory bound.
  Status Take(const SharedText& content) REQUIRES(mutex_);
  Result<Node> LookUpFile(std::string_view name);
  Result<SharedSnapshot> Find(Ino ino);

  Filesystem& below_;
  const std::string name_;
  const std::vector<SyntheticFile> files_;
  const Clock* const clock_;
  const Timestamp made_;
  Mutex mutex_;
  uint64_t next_ GUARDED_BY(mutex_);
  std::map<Ino, std::shared_ptr<Snapshot>> snapshots_ GUARDED_BY(mutex_);
  std::map<SharedText, uint64_t> users_ GUARDED_BY(mutex_);  ///< snapshots
  size_t bytes_ GUARDED_BY(mutex_) = 0;  ///< sum of the contents in `users_`
  std::vector<Made> made_last_ GUARDED_BY(mutex_);  ///< by index
};

}  // namespace txfs
