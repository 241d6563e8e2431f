#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace txfs {

/// Objects by a key that each of them has: a hash table of pointers. A slot
/// takes 9 bytes; between a quarter and four fifths of them are taken. Several
/// objects may have one key.
///
/// It owns nothing: an object is erased before it is freed or gets another key.
/// `By` has `Key Of(const T&)` and `uint64_t Hash(Key)`, each bit of which
/// depends on the whole key.
template <typename T, typename By>
class PointerTable {
 public:
  using Key = decltype(By::Of(std::declval<const T&>()));

  [[nodiscard]] size_t size() const { return size_; }

  /// In no order; nullptr where there is no object. Valid until the next change
  /// of the table.
  [[nodiscard]] const std::vector<T*>& slots() const { return slots_; }

  /// Any object with this key, or nullptr.
  [[nodiscard]] T* Find(Key key) const {
    return FindIf(key, [](const T&) { return true; });
  }

  /// The first object with this key that `accepts` returns true for, or
  /// nullptr. `accepts` must not change the table.
  template <typename Accepts>
  [[nodiscard]] T* FindIf(Key key, const Accepts& accepts) const {
    if (slots_.empty()) return nullptr;
    const uint64_t hash = By::Hash(key);
    const uint8_t tag = TagOf(hash);
    for (size_t at = HomeOf(hash); tags_[at] != kFree; at = After(at)) {
      if (tags_[at] != tag) continue;
      T& object = *slots_[at];
      if (By::Of(object) == key && accepts(object)) return &object;
    }
    return nullptr;
  }

  /// All objects with this key.
  template <typename Visit>
  void ForEachOf(Key key, const Visit& visit) const {
    static_cast<void>(FindIf(key, [&](T& object) {
      visit(object);
      return false;
    }));
  }

  /// Makes room for `size` objects in all.
  void Reserve(size_t size) {
    if (size * 5 > slots_.size() * 4) Rehash(size);
  }

  /// `object` must not be in the table.
  void Insert(T& object) {
    if ((used_ + 1) * 5 > slots_.size() * 4) Rehash(size_ + 1);
    Put(object);
    ++size_;
  }

  /// Returns whether it was in the table.
  bool Erase(const T& object) {
    if (slots_.empty()) return false;
    const uint64_t hash = By::Hash(By::Of(object));
    size_t at = HomeOf(hash);
    while (tags_[at] != kFree && slots_[at] != &object) at = After(at);
    if (tags_[at] == kFree) return false;
    Clear(at);
    Shrink();
    return true;
  }

 private:
  // Other tags are a part of the hash: they save a look at most other objects.
  static constexpr uint8_t kFree = 0;
  static constexpr uint8_t kGone = 1;  ///< a search goes on behind it
  static constexpr size_t kLeast = 8;  ///< slots

  static uint8_t TagOf(uint64_t hash) {
    return static_cast<uint8_t>(std::max<uint64_t>(hash & 0xFF, kGone + 1));
  }
  [[nodiscard]] size_t HomeOf(uint64_t hash) const {
    return ((hash >> 32) * slots_.size()) >> 32;
  }
  [[nodiscard]] size_t After(size_t at) const {
    return at + 1 == slots_.size() ? 0 : at + 1;
  }
  [[nodiscard]] size_t Before(size_t at) const {
    return at == 0 ? slots_.size() - 1 : at - 1;
  }

  void Put(T& object) {
    const uint64_t hash = By::Hash(By::Of(object));
    size_t at = HomeOf(hash);
    while (slots_[at] != nullptr) at = After(at);
    if (tags_[at] == kFree) ++used_;
    tags_[at] = TagOf(hash);
    slots_[at] = &object;
  }

  void Clear(size_t at) {
    slots_[at] = nullptr;
    tags_[at] = kGone;
    --size_;
    if (tags_[After(at)] != kFree) return;
    for (; tags_[at] == kGone; at = Before(at)) {
      tags_[at] = kFree;
      --used_;
    }
  }

  void Shrink() {
    if (slots_.size() > kLeast && size_ < slots_.size() / 4) Rehash(size_);
  }

  /// Makes room for `size` objects, half as many more, and free slots.
  void Rehash(size_t size) {
    const size_t slots = std::max(size * 15 / 8, kLeast);
    const std::vector<T*> old = std::exchange(slots_, std::vector<T*>(slots));
    tags_ = std::vector<uint8_t>(slots);
    used_ = 0;
    // Each key is in memory of its own, which is to be there when its turn
    // comes.
    constexpr size_t kAhead = 16;
    for (size_t at = 0; at < old.size(); ++at) {
      if (at + kAhead < old.size()) __builtin_prefetch(old[at + kAhead]);
      if (old[at] != nullptr) Put(*old[at]);
    }
  }

  std::vector<T*> slots_;
  std::vector<uint8_t> tags_;  ///< of the slots
  size_t size_ = 0;
  size_t used_ = 0;  ///< slots that are not free
};

}  // namespace txfs
