#include "fs/origin/overwritten.h"

#include <fcntl.h>

#include <algorithm>
#include <ranges>
#include <set>
#include <utility>

#include "fs/base/base_mounts.h"
#include "fs/commit/commit_image.h"
#include "fs/commit/committer.h"
#include "journal/support/file.h"

namespace txfs {
namespace {

using FileState = OverwrittenContent::State;
using Patch = OverwrittenContent::Patch;
using Patches = OverwrittenContent::Patches;
using Noted = OverwrittenContent::Noted;

/// Granularity of file times, nanoseconds: a tick of the kernel's clock.
constexpr int64_t kTickNs = 10'000'000;
constexpr int64_t kSecondNs = 1'000'000'000;

bool IsDamage(const Error& error) {
  return error.code == EBADMSG || error.code == EPROTONOSUPPORT;
}

FileState StateOf(const Fingerprint& state) {
  return {state.size, state.mtime};
}

bool IsCloseTo(const Timestamp& a, const Timestamp& b) {
  const int64_t seconds = a.sec - b.sec;
  if (seconds < -1 || seconds > 1) return false;
  const int64_t apart = seconds * kSecondNs + int64_t{a.nsec} - b.nsec;
  return -kTickNs <= apart && apart <= kTickNs;
}

/// Whether a patch found the file in `state` or left it in `state`.
bool IsBetween(const Patches& patches, const FileState& state) {
  return std::ranges::any_of(patches, [&](const auto& patch) {
    return patch->found == state || patch->after == state;
  });
}

/// How many entries of `patch.began` the recorded state includes. It includes
/// all if nothing of the state before `patch` is left. Otherwise each earlier
/// entry changed the file, and the next one changed it back. `patch` is one of
/// `all`.
size_t SeenOf(const Patch& patch, const Patches& all, const Noted& noted) {
  const size_t count = patch.began.size();
  const Timestamp& ctime = noted.state.ctime;
  const FileState state = StateOf(noted.state);
  const bool is_told = patch.found && patch.found != patch.after;
  const bool is_found = is_told && patch.found == state;
  const bool is_after = is_told && patch.after == state;
  if (patch.left && ctime >= *patch.left) return count;
  if (noted.may_follow && is_after) return count;
  if (noted.may_follow && is_found) return count - 1;
  const Timestamp& began = patch.began.back();
  // Includes a record from the middle of the commit, which has its result.
  if (ctime >= began) return is_found ? count - 1 : count;
  const auto is_close = [&](const Timestamp& time) {
    return ctime >= time || IsCloseTo(ctime, time);
  };
  if (is_close(began) && is_found) return count - 1;
  if (is_close(began) && !IsBetween(all, state)) return count;
  const auto earlier = patch.began | std::views::take(count - 1);
  // The earlier entries left `found` or `after` of the last one.
  if (std::ranges::any_of(earlier, is_close)) {
    if (is_found) return count - 1;
    if (is_after) return count - 2;
  }
  return static_cast<size_t>(std::ranges::count_if(
      earlier, [&](const Timestamp& time) { return ctime >= time; }));
}

/// Whether the step sets attributes of an existing file.
bool IsOfAFile(const CommitStep& step) {
  return step.kind == StepKind::kAttributes && step.set_before &&
         step.set_before->type == FileType::kRegular;
}

bool SetsTime(const CommitStep& step) {
  return step.set_after && step.set_before->mtime != step.set_after->mtime;
}

/// The entry of `path` after the commit; null: none.
const ImageEntry* FindIn(const CommitImage& image, const std::string& path) {
  const auto at = std::ranges::lower_bound(image, path, {}, &ImageEntry::path);
  const bool is_there = at != image.end() && at->path == path && at->exists;
  return is_there ? &*at : nullptr;
}

}  // namespace

Result<OverwrittenContent::Since> OverwrittenContent::Find(
    const Noted& noted, const std::string& path, const struct stat& now) {
  const Patches all = TRY(PatchesOf(noted.state, path));
  const FileState was = StateOf(noted.state);
  const FileState is{.size = static_cast<uint64_t>(now.st_size),
                     .mtime = Timestamp::From(now.st_mtim)};
  Since since;
  bool explained = is == was;
  // The state before the patches visited so far, while the chain is unbroken.
  std::optional<FileState> at = is;
  bool unseen = false;
  for (const auto& patch : all) {
    const size_t rest = patch->began.size() - SeenOf(*patch, all, noted);
    if (rest == 0) break;
    unseen = true;
    // An even number of entries cancels out.
    const bool is_other = rest % 2 == 1;
    if (is_other) since.patches.push_back(patch);
    const auto& before = is_other ? patch->found : patch->after;
    at = at && at == patch->after ? before : std::nullopt;
    explained = explained || before == was;
  }
  since.exact = unseen && at == was;
  if (!explained && TRY(IsUnknownSince(noted.state.ctime))) {
    return Fail(ESTALE, "the earlier content of " + path +
                            " is unknown: the history of a later commit is "
                            "damaged or not kept");
  }
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
  // An inode number is unique only within its filesystem.
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
    SharedFd file;
    const auto read = [&](uint64_t from, MutableByteSpan part) -> Status {
      if (!file) {
        file = TRY(vaults_.OpenFile(
            Vaults::PathOf(patch->vault, Spot::Vault(before.name, ""))));
      }
      if (TRY(ReadFully(file->get(), from, part)) == part.size()) return {};
      return Fail(EIO,
                  "read the content that a commit overwrote in " + patch->path);
    };
    TRY(ApplyDelta(before, offset, out, read));
  }
  return {};
}

// --- the history -----------------------------------------------------------

Status OverwrittenContent::Update() {
  VaultStamp stamp = Stamp();
  if (!stamp.empty() && stamp == stamp_) return {};
  stamp_.clear();
  unknown_.reset();
  // First, because a commit that is no longer in progress is in the history.
  TRY(UpdateIntent());
  auto known = std::exchange(done_, {});
  is_damaged_ = false;
  for (const std::string& id : TRY(history_.PlanIds())) {
    if (auto node = known.extract(id)) {
      done_.insert(std::move(node));
      continue;
    }
    auto commit = ReadCommit(id);
    if (commit) {
      done_[id] = std::move(*commit);
    } else if (IsDamage(commit.error())) {
      is_damaged_ = true;
    } else if (!IsClosedOrGone(commit.error())) {
      // Such a plan was dropped meanwhile, or another user owns it.
      return std::unexpected(std::move(commit).error());
    }
  }
  if (done_.contains(under_way_.id)) under_way_ = {};
  if (IsOld(stamp)) stamp_ = std::move(stamp);
  return {};
}

Result<OverwrittenContent::Commit> OverwrittenContent::ReadCommit(
    const std::string& id) const {
  const std::string bytes = TRY(history_.ReadPlan(id));
  const CommitRecord record = TRY(DecodeRecord(AsBytes(bytes)));
  return Index(record, false);
}

Status OverwrittenContent::UpdateIntent() {
  struct stat st{};
  const bool exists =
      ::fstatat(store_, "intent", &st, AT_SYMLINK_NOFOLLOW) == 0;
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
  under_way_.id = record.summary.id;
  under_way_.ino = st.st_ino;
  under_way_.ctime = ctime;
  return {};
}

VaultStamp OverwrittenContent::Stamp() const {
  VaultStamp stamp;
  for (const char* directory : {".", "history"}) {
    struct stat st{};
    if (::fstatat(store_, directory, &st, AT_SYMLINK_NOFOLLOW) != 0) return {};
    stamp.push_back(Timestamp::From(st.st_ctim));
  }
  return stamp;
}

Result<OverwrittenContent::Commit> OverwrittenContent::Index(
    const CommitRecord& record, bool under_way) const {
  Commit commit;
  std::vector<const CommitStep*> patches;
  std::vector<const CommitStep*> attributes;
  for (const CommitStep& step : record.steps) {
    if (step.kind == StepKind::kPatch && step.before) patches.push_back(&step);
    if (IsOfAFile(step)) attributes.push_back(&step);
  }
  const bool is_about_any =
      !patches.empty() ||
      (!under_way && std::ranges::any_of(attributes, [](const auto* step) {
        return SetsTime(*step);
      }));
  if (!is_about_any) return commit;
  const std::vector<Timestamp> began = TRY(BeganOf(record.summary));
  const bool takes_back = began.size() % 2 == 0;
  CommitImage image;
  if (!under_way) {
    const std::string bytes = TRY(history_.ReadImage(record.summary.id));
    image = TRY(DecodeImage(AsBytes(bytes)));
  }
  const auto add = [&](uint64_t ino, Patch patch, const ImageEntry* now) {
    patch.vault = record.vault;
    patch.began = began;
    if (now != nullptr) {
      patch.after = {now->size, now->mtime};
      patch.left = now->ctime;
    }
    commit.emplace(ino, std::make_shared<const Patch>(std::move(patch)));
  };
  for (const CommitStep* step : patches) {
    Patch patch{.path = step->to.path, .before = *step->before};
    // The base path of the file before a commit, and after an undo.
    const auto found = std::ranges::find(
        attributes, step->to, takes_back ? &CommitStep::to : &CommitStep::from);
    const ImageEntry* now = nullptr;
    if (found != attributes.end()) {
      patch.found = {step->before->size, (*found)->set_before->mtime};
      now = FindIn(image, (*found)->to.path);
      attributes.erase(found);
    }
    if (now != nullptr && now->ino != step->ino) now = nullptr;
    add(step->ino, std::move(patch), now);
  }
  // A step that only sets a time explains the new time of a file.
  for (const CommitStep* step : attributes) {
    const ImageEntry* now = FindIn(image, step->to.path);
    if (now == nullptr || !SetsTime(*step)) continue;
    add(now->ino,
        {.path = step->to.path,
         .before = {.name = {}, .keep = UINT64_MAX, .size = {}, .ranges = {}},
         .found = FileState{now->size, step->set_before->mtime}},
        now);
  }
  return commit;
}

Result<std::vector<Timestamp>> OverwrittenContent::BeganOf(
    const TransactionSummary& summary) const {
  std::vector<Timestamp> began = {summary.ended};
  TransactionSummary at = summary;
  std::set<std::string> passed;
  while (at.kind == TransactionKind::kUndo) {
    if (!passed.insert(at.id).second) {
      return Fail(EBADMSG, "the undo records of " + at.id + " form a cycle",
                  "`txfs fsck` lists all damage");
    }
    auto undone = history_.Read(at.of);
    if (!undone && undone.error().code == ENOENT) break;
    at = TRY(std::move(undone));
    began.push_back(at.ended);
  }
  std::ranges::reverse(began);
  return began;
}

void OverwrittenContent::Begin(Timestamp time) {
  const MutexLock lock(mutex_);
  begin_ = time;
}

Result<bool> OverwrittenContent::IsUnknownSince(Timestamp time) {
  const MutexLock lock(mutex_);
  if (is_damaged_) return true;
  if (!unknown_) unknown_ = TRY(FindUnknown());
  // The transaction recorded nothing before its start.
  return *unknown_ >= std::max(time, begin_);
}

Result<Timestamp> OverwrittenContent::FindUnknown() {
  const auto is_unknown = [](const TransactionSummary& ended) {
    return ended.state == TransactionState::kCommitted && ended.changes != 0 &&
           !ended.undoable && ended.undone_by.empty();
  };
  auto list = history_.ReadAll();
  // A record was dropped during the read.
  if (!list && list.error().code == ENOENT) list = history_.ReadAll();
  if (!list) return std::unexpected(std::move(list).error());
  TRY(UpdateIntent());
  for (const TransactionSummary& ended : *list | std::views::reverse) {
    // The commit in progress has a record before its plan.
    if (!is_unknown(ended) || ended.id == under_way_.id) continue;
    const auto by_now = history_.Read(ended.id);
    if (by_now && is_unknown(*by_now)) return ended.ended;
  }
  return Timestamp();
}

}  // namespace txfs
