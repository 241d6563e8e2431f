#include "fs/overwritten.h"

#include <fcntl.h>

#include <algorithm>
#include <ranges>
#include <utility>

#include "fs/base_mounts.h"
#include "fs/commit_image.h"
#include "fs/committer.h"
#include "journal/base/file.h"

namespace txfs {
namespace {

using State = OverwrittenContent::State;
using Patch = OverwrittenContent::Patch;
using Patches = OverwrittenContent::Patches;

/// Times of files are those of the last tick of the clock, nanoseconds.
constexpr int64_t kTickNs = 10'000'000;
constexpr int64_t kSecondNs = 1'000'000'000;

State StateOf(const Fingerprint& state) { return {state.size, state.mtime}; }

bool IsCloseTo(const Timestamp& a, const Timestamp& b) {
  const int64_t seconds = a.sec - b.sec;
  if (seconds < -1 || seconds > 1) return false;
  const int64_t apart = seconds * kSecondNs + int64_t{a.nsec} - b.nsec;
  return -kTickNs <= apart && apart <= kTickNs;
}

/// Whether one of `patches` found the file in `state`, or left it so.
bool IsBetween(const Patches& patches, const Fingerprint& state) {
  return std::ranges::any_of(patches, [&](const auto& patch) {
    return patch->found == StateOf(state) || patch->after == StateOf(state);
  });
}

/// Whether a file that is in none of the states in between was noted while
/// `patch` was under way.
bool IsInTheMiddle(const Patch& patch, const Fingerprint& state) {
  const Timestamp& began = patch.began.back();
  return state.ctime >= began || IsCloseTo(state.ctime, began);
}

/// Whether a record followed what others made of the base: its ctime is an old
/// one still, for what it tells of names.
bool HasFollowed(const Fingerprint& state) { return state.mtime > state.ctime; }

/// Whether a file that was noted in `state` has what `patch`, one of `all`,
/// wrote.
bool HasSeen(const Patch& patch, const Patches& all, const Fingerprint& state) {
  return (patch.left && state.ctime >= *patch.left) ||
         (!IsBetween(all, state) && IsInTheMiddle(patch, state)) ||
         (HasFollowed(state) && patch.after == StateOf(state));
}

/// Whether, of a commit that was undone, or undone and done again and so on, as
/// `patch` did last, the file is another than it was in `state`.
bool IsOther(const Patch& patch, const Fingerprint& state) {
  const size_t all = patch.began.size();
  const auto earlier = patch.began | std::views::take(all - 1);
  const bool is_told = patch.found && patch.found != patch.after;
  const bool is_close = std::ranges::any_of(
      earlier,
      [&](const Timestamp& began) { return IsCloseTo(state.ctime, began); });
  if (is_close && is_told && patch.found == StateOf(state)) return true;
  if (is_close && is_told && patch.after == StateOf(state)) return false;
  const auto seen = std::ranges::count_if(
      earlier, [&](const Timestamp& began) { return state.ctime >= began; });
  return (all - static_cast<size_t>(seen)) % 2 == 1;
}

/// The step that sets the attributes of the file that `patch` writes to.
const CommitStep* AttributesAfter(const CommitSteps& steps,
                                  const CommitStep& patch, bool takes_back) {
  // Its path in the base is the one before a commit, and after an undo.
  const auto found = std::ranges::find_if(steps, [&](const CommitStep& step) {
    return step.kind == StepKind::kAttributes &&
           (takes_back ? step.to : step.from) == patch.to;
  });
  return found == steps.end() ? nullptr : &*found;
}

/// The part of `out`, which is at `offset`, that is in `range`.
MutableByteSpan PartIn(Range range, uint64_t offset, MutableByteSpan out) {
  const uint64_t end = offset + out.size();
  const uint64_t from = std::clamp(range.from, offset, end);
  const uint64_t to = std::clamp(range.to, from, end);
  return out.subspan(from - offset, to - from);
}

/// What `patch` made of the file for who noted it in `state`.
std::optional<State> FoundBy(const Patch& patch, const Fingerprint& state) {
  return IsOther(patch, state) ? patch.found : patch.after;
}

/// Whether one patch after the other led from `state` to `now`.
bool IsWhole(const Patches& patches, const Fingerprint& state,
             const State& now) {
  std::optional<State> at = now;
  for (const auto& patch : patches) {
    if (!at || patch->after != at) return false;
    at = FoundBy(*patch, state);
  }
  return at == StateOf(state);
}

}  // namespace

Result<OverwrittenContent::Since> OverwrittenContent::Find(
    const Fingerprint& state, const std::string& path, const struct stat& now) {
  Patches all = TRY(PatchesOf(state, path));
  const auto seen = std::ranges::find_if(
      all, [&](const auto& patch) { return HasSeen(*patch, all, state); });
  all.erase(seen, all.end());
  const State is{.size = static_cast<uint64_t>(now.st_size),
                 .mtime = Timestamp::From(now.st_mtim)};
  const bool explained = is == StateOf(state) || HasFollowed(state) ||
                         std::ranges::any_of(all, [&](const auto& patch) {
                           return FoundBy(*patch, state) == StateOf(state);
                         });
  if (!explained && TRY(IsOlderThanHistory(state.ctime))) {
    return Fail(ESTALE, path +
                            " was written to by a commit of which the history "
                            "is no longer kept");
  }
  Since since{.patches = {}, .exact = !all.empty() && IsWhole(all, state, is)};
  std::ranges::copy_if(
      all, std::back_inserter(since.patches),
      [&](const auto& patch) { return IsOther(*patch, state); });
  return since;
}

Result<Patches> OverwrittenContent::PatchesOf(const Fingerprint& state,
                                              const std::string& path) {
  Patches found;
  {
    const MutexLock lock(mutex_);
    TRY(Update());
    const auto add = [&](const Commit& commit) {
      const auto [first, last] = commit.equal_range(state.ino);
      for (auto at = first; at != last; ++at) found.push_back(at->second);
    };
    add(under_way_.commit);
    for (const auto& [id, commit] : done_) add(commit);
  }
  if (found.empty()) return found;
  // Inode numbers are of one filesystem.
  const BaseMounts mounts = TRY(BaseMounts::Read(base_));
  const std::string mount = mounts.Of(path);
  std::erase_if(found, [&](const auto& patch) {
    return mounts.Of(patch->path) != mount;
  });
  std::ranges::stable_sort(
      found, std::ranges::greater(),
      [](const auto& patch) { return patch->began.back(); });
  return found;
}

Status OverwrittenContent::Restore(const Patches& patches, uint64_t offset,
                                   MutableByteSpan out) const {
  for (const auto& patch : patches) {
    const Delta& before = patch->before;
    std::ranges::fill(PartIn({before.keep, UINT64_MAX}, offset, out),
                      std::byte{0});
    auto range =
        std::ranges::upper_bound(before.ranges, offset, {}, &Range::to);
    SharedFd file;
    for (; range != before.ranges.end() && range->from < offset + out.size();
         ++range) {
      if (!file) {
        file = TRY(vaults_.OpenFile(
            Vaults::PathOf(patch->vault, Spot::Vault(before.name, ""))));
      }
      const MutableByteSpan part = PartIn(*range, offset, out);
      const uint64_t from = std::max(range->from, offset);
      if (TRY(ReadFully(file->get(), from, part)) != part.size()) {
        return Fail(EIO, "read what a commit overwrote in " + patch->path);
      }
    }
  }
  return {};
}

// --- the history -----------------------------------------------------------

Status OverwrittenContent::Update() {
  VaultStamp stamp = Stamp();
  if (!stamp.empty() && stamp == stamp_) return {};
  stamp_.clear();
  // When it is no longer under way it is done, hence this first.
  TRY(UpdateIntent());
  auto known = std::exchange(done_, {});
  for (const std::string& id : TRY(history_.PlanIds())) {
    if (auto node = known.extract(id)) {
      done_.insert(std::move(node));
      continue;
    }
    const auto plan = history_.ReadPlan(id);
    // Given up meanwhile, or somebody else's.
    const bool none = !plan && IsClosedOrGone(plan.error());
    if (none) continue;
    const std::string bytes = TRY(plan);
    const CommitRecord record = TRY(DecodeRecord(AsBytes(bytes)));
    auto commit = Index(record, false);
    if (!commit && IsClosedOrGone(commit.error())) continue;
    done_[id] = TRY(std::move(commit));
  }
  if (IsOld(stamp)) stamp_ = std::move(stamp);
  return {};
}

Status OverwrittenContent::UpdateIntent() {
  struct stat st{};
  const bool exists = ::fstatat(store_, "intent", &st, 0) == 0;
  if (!exists && errno != ENOENT) return Fail(errno, "stat the intent");
  if (!exists) {
    under_way_ = {};
    return {};
  }
  const Timestamp ctime = Timestamp::From(st.st_ctim);
  if (st.st_ino == under_way_.ino && ctime == under_way_.ctime) return {};
  under_way_ = {};
  const auto intent = history_.ReadIntent();
  if (!intent && IsClosedOrGone(intent.error())) return {};
  const std::string bytes = TRY(intent);
  const CommitRecord record = TRY(DecodeRecord(AsBytes(bytes)));
  under_way_.commit = TRY(Index(record, true));
  under_way_.ino = st.st_ino;
  under_way_.ctime = ctime;
  return {};
}

VaultStamp OverwrittenContent::Stamp() const {
  VaultStamp stamp;
  for (const char* directory : {".", "history"}) {
    struct stat st{};
    if (::fstatat(store_, directory, &st, 0) != 0) return {};
    stamp.push_back(Timestamp::From(st.st_ctim));
  }
  return stamp;
}

Result<OverwrittenContent::Commit> OverwrittenContent::Index(
    const CommitRecord& record, bool under_way) const {
  Commit commit;
  CommitImage image;
  std::vector<Timestamp> began;
  for (const CommitStep& step : record.steps) {
    if (step.kind != StepKind::kPatch || !step.before) continue;
    if (commit.empty()) {
      began = TRY(BeganOf(record.summary));
      if (!under_way) {
        const std::string bytes = TRY(history_.ReadImage(record.summary.id));
        image = TRY(DecodeImage(AsBytes(bytes)));
      }
    }
    Patch patch{.path = step.to.path,
                .vault = record.vault,
                .before = *step.before,
                .found = {},
                .after = {},
                .left = {},
                .began = began};
    const CommitStep* attributes =
        AttributesAfter(record.steps, step, began.size() % 2 == 0);
    if (attributes != nullptr && attributes->set_before) {
      patch.found = {step.before->size, attributes->set_before->mtime};
    }
    const auto entry =
        attributes == nullptr
            ? image.end()
            : std::ranges::find(image, attributes->to.path, &ImageEntry::path);
    if (entry != image.end() && entry->exists && entry->ino == step.ino) {
      patch.after = {entry->size, entry->mtime};
      patch.left = entry->ctime;
    }
    commit.emplace(step.ino, std::make_shared<const Patch>(std::move(patch)));
  }
  return commit;
}

Result<std::vector<Timestamp>> OverwrittenContent::BeganOf(
    const TransactionSummary& summary) const {
  std::vector<Timestamp> began = {summary.ended};
  TransactionSummary at = summary;
  while (at.kind == TransactionKind::kUndo) {
    auto undone = history_.Read(at.of);
    if (!undone && undone.error().code == ENOENT) break;
    at = TRY(std::move(undone));
    began.push_back(at.ended);
  }
  std::ranges::reverse(began);
  return began;
}

Result<bool> OverwrittenContent::IsOlderThanHistory(Timestamp time) const {
  const std::vector<TransactionSummary> list = TRY(history_.ReadAll());
  return std::ranges::any_of(list, [&](const TransactionSummary& ended) {
    return ended.state == TransactionState::kCommitted && ended.changes != 0 &&
           !ended.undoable && ended.undone_by.empty() && ended.ended >= time;
  });
}

}  // namespace txfs
