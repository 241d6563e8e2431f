#pragma once

#include <string>
#include <string_view>

#include "journal/support/types.h"

namespace txfs::testing {

/// A new directory below $TMPDIR or /tmp, deleted with everything in it at
/// destruction.
class TempDir {
 public:
  TempDir() : TempDir(DefaultParent()) {}
  /// Below `parent`.
  explicit TempDir(const std::string& parent);
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

  /// Returns when a change has another ctime than one that was made before: the
  /// clock of files may stand still for milliseconds. Touches a file here.
  void AwaitTick() const;

  /// $TMPDIR or /tmp.
  static std::string DefaultParent();

 private:
  std::string path_;
};

/// A directory in memory that has extended attributes; where there is none, one
/// for temporary files. For tests that are about processes that die: what the
/// disk keeps does not matter to them, and it would make them wait.
std::string MemoryDirectory();

/// A mount at a directory until destruction, in a mount namespace that this
/// process gets for it. Needs root.
class TempMount {
 public:
  /// A tmpfs.
  explicit TempMount(std::string path, const char* options = "");
  /// The directory `source`, once more.
  TempMount(std::string path, const std::string& source);
  ~TempMount();
  TempMount(const TempMount&) = delete;
  TempMount& operator=(const TempMount&) = delete;

 private:
  static void Prepare(const std::string& path);
  std::string path_;
};

/// The time of everything in a prepared base: long ago, so that "now" can be
/// told from it.
inline constexpr Timestamp kBaseTime{.sec = 1'000'000'000, .nsec = 123'456'789};

/// A directory prepared by system calls before a filesystem is put over it.
/// Failures end the test program: nothing can be tested without a base.
class BaseTree {
 public:
  explicit BaseTree(std::string root) : root_(std::move(root)) {}

  void File(const std::string& path, std::string_view content,
            mode_t mode = 0644);
  /// A file of `size` bytes that takes no blocks.
  void SparseFile(const std::string& path, uint64_t size);
  void Directory(const std::string& path, mode_t mode = 0755);
  void Symlink(const std::string& target, const std::string& path);
  void HardLink(const std::string& existing, const std::string& path);
  void Fifo(const std::string& path);
  void Xattr(const std::string& path, const std::string& name,
             std::string_view value);
  /// Gives everything kBaseTime. The last step of preparing.
  void SetTimes();

  [[nodiscard]] bool Exists(const std::string& path) const;
  [[nodiscard]] std::string Read(const std::string& path) const;
  [[nodiscard]] const std::string& root() const { return root_; }

 private:
  [[nodiscard]] std::string At(const std::string& path) const {
    return root_ + "/" + path;
  }
  std::string root_;
};

/// Copies the tree `from` to the new directory `to` with links, times and
/// attributes.
void CopyTree(const std::string& from, const std::string& to);

}  // namespace txfs::testing
