#pragma once

#include <optional>
#include <string>

#include "tests/conformance/driver.h"

namespace txfs::testing {

/// The system calls themselves, on the directory `root`.
class PosixDriver : public Driver {
 public:
  explicit PosixDriver(std::string root) : root_(std::move(root)) {}

  Result<Handle> Open(const std::string& path, int flags, mode_t mode) override;
  Status Close(Handle handle) override;
  Result<std::string> ReadAt(Handle handle, uint64_t offset,
                             size_t length) override;
  Result<size_t> WriteAt(Handle handle, uint64_t offset,
                         std::string_view bytes) override;
  Result<struct stat> StatOf(Handle handle) override;
  Status LinkOf(Handle handle, const std::string& path) override;
  Status TruncateOf(Handle handle, uint64_t size) override;
  Status Allocate(Handle handle, int mode, uint64_t offset,
                  uint64_t length) override;
  Result<uint64_t> Seek(Handle handle, uint64_t offset, int whence) override;
  Status Sync(Handle handle) override;
  Result<size_t> CopyRange(Handle from, uint64_t from_offset, Handle to,
                           uint64_t to_offset, size_t length) override;

  Status Mkdir(const std::string& path, mode_t mode) override;
  Status Rmdir(const std::string& path) override;
  Status Unlink(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to,
                unsigned flags) override;
  Status Link(const std::string& existing, const std::string& path) override;
  Status Symlink(const std::string& target, const std::string& path) override;
  Result<std::string> Readlink(const std::string& path) override;
  Status Mkfifo(const std::string& path, mode_t mode) override;
  Status Chmod(const std::string& path, mode_t mode) override;
  Status Chown(const std::string& path, uid_t uid, gid_t gid) override;
  Status Utimens(const std::string& path, const FileTimes& times) override;
  Status Truncate(const std::string& path, uint64_t size) override;
  Result<struct stat> Stat(const std::string& path) override;
  Result<std::optional<Timestamp>> BirthOf(const std::string& path) override;
  Result<struct statvfs> StatFs() override;

  Status SetXattr(const std::string& path, const std::string& name,
                  std::string_view value, int flags) override;
  Result<std::string> GetXattr(const std::string& path,
                               const std::string& name) override;
  Result<std::vector<std::string>> ListXattrs(const std::string& path) override;
  Status RemoveXattr(const std::string& path, const std::string& name) override;

  Result<Handle> OpenDir(const std::string& path) override;
  Status CloseDir(Handle handle) override;
  Result<std::vector<Entry>> ReadDir(Handle handle, uint64_t cookie,
                                     size_t count) override;

  void ActAs(uid_t uid, gid_t gid) override;

  // A plain directory has no base: these do nothing.
  Status Remount() override { return {}; }
  Status Commit() override { return {}; }
  Status Discard() override { return {}; }
  Status Settle() override { return {}; }
  Result<uint64_t> StoreBytes() override { return 0; }
  [[nodiscard]] std::string mountpoint() const override { return root_; }
  [[nodiscard]] bool has_base() const override { return false; }

 private:
  /// Where `path` is for the kernel.
  [[nodiscard]] std::string At(const std::string& path) const {
    return path.empty() ? root_ : root_ + "/" + path;
  }

  std::string root_;
};

}  // namespace txfs::testing
