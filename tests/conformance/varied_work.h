#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/conformance/driver.h"
#include "tests/conformance/temp_dir.h"

namespace txfs::testing {

/// Work of every kind that a commit brings to the base: a transaction of a few
/// deeds, chosen and ordered by `seed`, some with names that collide at random.
class VariedWork {
 public:
  /// `with_mount`: `w`, where the work is done, is another filesystem.
  explicit VariedWork(uint64_t seed, bool with_mount = false);

  /// Makes what the deeds need.
  void Prepare(BaseTree& base) const;
  /// Does the next `deeds`, or all that are left.
  Status Do(Driver& driver, size_t deeds = SIZE_MAX);
  /// Takes away some of what is there by now.
  Status Ruin(Driver& driver);

 private:
  struct Deed {
    Status (VariedWork::*run)();
    void (*prepare)(BaseTree&);
  };
  static std::vector<Deed> AllDeeds();
  static std::vector<Deed> DeedsAcross();

  [[nodiscard]] std::string At(const std::string& path) const {
    return top_ + "/" + path;
  }
  Status Write(const std::string& path, std::string_view content) {
    return driver_->WriteFile(At(path), content);
  }
  Status Patch(const std::string& path, uint64_t offset) {
    return driver_->PatchFile(At(path), offset, "patched");
  }
  Status Rename(const std::string& from, const std::string& to,
                unsigned flags = 0) {
    return driver_->Rename(At(from), At(to), flags);
  }
  Status RemoveTree(const std::string& path) {
    return driver_->RemoveRecursively(At(path));
  }
  Status Link(const std::string& existing, const std::string& path) {
    return driver_->Link(At(existing), At(path));
  }

  Status NewFiles();
  Status NewTree();
  Status NewLarge();
  Status Rewrite();
  Status PatchFiles();
  Status Delete();
  Status RescueAndDelete();
  Status Move();
  Status MoveIntoNew();
  Status SwapDirectories();
  Status RotateDirectories();
  Status TurnInsideOut();
  Status Replace();
  Status ChangeTypes();
  Status LinkFiles();
  Status RemoveNames();
  Status ChangeAttributes();
  Status ChangeClosed();
  Status RenameTop();
  Status Collide();
  Status MoveAcross();
  Status SwapAcross();

  std::mt19937_64 random_;
  std::vector<Deed> deeds_;
  size_t done_ = 0;
  Driver* driver_ = nullptr;
  std::string top_ = "w";
};

}  // namespace txfs::testing
