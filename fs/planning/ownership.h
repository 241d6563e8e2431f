#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fs/overlay/frozen.h"

namespace txfs {

/// Which owners and groups this process can give to what it commits. Root can
/// give all of them. Other users make files of their own, with one of their
/// groups; a new file in a directory with set-group-ID gets that of the
/// directory.
class Ownership {
 public:
  /// `asks`: nothing will be committed, so no file is made to try whether it
  /// gets the group of its directory.
  Ownership(Frozen& frozen, bool asks);

  /// Whether this process may give a file of its own this group.
  [[nodiscard]] bool MaySetGroup(uint32_t gid) const;
  /// Whether this process may put a new file with the same owner and group in
  /// the place of `file`.
  [[nodiscard]] bool MayReplace(const BaseOrigin& file) const;
  /// A base directory above the new file `inode` in which files are made with
  /// its group, if this process could not set it otherwise. "": none is
  /// necessary, or there is none below the root.
  std::string FindNest(const Inode& inode);

  /// Notes what of the owner and group of `inode` the commit cannot keep.
  /// `is_made`: a new object takes its place; `nest`: of FindNest.
  void Note(const Inode& inode, const std::string& path, bool is_made,
            const std::string& nest);
  /// A sentence about the owners that were noted, and one about the groups.
  [[nodiscard]] std::vector<std::string> Withheld() const;

 private:
  struct Lost {
    std::string first;  ///< path
    size_t count = 0;

    void Add(const std::string& path);
  };
  bool MakesFilesOf(const std::string& directory, uint32_t gid);

  Frozen& frozen_;
  const bool asks_;
  const uid_t user_;
  std::set<gid_t> groups_;
  std::map<std::string, bool> nests_;  ///< tried directories, by base path
  Lost owners_, of_group_;
};

}  // namespace txfs
