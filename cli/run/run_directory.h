#pragma once

#include <string>
#include <utility>

#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs::cli {

/// A directory of its own in which a run mounts something. It is locked as long
/// as this lives, so that no other run takes it for one that a killed run has
/// left. It goes with this, unless something is still mounted there.
class RunDirectory {
 public:
  RunDirectory() = default;
  RunDirectory(RunDirectory&& other) noexcept
      : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}
  RunDirectory& operator=(RunDirectory&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(lock_, other.lock_);
    return *this;
  }
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;
  ~RunDirectory();
  /// Makes one in the user's runtime directory, and removes those that killed
  /// runs have left there.
  static Result<RunDirectory> Make();

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  RunDirectory(std::string path, UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  UniqueFd lock_;
};

}  // namespace txfs::cli
