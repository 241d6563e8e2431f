#include "journal/check_log.h"

#include <algorithm>
#include <ranges>

#include "journal/support/overloaded.h"

namespace txfs {
namespace {

template <class Map>
std::optional<typename Map::mapped_type> Get(
    const Map& map, const typename Map::key_type& key) {
  const auto found = map.find(key);
  if (found == map.end()) return std::nullopt;
  return found->second;
}

std::string Number(Lsn lsn) { return "change " + std::to_string(Raw(lsn)); }

std::string Range(const Extent& extent) {
  return "[" + std::to_string(extent.offset) + ", " +
         std::to_string(extent.end()) + ")";
}

/// What of the edit's before is not so in `image`; empty when all is.
std::string Mismatch(const Edit& edit, const Image& image) {
  return std::visit(
      Overloaded{
          [&](const InodeEdit& e) -> std::string {
            if (Get(image.inodes, e.ino) == e.before) return "";
            return "the record of " + image.Describe(e.ino);
          },
          [&](const AttrEdit& e) -> std::string {
            const auto record = Get(image.inodes, e.ino);
            if (record && record->attr == e.before) return "";
            return "the attributes of " + image.Describe(e.ino);
          },
          [&](const DentryEdit& e) -> std::string {
            const auto row = Get(image.dentries, {e.parent, e.name});
            if (row.value_or(DentryValue{}) == e.before) return "";
            return "the name " + Quote(e.name) + " in " +
                   image.Describe(e.parent);
          },
          [&](const ExtentEdit& e) -> std::string {
            for (const Extent& extent : e.before) {
              if (Get(image.extents, {e.ino, extent.offset}) != extent) {
                return "the content " + Range(extent) + " of " +
                       image.Describe(e.ino);
              }
            }
            return "";
          },
          [&](const XattrEdit& e) -> std::string {
            if (Get(image.xattrs, {e.ino, e.name}) == e.before) return "";
            return "the attribute " + Quote(e.name) + " of " +
                   image.Describe(e.ino);
          },
      },
      edit);
}

/// Calls `visit` with each key whose values differ.
template <class Map, class Visit>
void ForEachDifference(const Map& a, const Map& b, const Visit& visit) {
  auto left = a.begin();
  auto right = b.begin();
  while (left != a.end() || right != b.end()) {
    if (right == b.end() || (left != a.end() && left->first < right->first)) {
      visit((left++)->first);
    } else if (left == a.end() || right->first < left->first) {
      visit((right++)->first);
    } else {
      if (!(left->second == right->second)) visit(left->first);
      ++left;
      ++right;
    }
  }
}

}  // namespace

void Replay::Add(Lsn lsn, ByteSpan encoded) {
  const auto change = DecodeChange(encoded);
  const uint64_t repeats = change ? change->repeats : 1;
  const Lsn first{Raw(lsn) - std::min(Raw(lsn), repeats - 1)};
  const bool overlaps = first < next_ && repeats > 1;
  Skip(first);
  next_ = Next(lsn);
  if (!change || overlaps) {
    complete_ = false;
    findings_.Add(
        "log.record",
        Number(lsn) + (change ? " covers changes that have rows of their own"
                              : " cannot be decoded"));
    return;
  }
  findings_.report().changes += repeats;
  Redo(lsn, *change);
}

void Replay::Skip(Lsn next) {
  if (next <= next_) return;
  missing_ += Raw(next) - Raw(next_);
  next_ = next;
}

void Replay::Redo(Lsn lsn, const Change& change) {
  if (change.result != 0 && !change.edits.empty()) {
    findings_.Add("log.record", Number(lsn) + " was refused, but has edits");
  }
  if (change.op == Op::kRollback) return Rollback(lsn, change);
  for (const Edit& edit : change.edits) {
    const std::string what = Mismatch(edit, image_);
    if (!what.empty()) {
      findings_.Add("log.before",
                    what + " before " + Number(lsn) +
                        " differs from the state that the change records");
    }
    Apply(edit, image_);
  }
  if (change.op == Op::kSavepoint) {
    savepoints_.push_back({change.path, lsn, change.time});
  }
  if (change.op == Op::kCommit || change.op == Op::kDiscard) {
    savepoints_.clear();
    standing_.clear();
  }
  if (!savepoints_.empty()) standing_.emplace_back(lsn, change);
}

Rewind Replay::TakeSince(Lsn target,
                         std::vector<std::pair<Lsn, Change>>& standing) {
  Rewind rewind;
  while (!standing.empty() && standing.back().first > target) {
    rewind.Undo(standing.back().first, std::move(standing.back().second));
    standing.pop_back();
  }
  return rewind;
}

void Replay::Rollback(Lsn lsn, const Change& change) {
  const Lsn target{change.offset};
  while (!savepoints_.empty() && savepoints_.back().lsn > target) {
    savepoints_.pop_back();
  }
  if (savepoints_.empty() || savepoints_.back().lsn != target) {
    findings_.Add("log.record", Number(lsn) + " goes back to " +
                                    Number(target) +
                                    ", which is not a savepoint");
    complete_ = false;
    return;
  }
  TakeSince(target, standing_).ApplyTo(image_);
}

void Replay::VisitPasts(const std::vector<Savepoint>& savepoints,
                        const PastVisitor& visit) const {
  auto standing = standing_;
  Image image = image_;
  for (const Savepoint& savepoint : savepoints | std::views::reverse) {
    const auto ours = std::ranges::lower_bound(savepoints_, savepoint.lsn, {},
                                               &Savepoint::lsn);
    if (ours == savepoints_.end() || *ours != savepoint) continue;
    const Rewind back = TakeSince(savepoint.lsn, standing);
    back.ApplyTo(image);
    visit(image, back);
  }
}

void Replay::CompareWith(const std::vector<Savepoint>& savepoints,
                         Findings findings) const {
  if (savepoints == savepoints_) return;
  findings.Add("tables.savepoints",
               "the savepoints in the tables differ from those in the log");
}

void Replay::CompareWith(const Image& tables, Findings findings) const {
  const std::string suffix = " in the tables differs from the log";
  const auto add = [&](const std::string& what) {
    findings.Add("log.redo", what + suffix);
  };
  ForEachDifference(image_.inodes, tables.inodes, [&](Ino ino) {
    add("the record of " + tables.Describe(ino));
  });
  ForEachDifference(image_.dentries, tables.dentries, [&](const auto& key) {
    add("the name " + Quote(key.second) + " in " + tables.Describe(key.first));
  });
  ForEachDifference(image_.extents, tables.extents, [&](const auto& key) {
    add("the content at " + std::to_string(key.second) + " of " +
        tables.Describe(key.first));
  });
  ForEachDifference(image_.xattrs, tables.xattrs, [&](const auto& key) {
    add("the attribute " + Quote(key.second) + " of " +
        tables.Describe(key.first));
  });
}

}  // namespace txfs
