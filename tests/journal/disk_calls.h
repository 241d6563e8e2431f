#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace txfs {

/// A call by which this process is about to change, or has changed, what a disk
/// holds.
struct DiskCall {
  enum class Kind {
    kMake,      ///< open(2) that may create or empty a file
    kMakeDir,   ///< mkdir(2)
    kWrite,     ///< pwrite(2), pwritev(2), writev(2), write(2)
    kAllocate,  ///< fallocate(2)
    kTruncate,  ///< ftruncate(2)
    kSync,      ///< fsync(2), fdatasync(2), of a file or a directory
    kRename,    ///< rename(2), renameat2(2)
    kRemove,    ///< unlink(2), rmdir(2)
    // For a watch that asks for them:
    kLink,        ///< link(2)
    kMakeNode,    ///< symlink(2), mknod(2)
    kAttributes,  ///< chmod(2), chown(2), utimens(2), setxattr(2) ...
    kSyncAll,     ///< syncfs(2)
  };
  Kind kind = Kind::kWrite;
  std::string path;      ///< absolute
  std::string new_path;  ///< kRename, kLink
  unsigned flags = 0;    ///< of kMake, kRename
  int fd = -1;           ///< of the file; kMake: once it is open
  uint64_t offset = 0;   ///< kWrite, kAllocate
  uint64_t size = 0;     ///< bytes; kTruncate: the size to be

  /// "write /path", for messages.
  [[nodiscard]] std::string ToString() const;
};

/// Sees every call that changes something below a directory, LMDB's included:
/// the test program has functions of the C library's names in front of it
/// (disk_calls.cc). There is at most one at a time. While there is, nothing is
/// really synced, which makes tests fast.
class DiskWatch {
 public:
  explicit DiskWatch(std::string root) : root_(std::move(root)) {}
  virtual ~DiskWatch() = default;
  DiskWatch(const DiskWatch&) = delete;
  DiskWatch& operator=(const DiskWatch&) = delete;

  /// Asked first: 0, or the errno to fail with. May lower call.size of a write.
  virtual int Before(DiskCall& call) = 0;
  /// Told when the call has succeeded. No other call is made between the two.
  virtual void After(const DiskCall& call) = 0;
  /// Whether it is asked about links, nodes, attributes and syncfs, too.
  [[nodiscard]] virtual bool sees_everything() const { return false; }

  [[nodiscard]] const std::string& root() const { return root_; }

 protected:
  /// The last thing that a constructor does, and the first that a destructor
  /// does, of the class that is asked: threads go on making calls.
  void Begin();
  void End();

 private:
  const std::string root_;
};

/// Lets everything happen but syncs, for what needs none.
class NoSyncs final : public DiskWatch {
 public:
  explicit NoSyncs(std::string root) : DiskWatch(std::move(root)) { Begin(); }
  ~NoSyncs() override { End(); }
  int Before(DiskCall&) override { return 0; }
  void After(const DiskCall&) override {}
};

}  // namespace txfs
