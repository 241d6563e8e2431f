#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "journal/change.h"
#include "journal/support/types.h"

namespace txfs {

/// The extents of a file by offset; they never overlap. An empty map costs one
/// pointer, and moving a map is one pointer move: a discard drops the maps of
/// many files while requests wait.
class ExtentMap {
  using Map = std::map<uint64_t, Extent>;

 public:
  using const_iterator = Map::const_iterator;

  [[nodiscard]] bool empty() const { return !map_ || map_->empty(); }
  [[nodiscard]] const_iterator begin() const { return map().begin(); }
  [[nodiscard]] const_iterator end() const { return map().end(); }
  [[nodiscard]] const_iterator find(uint64_t offset) const {
    return map().find(offset);
  }
  [[nodiscard]] const_iterator upper_bound(uint64_t offset) const {
    return map().upper_bound(offset);
  }
  /// Replaces the extent at the same offset.
  void Put(const Extent& extent) {
    if (!map_) map_ = std::make_unique<Map>();
    (*map_)[extent.offset] = extent;
  }
  /// Whether there was one at `offset`.
  bool erase(uint64_t offset) { return map_ && map_->erase(offset) != 0; }
  void clear() { map_.reset(); }
  bool operator==(const ExtentMap& other) const { return map() == other.map(); }

 private:
  [[nodiscard]] const Map& map() const {
    static const Map kNone;
    return map_ ? *map_ : kNone;
  }

  std::unique_ptr<Map> map_;
};

}  // namespace txfs
