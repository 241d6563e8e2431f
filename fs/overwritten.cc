#include "fs/overwritten.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "fs/commit_image.h"
#include "fs/committer.h"
#include "journal/base/file.h"

namespace txfs {
namespace {

using Patch = OverwrittenContent::Patch;

bool Has(const Patch::State& state, const Fingerprint& of) {
  return state.size == of.size && state.mtime == of.mtime;
}

/// Whether a file that is in `state` has what `patch` wrote. A record that
/// followed the base since has its old ctime.
bool IsSince(const Patch& patch, const Fingerprint& state) {
  if (!patch.after) return false;
  if (state.ctime >= patch.left) return true;
  const bool is_told =
      patch.takes_back || !patch.found || !Has(*patch.found, state);
  return Has(*patch.after, state) && is_told;
}

/// What `record` found where `patch` writes.
std::optional<Patch::State> FoundBy(const CommitRecord& record,
                                    const CommitStep& patch) {
  // In the base the path is the file's before a commit, and after an undo.
  const bool is_undo = record.summary.kind == TransactionKind::kUndo;
  const CommitSteps& steps = record.steps;
  const auto attributes = std::ranges::find_if(steps, [&](const auto& step) {
    return step.kind == StepKind::kAttributes &&
           (is_undo ? step.to : step.from) == patch.to;
  });
  if (attributes == steps.end() || !attributes->set_before) return {};
  return Patch::State{.size = patch.before->size,
                      .mtime = attributes->set_before->mtime};
}

/// The part of `out`, which is at `offset`, that is in `range`.
MutableByteSpan PartIn(Range range, uint64_t offset, MutableByteSpan out) {
  const uint64_t end = offset + out.size();
  const uint64_t from = std::clamp(range.from, offset, end);
  const uint64_t to = std::clamp(range.to, from, end);
  return out.subspan(from - offset, to - from);
}

}  // namespace

OverwrittenContent::Patches OverwrittenContent::Since(const Fingerprint& state,
                                                      const std::string& path) {
  const MutexLock lock(mutex_);
  Update();
  Patches found;
  const auto add = [&](const Commit& commit) REQUIRES(mutex_) {
    const auto [first, last] = commit.equal_range(state.ino);
    for (auto at = first; at != last; ++at) {
      if (at->second.mount == mounts_->Of(path)) found.push_back(at->second);
    }
  };
  add(under_way_);
  for (const auto& [id, commit] : done_) add(commit);
  std::ranges::stable_sort(found, std::ranges::greater(), &Patch::ended);
  const auto since = std::ranges::find_if(
      found, [&](const Patch& patch) { return IsSince(patch, state); });
  found.erase(since, found.end());
  // What it takes back is gone from the history, so with it nothing happened,
  // but to who looked in between.
  std::erase_if(found, [&](const Patch& patch) {
    return patch.takes_back && (!patch.found || !Has(*patch.found, state));
  });
  return found;
}

Status OverwrittenContent::Restore(const Patches& patches, uint64_t offset,
                                   MutableByteSpan out) const {
  for (const Patch& patch : patches) {
    const Delta& before = patch.before;
    std::ranges::fill(PartIn({before.keep, UINT64_MAX}, offset, out),
                      std::byte{0});
    SharedFd file;
    for (const Range& range : before.ranges) {
      const MutableByteSpan part = PartIn(range, offset, out);
      if (part.empty()) continue;
      if (!file) {
        file = TRY(vaults_.OpenFile(
            Vaults::PathOf(patch.vault, Spot::Vault(before.name, ""))));
      }
      const uint64_t from = std::max(range.from, offset);
      if (TRY(ReadFully(file->get(), from, part)) != part.size()) {
        return Fail(EIO, "read what a commit overwrote");
      }
    }
  }
  return {};
}

void OverwrittenContent::Update() {
  VaultStamp stamp = Stamp();
  if (!stamp.empty() && stamp == stamp_) return;
  stamp_.clear();
  auto mounts = BaseMounts::Read(base_);
  if (!mounts) return;
  mounts_ = std::move(*mounts);
  // When it is no longer under way it is done, hence this first.
  const auto intent = history_.ReadIntent();
  const auto record =
      intent ? DecodeRecord(AsBytes(*intent)) : Fail(intent.error().code, "");
  under_way_ = record ? Index(*record, true) : Commit();
  const auto ids = history_.PlanIds();
  if (!ids) return;
  auto known = std::exchange(done_, {});
  for (const std::string& id : *ids) {
    if (auto node = known.extract(id)) {
      done_.insert(std::move(node));
      continue;
    }
    const auto plan = history_.ReadPlan(id);
    if (!plan) continue;
    const auto done = DecodeRecord(AsBytes(*plan));
    done_[id] = done ? Index(*done, false) : Commit();
  }
  if (IsOld(stamp)) stamp_ = std::move(stamp);
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

OverwrittenContent::Commit OverwrittenContent::Index(const CommitRecord& record,
                                                     bool under_way) const {
  const TransactionSummary& summary = record.summary;
  Commit commit;
  for (const CommitStep& step : record.steps) {
    if (step.kind != StepKind::kPatch) continue;
    commit.emplace(step.ino, Patch{.vault = record.vault,
                                   .before = *step.before,
                                   .found = FoundBy(record, step),
                                   .mount = mounts_->Of(step.to.path),
                                   .ended = summary.ended});
  }
  if (commit.empty()) return commit;
  if (summary.kind == TransactionKind::kUndo) {
    const auto list = history_.ReadAll();
    const bool takes_back = !list || TakesBack(summary, *list);
    for (auto& [ino, patch] : commit) patch.takes_back = takes_back;
  }
  if (under_way) return commit;
  const auto bytes = history_.ReadImage(summary.id);
  const auto image =
      bytes ? DecodeImage(AsBytes(*bytes)) : Fail(bytes.error().code, "");
  // Given up meanwhile.
  if (!image) return {};
  for (const ImageEntry& entry : *image) {
    if (!entry.exists) continue;
    const auto [first, last] = commit.equal_range(entry.ino);
    for (auto at = first; at != last; ++at) {
      at->second.after = {.size = entry.size, .mtime = entry.mtime};
      at->second.left = entry.ctime;
    }
  }
  return commit;
}

}  // namespace txfs
