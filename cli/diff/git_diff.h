#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "journal/support/result.h"

struct git_diff;
struct git_odb;
struct git_patch;
struct git_repository;

namespace txfs::cli {

/// A file as git sees it.
struct GitFile {
  std::string path;
  uint32_t mode = 0;  ///< kGitFile, kGitExecutable or kGitSymlink
  std::string content;
};
inline constexpr uint32_t kGitFile = 0100644;
inline constexpr uint32_t kGitExecutable = 0100755;
inline constexpr uint32_t kGitSymlink = 0120000;

/// A removed and an added file that are one renamed file.
struct GitRename {
  std::string old_path, path;
  unsigned similarity = 0;  ///< percent
};

struct GitLineCounts {
  size_t insertions = 0, deletions = 0;
  bool binary = false;
};

enum class LineStyle { kPlain, kHeader, kHunk, kAdded, kDeleted };

/// libgit2's diff of two sets of files in memory. Uses no configuration of the
/// user or the system.
class GitDiff {
 public:
  /// `threshold`: finds renames with at least this similarity, percent; 0: no
  /// renames.
  static Result<GitDiff> Compare(const std::vector<GitFile>& before,
                                 const std::vector<GitFile>& after,
                                 uint16_t threshold);

  /// The diff of one file of mode kGitFile that keeps its path; none: the side
  /// has no such file. Says what Compare says, without its object database.
  static Result<GitDiff> OfFile(const std::string& path,
                                std::optional<std::string> before,
                                std::optional<std::string> after);

  /// None for OfFile.
  [[nodiscard]] std::vector<GitRename> Renames() const;
  Result<GitLineCounts> CountLines() const;
  /// The patch in git's format, in pieces with one style each.
  Status Print(
      const std::function<void(LineStyle, std::string_view)>& sink) const;

 private:
  struct Free {
    void operator()(git_diff* diff) const;
    void operator()(git_odb* odb) const;
    void operator()(git_patch* patch) const;
    void operator()(git_repository* repository) const;
  };
  using PatchPtr = std::unique_ptr<git_patch, Free>;
  /// What the patch of one file refers to.
  struct Buffers {
    std::optional<std::string> before, after;
  };
  [[nodiscard]] size_t DeltaCount() const;
  Status EachPatch(const std::function<Status(git_patch*)>& visit) const;

  std::unique_ptr<git_odb, Free> odb_;
  std::unique_ptr<git_repository, Free> repository_;
  std::unique_ptr<git_diff, Free> diff_;  ///< null for OfFile
  std::unique_ptr<Buffers> buffers_;
  PatchPtr patch_;
};

}  // namespace txfs::cli
