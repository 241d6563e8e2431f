#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace txfs::cli {

/// A file or link of a tree that is written to or read from disk.
struct TreeFile {
  uint32_t mode = 0100644;  ///< with type; 0120000: a link to `content`
  std::string content;

  bool operator==(const TreeFile&) const = default;
};
using Tree = std::map<std::string, TreeFile>;

/// A directory that is deleted in the end.
class TempTree {
 public:
  explicit TempTree(const Tree& tree = {});
  ~TempTree();
  TempTree(const TempTree&) = delete;
  TempTree& operator=(const TempTree&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] Tree Read() const;
  /// Runs git with `arguments` in the tree; `input` is its standard input.
  /// Returns the exit code; what it said is in `output`.
  int RunGit(const std::string& arguments, const std::string& input,
             std::string& output) const;

 private:
  std::string path_;
};

}  // namespace txfs::cli
