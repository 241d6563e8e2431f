#pragma once

#include <array>
#include <atomic>
#include <map>
#include <string>

#include "fs/posix/filesystem.h"
#include "journal/support/mutex.h"

namespace txfs::testing {

enum class Call {
  kLookup,
  kForget,
  kCreate,
  kGetAttr,
  kSetAttr,
  kGetXattr,
  kRead,
  kWrite,
  kReadDirectory,
  kSync,
  kCount,
};

/// What a MemoryFilesystem was asked, readable from another process when it
/// lies in shared memory.
struct CallLog {
  std::array<std::atomic<uint64_t>, static_cast<size_t>(Call::kCount)> counts{};
  std::atomic<uint64_t> last_write_size{0};
  std::atomic<uint64_t> last_read_size{0};
  std::atomic<bool> last_write_kills{false};
  std::atomic<bool> last_setattr_kills{false};
  std::atomic<int> last_rename_mode{-1};
  std::atomic<int> last_allocate_mode{-1};
  std::atomic<uint32_t> last_pid{0};
  std::atomic<uint32_t> last_uid{0};
  std::atomic<bool> last_known{false};

  [[nodiscard]] uint64_t total() const {
    uint64_t sum = 0;
    for (const auto& count : counts) sum += count;
    return sum;
  }
  std::atomic<uint64_t>& of(Call call) {
    return counts[static_cast<size_t>(call)];
  }
};

/// The least that a kernel can work with: files and directories in memory, no
/// journal, no policy. Looking up "out-of-memory" throws std::bad_alloc.
class MemoryFilesystem final : public Filesystem {
 public:
  /// An empty root directory that anybody may write to.
  explicit MemoryFilesystem(CallLog& log);

  void AddFile(const std::string& name, std::string_view content,
               uint32_t mode = 0644);
  /// Another content and, for each name, another existence: "changed" gets
  /// `content`, "gone" disappears, "fresh" appears.
  StaleCaches Swap(std::string_view content);
  /// From now on, each write first adds 1 to the eventfd `arrived`, and waits
  /// for the eventfd `go`.
  void HoldWrites(int arrived, int go) {
    arrived_ = arrived;
    go_ = go;
  }

  Result<Node> Lookup(Ino parent, std::string_view name) override;
  void Forget(Ino ino, uint64_t lookups) override;
  Result<Node> Create(const Caller& caller, Ino parent, std::string_view name,
                      uint32_t mode) override;
  Result<Node> MakeNode(const Caller&, Ino, std::string_view, uint32_t,
                        uint64_t) override;
  Result<Node> MakeDirectory(const Caller& caller, Ino parent,
                             std::string_view name, uint32_t mode) override;
  Result<Node> MakeSymlink(const Caller& caller, Ino parent,
                           std::string_view name,
                           std::string_view target) override;
  Result<Node> Link(const Caller&, Ino, Ino, std::string_view) override;
  Status Unlink(const Caller&, Ino parent, std::string_view name) override;
  Status RemoveDirectory(const Caller&, Ino, std::string_view) override;
  Status Rename(const Caller&, Ino parent, std::string_view name,
                Ino new_parent, std::string_view new_name,
                RenameMode mode) override;
  Status ReadDirectory(
      Ino ino, uint64_t cookie,
      const std::function<bool(const DirEntry&)>& visit) override;
  Result<struct stat> GetAttr(Ino ino) override;
  Result<struct stat> SetAttr(const Caller&, Ino ino,
                              const AttrRequest& request) override;
  Result<std::string> ReadLink(Ino ino) override;
  Result<std::string> GetXattr(Ino ino, std::string_view name) override;
  Result<std::vector<std::string>> ListXattrs(Ino ino) override;
  Status SetXattr(const Caller&, Ino ino, std::string_view name,
                  std::string_view value, XattrMode mode) override;
  Status RemoveXattr(const Caller&, Ino ino, std::string_view name) override;
  Result<size_t> Read(Ino ino, uint64_t offset, MutableByteSpan out) override;
  Result<size_t> Write(const Caller&, Ino ino, uint64_t offset, ByteSpan bytes,
                       WriteMode mode) override;
  Status Allocate(const Caller&, Ino ino, uint64_t offset, uint64_t length,
                  AllocateMode mode) override;
  Result<size_t> CopyRange(const Caller&, Ino, uint64_t, Ino, uint64_t,
                           uint64_t) override;
  Result<uint64_t> Seek(Ino ino, uint64_t offset, int whence) override;
  Status Sync() override;
  Result<struct statvfs> StatFs() override;

 private:
  struct Object {
    struct stat st{};
    std::string content;  ///< of a file; the target of a symlink
    std::map<std::string, Ino, std::less<>> children;
    std::map<std::string, std::string, std::less<>> xattrs;
  };

  void Count(Call call) { ++log_.of(call); }
  void Note(const Caller& caller);
  Result<Object*> Find(Ino ino) REQUIRES(mutex_);
  Result<Node> Add(Ino parent, std::string_view name, uint32_t mode,
                   const Caller& caller, std::string_view content = {})
      REQUIRES(mutex_);

  CallLog& log_;
  int arrived_ = -1, go_ = -1;
  Mutex mutex_;
  std::map<Ino, Object> objects_ GUARDED_BY(mutex_);
  uint64_t next_ GUARDED_BY(mutex_) = 2;
};

}  // namespace txfs::testing
