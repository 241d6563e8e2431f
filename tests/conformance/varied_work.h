#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/conformance/driver.h"
#include "tests/conformance/temp_dir.h"

namespace txfs::testing {

/// A base on which VariedWork can be done. Also has what PrepareBase makes.
void PrepareVariedBase(BaseTree& base);

/// Work of every kind that a commit brings to the base: a transaction chosen
/// and ordered by `seed`, some of it with names that collide at random.
class VariedWork {
 public:
  VariedWork(Driver& driver, uint64_t seed);

  Status Do();

 private:
  [[nodiscard]] std::string At(const std::string& path) const {
    return top_ + "/" + path;
  }
  Status Write(const std::string& path, std::string_view content) {
    return driver_.WriteFile(At(path), content);
  }
  Status Patch(const std::string& path, uint64_t offset) {
    return driver_.PatchFile(At(path), offset, "patched");
  }
  Status Rename(const std::string& from, const std::string& to,
                unsigned flags = 0) {
    return driver_.Rename(At(from), At(to), flags);
  }
  Status RemoveTree(const std::string& path) {
    return driver_.RemoveRecursively(At(path));
  }
  Status Link(const std::string& existing, const std::string& path) {
    return driver_.Link(At(existing), At(path));
  }

  Status NewFiles();
  Status NewTree();
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

  Driver& driver_;
  std::mt19937_64 random_;
  std::string top_ = "w";
};

}  // namespace txfs::testing
