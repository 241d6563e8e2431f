#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fs/posix/filesystem.h"
#include "fs/workspace/workspace.h"
#include "tests/conformance/driver.h"

namespace txfs::testing {

/// How a CoreDriver runs the core.
struct CoreOptions {
  JournalOptions journal;
  const Clock* clock = &Clock::System();
  /// Keeps every lookup until the end, as a kernel with enough memory does.
  /// Otherwise every inode is forgotten after each operation.
  bool keep_lookups = false;
  bool collects = true;  ///< as in WorkspaceOptions
  std::shared_ptr<const policy::Policy> policy = {};
  Approver* approver = nullptr;
  bool is_for_others = false;  ///< as in FilesystemOptions
  std::string name = {};       ///< of the transaction
};

/// EEXIST with the first of the conflicts that a commit or an undo met.
Status NoConflicts(const std::vector<Conflict>& conflicts);

/// The core without a kernel: does what the VFS does in front of a filesystem
/// (walks paths, follows symlinks, checks types of open files) and nothing
/// more.
class CoreDriver final : public Driver {
 public:
  static Result<std::unique_ptr<CoreDriver>> Start(const std::string& workspace,
                                                   const CoreOptions& options);
  ~CoreDriver() override;

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
  Status Remount() override;
  Status Commit() override;
  Status Discard() override;
  Status MakeSavepoint(const std::string& name) override;
  Status Rollback(const std::string& name) override;
  Status MarkCall(const std::string& id, bool end) override;
  Result<std::vector<std::string>> RevertCall(const std::string& id) override;
  Status UsePolicy(const std::string& text) override;
  Result<CommitOutcome> Review(const CommitChoice& choice) override;
  Result<std::vector<Refused>> ReadRefused() override;
  Status Settle() override;
  Result<uint64_t> StoreBytes() override;

  Status Undo() override { return Undo(""); }
  /// Takes a commit back in the base; the newest when `id` is empty.
  Status Undo(const std::string& id);

  Workspace& workspace() { return *workspace_; }

 private:
  /// A counted lookup of an inode, given back when destroyed.
  class Ref {
   public:
    Ref() = default;
    Ref(CoreDriver* driver, Ino ino) : driver_(driver), ino_(ino) {}
    Ref(Ref&& other) noexcept
        : driver_(std::exchange(other.driver_, nullptr)), ino_(other.ino_) {}
    Ref& operator=(Ref&& other) noexcept {
      std::swap(driver_, other.driver_);
      std::swap(ino_, other.ino_);
      return *this;
    }
    ~Ref();
    [[nodiscard]] Ino ino() const { return ino_; }

   private:
    CoreDriver* driver_ = nullptr;
    Ino ino_ = kRootIno;
  };
  struct OpenFile {
    Ref ref;
    int flags = 0;
  };
  /// The directory of a path's last component, and that component.
  struct Place {
    Ref parent;
    std::string name;
  };

  CoreDriver(std::string workspace, const CoreOptions& options);

  Status OpenWorkspace();
  Filesystem& fs() { return workspace_->filesystem(); }

  Result<Ref> Child(Ino parent, const std::string& name);
  /// The inodes from the root to `path`.
  Result<std::vector<Ref>> WalkTrail(const std::string& path, bool follow_last);
  Status CheckNotAbove(const std::string& from, const Place& source,
                       const Place& target, unsigned flags);
  Result<Ref> Walk(const std::string& path, bool follow_last);
  Result<Ref> WalkTo(const std::string& path) { return Walk(path, false); }
  Result<Place> FindPlace(const std::string& path);
  Result<Place> FindFreePlace(const std::string& path);
  Result<Ref> OpenOrCreate(const std::string& path, int flags, mode_t mode);
  Result<struct stat> AttrOf(const Ref& ref) { return fs().GetAttr(ref.ino()); }
  Status Set(const Ref& ref, const AttrRequest& request);
  Status MayHaveXattr(const Ref& ref, const std::string& name);
  Result<OpenFile*> Find(Handle handle, bool for_writing);
  Handle Add(Ref ref, int flags);
  Status Erase(Handle handle);
  Result<void> Made(const Result<Node>& node);
  [[nodiscard]] bool KillsPrivileges() const { return caller_.uid != 0; }

  std::string path_;
  CoreOptions options_;
  Caller caller_;
  std::unique_ptr<Workspace> workspace_;
  std::map<Handle, OpenFile> handles_;
  uint64_t next_handle_ = 1;
  std::map<Ino, uint64_t> kept_;
};

}  // namespace txfs::testing
