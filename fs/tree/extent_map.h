#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>

#include "journal/change.h"
#include "journal/support/types.h"

namespace txfs {

/// The extents of a file by offset; they never overlap. An empty map costs two
/// pointers, and one extent, as most changed files have, needs no tree. Moving
/// a map moves these pointers: a discard drops the maps of many files while
/// requests wait.
class ExtentMap {
  using Map = std::map<uint64_t, Extent>;

 public:
  using value_type = Map::value_type;

  /// Valid until the next change of the map.
  class const_iterator {
   public:
    using iterator_category = std::bidirectional_iterator_tag;
    using value_type = ExtentMap::value_type;
    using difference_type = std::ptrdiff_t;
    using pointer = const value_type*;
    using reference = const value_type&;

    const_iterator() = default;

    reference operator*() const { return one_ != nullptr ? *one_ : *at_; }
    pointer operator->() const { return &**this; }
    const_iterator& operator++() {
      if (one_ != nullptr) {
        ++one_;
      } else {
        ++at_;
      }
      return *this;
    }
    const_iterator& operator--() {
      if (one_ != nullptr) {
        --one_;
      } else {
        --at_;
      }
      return *this;
    }
    const_iterator operator++(int) {
      const const_iterator before = *this;
      ++*this;
      return before;
    }
    const_iterator operator--(int) {
      const const_iterator before = *this;
      --*this;
      return before;
    }
    bool operator==(const const_iterator& other) const {
      return one_ == other.one_ && (one_ != nullptr || at_ == other.at_);
    }

   private:
    friend class ExtentMap;
    explicit const_iterator(const value_type* one) : one_(one) {}
    explicit const_iterator(Map::const_iterator at) : at_(at) {}

    /// Of a map with one extent: that, or behind it. Of others null.
    const value_type* one_ = nullptr;
    Map::const_iterator at_;
  };

  [[nodiscard]] bool empty() const { return !one_ && !several_; }
  [[nodiscard]] const_iterator begin() const {
    return one_ ? const_iterator(one_.get())
                : const_iterator(several().begin());
  }
  [[nodiscard]] const_iterator end() const {
    return one_ ? const_iterator(one_.get() + 1)
                : const_iterator(several().end());
  }
  [[nodiscard]] const_iterator find(uint64_t offset) const {
    if (!one_) return const_iterator(several().find(offset));
    return one_->first == offset ? begin() : end();
  }
  [[nodiscard]] const_iterator upper_bound(uint64_t offset) const {
    if (!one_) return const_iterator(several().upper_bound(offset));
    return one_->first > offset ? begin() : end();
  }
  /// Replaces the extent at the same offset.
  void Put(const Extent& extent) {
    if (several_) {
      (*several_)[extent.offset] = extent;
    } else if (!one_) {
      one_ = std::make_unique<value_type>(extent.offset, extent);
    } else if (one_->first == extent.offset) {
      one_->second = extent;
    } else {
      several_ = std::make_unique<Map>();
      several_->insert(*one_);
      several_->emplace(extent.offset, extent);
      one_.reset();
    }
  }
  /// Whether there was one at `offset`.
  bool erase(uint64_t offset) {
    if (one_ && one_->first == offset) {
      one_.reset();
      return true;
    }
    if (!several_ || several_->erase(offset) == 0) return false;
    if (several_->size() == 1) {
      one_ = std::make_unique<value_type>(*several_->begin());
      several_.reset();
    }
    return true;
  }
  void clear() {
    one_.reset();
    several_.reset();
  }
  bool operator==(const ExtentMap& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
  }

 private:
  [[nodiscard]] const Map& several() const {
    static const Map kNone;
    return several_ ? *several_ : kNone;
  }

  // Never both: a map has more than one extent.
  std::unique_ptr<value_type> one_;
  std::unique_ptr<Map> several_;
};

}  // namespace txfs
