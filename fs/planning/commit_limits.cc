#include "fs/planning/commit_limits.h"

#include <algorithm>
#include <memory>
#include <set>

#include "fs/diff/change_list.h"
#include "fs/veto/base_count.h"

namespace txfs {
namespace {

using policy::Limit;
using policy::Measure;

/// What a commit does, as far as limits count it.
class CommitTally {
 public:
  CommitTally(Frozen& frozen, const Selection* selection, bool drifted)
      : frozen_(frozen), selection_(selection), drifted_(drifted) {}

  Result<uint64_t> CountOf(const Limit& limit) {
    if (limit.of == Measure::kBaseRemoved) return CountRemoved(limit);
    CountObjects();
    return limit.of == Measure::kInodesMade ? made_ : bytes_;
  }

 private:
  Result<uint64_t> CountRemoved(const Limit& limit) {
    // Nobody looks at the base for a commit that touched a few names.
    const bool is_small = limit.max && CountTouchedNames() <= *limit.max;
    if (is_small && !drifted_) return 0;
    if (!removed_) removed_ = TRY(FindRemoved());
    return static_cast<uint64_t>(std::ranges::count_if(
        *removed_,
        [&](const std::string& path) { return limit.Counts(path); }));
  }

  /// As many as are removed, or more: each has a word in its directory, but for
  /// what others made meanwhile in a directory that goes.
  uint64_t CountTouchedNames() {
    uint64_t names = 0;
    frozen_.tree.ForEachUpper([&](const Inode& inode) {
      if (inode.record.base) names += inode.names->upper;
    });
    return names;
  }

  Result<std::vector<std::string>> FindRemoved() {
    const ChangeList changes = TRY(ChangeList::Collect(frozen_, false));
    std::vector<std::string> removed = changes.Deleted();
    if (selection_ == nullptr) return removed;
    const std::set<std::string> paths = PathsOf(frozen_, *selection_);
    std::erase_if(removed, [&](const std::string& path) {
      return !paths.contains(path);
    });
    return removed;
  }

  void CountObjects() {
    if (counted_) return;
    counted_ = true;
    frozen_.tree.ForEachUpper([&](const Inode& inode) {
      const bool is_part =
          selection_ == nullptr || selection_->inodes.contains(inode.ino);
      if (!is_part || inode.IsOrphan()) return;
      bytes_ += inode.own->stored_bytes;
      if (!inode.record.base) ++made_;
    });
  }

  Frozen& frozen_;
  const Selection* selection_;
  const bool drifted_;
  std::optional<std::vector<std::string>> removed_;  ///< base paths
  bool counted_ = false;
  uint64_t made_ = 0, bytes_ = 0;
};

Status CheckAccepted(const policy::Policy* policy,
                     const std::vector<std::string>& accepted) {
  for (const std::string& id : accepted) {
    const auto is_meant = [&](const Limit& limit) {
      return limit.at_commit && limit.id == id;
    };
    const auto is_held_by = [&](const policy::Rule& rule) {
      return rule.action == policy::Action::kHold && rule.id == id;
    };
    const bool is_known =
        policy != nullptr && (std::ranges::any_of(policy->limits(), is_meant) ||
                              std::ranges::any_of(policy->rules(), is_held_by));
    if (is_known) continue;
    return Fail(ErrorKind::kUsage, 0,
                "there is no limit or rule \"" + id + "\" on a commit",
                "`txfs policy show` lists the rules and limits that are in "
                "force; write a path as ./" +
                    id);
  }
  return {};
}

}  // namespace

Result<std::vector<LimitExcess>> JudgeCommit(
    Frozen& frozen, const Selection* selection, bool drifted,
    const std::vector<std::string>& accepted) {
  const std::shared_ptr<const policy::Policy> policy = frozen.SharedPolicy();
  TRY(CheckAccepted(policy.get(), accepted));
  std::vector<LimitExcess> exceeded;
  if (policy == nullptr) return exceeded;
  CommitTally tally(frozen, selection, drifted);
  for (const Limit& limit : policy->limits()) {
    if (!limit.at_commit) continue;
    LimitExcess excess{.id = limit.id,
                       .of = limit.of,
                       .allowance = AllowanceOf(limit),
                       .reason = limit.reason,
                       .suggest = limit.suggest};
    excess.count = TRY(tally.CountOf(limit));
    if (NeedsTotal(limit, excess.count)) {
      const Limit* const one = &limit;
      excess.total = TRY(CountBase(frozen.base, {&one, 1})).front();
    }
    if (!Exceeds(limit, excess.count, excess.total.value_or(0))) continue;
    excess.refuses = limit.action == policy::Action::kDeny;
    excess.accepted = std::ranges::find(accepted, limit.id) != accepted.end();
    exceeded.push_back(std::move(excess));
  }
  return exceeded;
}

bool AnyStops(const std::vector<LimitExcess>& limits) {
  return std::ranges::any_of(limits, &LimitExcess::stops);
}

}  // namespace txfs
