#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fs/tree/inode.h"
#include "fs/tree/pointer_table.h"

namespace txfs {

/// What a base object is identified by: the device as BaseOrigin::dev.
struct BaseKey {
  uint64_t dev, ino;
  auto operator<=>(const BaseKey&) const = default;
};

/// Spreads numbers that follow one another.
constexpr uint64_t HashOf(uint64_t number) {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15ULL;
  number = (number ^ (number >> 32)) * kOdd;
  number = (number ^ (number >> 29)) * kOdd;
  return number ^ (number >> 32);
}

/// All inodes, by their Ino. These are given in order, so pages of a few
/// neighbours need little more than the pointers.
class InodePages {
 public:
  [[nodiscard]] size_t size() const { return size_; }

  [[nodiscard]] Inode* Find(Ino ino) const {
    const auto page = pages_.find(Raw(ino) / kPerPage);
    if (page == pages_.end()) return nullptr;
    return page->second.inodes[Raw(ino) % kPerPage].get();
  }

  /// Its Ino must not be there.
  Inode& Insert(std::unique_ptr<Inode> inode) {
    Page& page = pages_[Raw(inode->ino) / kPerPage];
    auto& place = page.inodes[Raw(inode->ino) % kPerPage];
    place = std::move(inode);
    ++page.taken;
    ++size_;
    return *place;
  }

  /// It must be there.
  std::unique_ptr<Inode> Take(Ino ino) {
    const auto page = pages_.find(Raw(ino) / kPerPage);
    std::unique_ptr<Inode> inode =
        std::move(page->second.inodes[Raw(ino) % kPerPage]);
    --size_;
    if (--page->second.taken == 0) pages_.erase(page);
    return inode;
  }

  /// In the order of their Inos. Those that are taken out stay valid while
  /// they are kept.
  [[nodiscard]] std::vector<Inode*> All() const {
    std::vector<std::pair<uint64_t, const Page*>> ordered;
    ordered.reserve(pages_.size());
    for (const auto& [number, page] : pages_) {
      ordered.emplace_back(number, &page);
    }
    std::ranges::sort(ordered);
    std::vector<Inode*> all;
    all.reserve(size_);
    for (const auto& [number, page] : ordered) {
      for (const auto& inode : page->inodes) {
        if (inode) all.push_back(inode.get());
      }
    }
    return all;
  }

 private:
  static constexpr size_t kPerPage = 16;
  struct Page {
    std::array<std::unique_ptr<Inode>, kPerPage> inodes;
    size_t taken = 0;
  };

  std::unordered_map<uint64_t, Page> pages_;
  size_t size_ = 0;
};

struct ByNumber {
  static uint64_t Of(const Inode& inode) { return inode.number; }
  static uint64_t Hash(uint64_t number) { return HashOf(number); }
};
/// Requires base origin.
struct ByBase {
  static BaseKey Of(const Inode& inode) {
    return {inode.record.base->dev, inode.record.base->ino};
  }
  static uint64_t Hash(const BaseKey& key) {
    return HashOf(key.ino ^ HashOf(key.dev));
  }
};

}  // namespace txfs
