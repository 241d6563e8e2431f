#include "fs/veto/limit_meters.h"

#include <algorithm>

#include "fs/veto/base_count.h"

namespace txfs {
namespace {

using policy::Limit;
using policy::Measure;

/// The amount of `tally` for `limit`.
int64_t AddedBy(const Tally& tally, const Limit& limit) {
  switch (limit.of) {
    case Measure::kBaseRemoved:
      return std::ranges::count_if(
          tally.removed, [&](const auto& path) { return limit.Counts(path); });
    case Measure::kBytesWritten:
      return limit.window ? static_cast<int64_t>(tally.written) : tally.held;
    case Measure::kInodesMade:
      return limit.window ? std::max<int64_t>(tally.made, 0) : tally.made;
  }
  return 0;
}

uint64_t Sum(uint64_t count, int64_t added) {
  if (added >= 0) return count + static_cast<uint64_t>(added);
  return count - std::min(count, static_cast<uint64_t>(-added));
}

/// The amount of `inode` for `limit`.
uint64_t ShareOf(const Inode& inode, const Limit& limit) {
  const auto& base = inode.record.base;
  switch (limit.of) {
    case Measure::kBaseRemoved:
      return inode.upper && base && inode.IsOrphan() && limit.Counts(base->path)
                 ? 1
                 : 0;
    case Measure::kBytesWritten:
      return inode.orphan->retired ? 0 : inode.own->stored_bytes;
    case Measure::kInodesMade:
      return inode.upper && !base ? 1 : 0;
  }
  return 0;
}

}  // namespace

uint64_t StoredIn(std::span<const Extent> extents) {
  uint64_t bytes = 0;
  for (const Extent& extent : extents) {
    if (extent.content.segment != 0) bytes += extent.length;
  }
  return bytes;
}

Tally TallyOf(const Change& change, const Tree& tree) {
  Tally tally;
  std::vector<Ino> orphaned;
  for (const Edit& edit : change.edits) {
    if (const auto* record = std::get_if<InodeEdit>(&edit)) {
      // A changed orphan also gets a record, which is dropped; one that gets
      // its first name keeps it.
      const Inode* inode = tree.Find(record->ino);
      const bool is_named = inode != nullptr && inode->orphan->unnamed &&
                            record->after && record->after->attr.nlink != 0;
      const bool is_new = !record->before && (inode == nullptr || is_named);
      if (is_new && !record->after->base) ++tally.made;
      if (!record->after && !record->before->base) --tally.made;
    } else if (const auto* attr = std::get_if<AttrEdit>(&edit)) {
      if (attr->before.nlink == 0 || attr->after.nlink != 0) continue;
      orphaned.push_back(attr->ino);
      const Inode* inode = tree.Find(attr->ino);
      if (inode == nullptr || !inode->record.base) continue;
      tally.removed.push_back(inode->record.base->path);
    } else if (const auto* content = std::get_if<ExtentEdit>(&edit)) {
      const bool stays =
          std::ranges::find(orphaned, content->ino) != orphaned.end();
      if (stays) continue;
      tally.held += static_cast<int64_t>(StoredIn(content->after)) -
                    static_cast<int64_t>(StoredIn(content->before));
    }
  }
  if (change.op == Op::kWrite) tally.written = change.length;
  return tally;
}

void LimitMeters::Use(std::shared_ptr<const policy::Policy> policy) {
  meters_.clear();
  has_windows_ = false;
  counted_ = false;
  policy_ = std::move(policy);
  if (policy_ == nullptr) return;
  for (const Limit& limit : policy_->limits()) {
    if (limit.at_commit) continue;
    Meter meter{.limit = &limit};
    if (limit.window) meter.window.emplace(*limit.window);
    has_windows_ = has_windows_ || limit.window.has_value();
    meters_.push_back(std::move(meter));
  }
}

void LimitMeters::ForgetBase() {
  for (Meter& meter : meters_) meter.total.reset();
}

void LimitMeters::CountTree(Tree& tree) {
  if (counted_) return;
  for (Meter& meter : meters_) meter.count = 0;
  // Includes orphans, whose content is not in the journal.
  tree.ForEach([&](const Inode& inode) {
    for (Meter& meter : meters_) meter.count += ShareOf(inode, *meter.limit);
  });
  counted_ = true;
}

uint64_t LimitMeters::CountOf(Meter& meter, uint64_t now) const {
  return meter.window ? meter.window->SumAt(now) : meter.count;
}

Status LimitMeters::Judge(Change& change, Tree& tree,
                          const BaseDirectory& base) {
  CountTree(tree);
  const Tally tally = TallyOf(change, tree);
  const uint64_t now = has_windows_ ? clock_->Steady() : 0;
  for (Meter& meter : meters_) {
    meter.added = AddedBy(tally, *meter.limit);
    TRY(JudgeOne(meter, now, change, base));
  }
  return {};
}

Status LimitMeters::JudgeOne(Meter& meter, uint64_t now, Change& change,
                             const BaseDirectory& base) {
  if (meter.added <= 0) return {};
  const Limit& limit = *meter.limit;
  const uint64_t count = Sum(CountOf(meter, now), meter.added);
  if (NeedsTotal(limit, count) && !meter.total) {
    meter.total = TRY(CountBase(base, {&meter.limit, 1})).front();
  }
  if (!Exceeds(limit, count, meter.total.value_or(0))) return {};
  if (limit.action == policy::Action::kAudit) {
    if (change.rule.empty()) change.rule = limit.id;
    return {};
  }
  return std::unexpected(Error{.code = limit.error,
                               .message = limit.reason,
                               .hint = limit.suggest,
                               .kind = ErrorKind::kVetoed,
                               .rule = limit.id});
}

void LimitMeters::Count() {
  const uint64_t now = has_windows_ ? clock_->Steady() : 0;
  for (Meter& meter : meters_) {
    if (!meter.window) {
      meter.count = Sum(meter.count, meter.added);
    } else if (meter.added > 0) {
      meter.window->Add(now, static_cast<uint64_t>(meter.added));
    }
  }
}

void LimitMeters::GiveBack(std::span<const Extent> freed) {
  const auto bytes = static_cast<int64_t>(StoredIn(freed));
  for (Meter& meter : meters_) {
    const bool is_held =
        meter.limit->of == Measure::kBytesWritten && !meter.window;
    if (is_held && counted_) meter.count = Sum(meter.count, -bytes);
  }
}

std::vector<const Limit*> LimitMeters::Wanting(Tree& tree) {
  CountTree(tree);
  const uint64_t now = has_windows_ ? clock_->Steady() : 0;
  std::vector<const Limit*> wanting;
  for (Meter& meter : meters_) {
    if (meter.total || !NeedsTotal(*meter.limit, CountOf(meter, now) + 1)) {
      continue;
    }
    wanting.push_back(meter.limit);
  }
  return wanting;
}

void LimitMeters::SetTotals(std::span<const Limit* const> limits,
                            std::span<const uint64_t> totals) {
  for (size_t i = 0; i < limits.size(); ++i) {
    const auto meter = std::ranges::find(meters_, limits[i], &Meter::limit);
    if (meter != meters_.end()) meter->total = totals[i];
  }
}

}  // namespace txfs
