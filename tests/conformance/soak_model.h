#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/conformance/driver.h"

namespace txfs::testing {

/// What a mount must show: a plain directory in which the same was done, and
/// images of what it was, to go back to. Files that are open in it go back with
/// it, as those in a mount do: to what their file was, or, when it was not
/// there yet, they keep what they have, which has no name any more.
class SoakModel {
 public:
  /// Makes `scratch`/model with the directories `tops`, which is all of it that
  /// is ever looked at.
  SoakModel(std::string scratch, std::vector<std::string> tops);

  [[nodiscard]] const std::string& root() const { return root_; }
  [[nodiscard]] const std::vector<std::string>& tops() const { return tops_; }

  /// A driver on `directory` (in the model, or one that is open), with the open
  /// files of which Restore deals. One thread's; of several, each has its own.
  std::unique_ptr<Driver> Open(const std::string& directory);

  // None of these while anybody else uses the model.

  /// Keeps what the model is as the image `name`, in place of the one before.
  void Save(const std::string& name);
  /// Keeps what the tree `from` is.
  void SaveFrom(const std::string& name, const std::string& from);
  /// Makes the model what it was.
  void Restore(const std::string& name);
  void Drop(const std::string& name);

 private:
  class Files;

  /// A file of the model, for good: inode numbers are used again.
  struct Identity {
    uint64_t ino = 0;
    int64_t born_sec = 0;
    uint32_t born_nsec = 0;
    auto operator<=>(const Identity&) const = default;
  };
  /// The same in all images, and in the model after Restore.
  using Object = uint64_t;
  using Objects = std::map<std::string, Object>;  // by path

  static Identity IdentityOf(int dir, const std::string& path);
  [[nodiscard]] std::string ImagePath(const std::string& name) const;
  void Copy(const std::string& from, const std::string& to) const;
  Objects ObjectsIn(const std::string& root);
  void Reopen(int file, const std::map<Object, std::string>& paths);

  const std::string scratch_, root_;
  const std::vector<std::string> tops_;
  std::map<std::string, Objects> images_;
  std::map<Identity, Object> objects_;
  Object last_ = 0;
  std::mutex mutex_;
  std::set<int> open_;  // guarded by mutex_
};

/// Removes a tree, also where directories deny their owner.
void RemoveTree(const std::string& path);

/// What there is to see of the directories `tops` below `root`.
Result<TreeView> ViewTops(const std::string& root,
                          const std::vector<std::string>& tops);

}  // namespace txfs::testing
