#include "journal/merge_changes.h"

#include <algorithm>
#include <tuple>

namespace txfs {
namespace {

/// A row of the log is to stay small, and merging cheap.
constexpr size_t kMaxExtents = 256;

bool IsSameAct(const Change& a, const Change& b) {
  const auto who = [](const Change& change) {
    return std::tie(change.op, change.pid, change.uid, change.exe, change.path,
                    change.new_path, change.policy, change.rule, change.reason,
                    change.suggest, change.because);
  };
  const bool may_repeat = a.op == Op::kWrite || a.op == Op::kUtimens;
  return may_repeat && a.result == 0 && b.result == 0 && who(a) == who(b);
}

template <class T>
T* Find(Change& change, Ino ino) {
  for (Edit& edit : change.edits) {
    auto* found = std::get_if<T>(&edit);
    if (found != nullptr && found->ino == ino) return found;
  }
  return nullptr;
}

/// What `later` replaces of what `earlier` brought never was.
bool Merge(ExtentEdit& earlier, const ExtentEdit& later) {
  const size_t size = earlier.before.size() + earlier.after.size() +
                      later.before.size() + later.after.size();
  if (size > kMaxExtents) return false;
  for (const Extent& extent : later.before) {
    if (std::erase(earlier.after, extent) == 0) {
      earlier.before.push_back(extent);
    }
  }
  earlier.after.insert(earlier.after.end(), later.after.begin(),
                       later.after.end());
  return true;
}

bool Merge(Change& earlier, const Edit& edit) {
  if (const auto* attr = std::get_if<AttrEdit>(&edit)) {
    auto* known = Find<AttrEdit>(earlier, attr->ino);
    if (known == nullptr) return false;
    known->after = attr->after;
    return true;
  }
  if (const auto* extents = std::get_if<ExtentEdit>(&edit)) {
    auto* known = Find<ExtentEdit>(earlier, extents->ino);
    return known != nullptr && Merge(*known, *extents);
  }
  return false;
}

}  // namespace

bool MergeChanges(Change& earlier, const Change& later) {
  if (!IsSameAct(earlier, later)) return false;
  Change merged = earlier;
  for (const Edit& edit : later.edits) {
    if (!Merge(merged, edit)) return false;
  }
  merged.first = earlier.repeats > 1 ? earlier.first : earlier.time;
  merged.time = later.time;
  merged.repeats += later.repeats;
  const uint64_t end =
      std::max(earlier.offset + earlier.length, later.offset + later.length);
  merged.offset = std::min(earlier.offset, later.offset);
  merged.length = end - merged.offset;
  earlier = std::move(merged);
  return true;
}

}  // namespace txfs
