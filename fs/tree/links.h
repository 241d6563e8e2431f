#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "fs/tree/sparse.h"
#include "journal/support/types.h"

namespace txfs {

/// A name in a directory.
struct Link {
  Ino parent = kNoIno;
  std::string name;
  bool operator==(const Link&) const = default;
};

/// The known names of an inode, in the order in which they came. One, as most
/// inodes have, takes no memory elsewhere.
class Links {
 public:
  [[nodiscard]] const Link* begin() const {
    return several_.was_made() ? several_->data() : &one_;
  }
  [[nodiscard]] const Link* end() const { return begin() + size(); }
  [[nodiscard]] size_t size() const {
    if (several_.was_made()) return several_->size();
    return one_.parent == kNoIno ? 0 : 1;
  }
  [[nodiscard]] bool empty() const { return size() == 0; }
  /// There must be one.
  [[nodiscard]] const Link& front() const { return *begin(); }
  [[nodiscard]] std::vector<Link> ToVector() const { return {begin(), end()}; }

  void Add(Link link) {
    if (empty()) {
      one_ = std::move(link);
      return;
    }
    std::vector<Link>& several = several_.Make();
    if (several.empty()) several.push_back(std::exchange(one_, {}));
    several.push_back(std::move(link));
  }

  /// `at` is one of them.
  void Erase(const Link* at) {
    if (!several_.was_made()) {
      one_ = {};
      return;
    }
    std::vector<Link>& several = several_.Make();
    several.erase(several.begin() + (at - several.data()));
    if (several.size() > 1) return;
    one_ = std::move(several.front());
    several_.Reset();
  }

 private:
  Link one_;  ///< without a parent: none, or there are several
  Sparse<std::vector<Link>> several_;
};

}  // namespace txfs
