#include "cli/diff/file_change.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <iterator>
#include <map>
#include <utility>

namespace txfs::cli {
namespace {

constexpr uint64_t kCandidateMax = 1 << 20;
constexpr uint64_t kCandidatesMax = 128 << 20;
constexpr uint64_t kComparisonsMax = 1'000'000;
constexpr uint16_t kSimilar = 50;

char StatusOf(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::kAdded:
      return 'A';
    case ChangeKind::kDeleted:
      return 'D';
    case ChangeKind::kModified:
      return 'M';
    case ChangeKind::kRenamed:
      return 'R';
    case ChangeKind::kTypeChanged:
      return 'T';
  }
  return 'M';
}

bool IsCandidate(const NetChange& change, ChangeKind kind) {
  if (change.kind != kind || IsGitInternal(change.path)) return false;
  const auto& side =
      kind == ChangeKind::kDeleted ? change.before : change.after;
  return side && IsGitType(side->attr.type) && side->attr.size > 0 &&
         side->attr.size <= kCandidateMax;
}

/// The candidates of one kind, by path.
std::map<std::string, size_t> Candidates(const std::vector<NetChange>& changes,
                                         ChangeKind kind, uint64_t& bytes) {
  std::map<std::string, size_t> found;
  for (size_t i = 0; i < changes.size(); ++i) {
    if (!IsCandidate(changes[i], kind)) continue;
    found.emplace(changes[i].path, i);
    bytes +=
        (kind == ChangeKind::kDeleted ? changes[i].before : changes[i].after)
            ->attr.size;
  }
  return found;
}

/// Whether `error` means that this user may not read the content.
bool IsForbidden(const Error& error) {
  return error.code == EACCES || error.code == EPERM;
}

/// Without those that this user may not read.
Result<std::vector<GitFile>> ReadCandidates(
    const std::vector<NetChange>& changes,
    const std::map<std::string, size_t>& candidates, bool before,
    const ContentReader& read) {
  std::vector<WantedSide> sides;
  sides.reserve(candidates.size());
  for (const auto& [path, index] : candidates) {
    const NetChange& change = changes[index];
    sides.push_back({before ? &*change.before : &*change.after, before});
  }
  Contents contents = TRY(read(sides));
  std::vector<GitFile> files;
  size_t at = 0;
  for (const auto& [path, index] : candidates) {
    const ChangeSide& side = *sides[at].side;
    Result<std::string>& content = contents[at++];
    if (!content && IsForbidden(content.error())) continue;
    files.push_back({.path = path,
                     .mode = GitMode(side.attr),
                     .content = TRY(std::move(content))});
  }
  return files;
}

const GitFile& FileAt(const std::vector<GitFile>& sorted,
                      const std::string& path) {
  return *std::ranges::lower_bound(sorted, path, {}, &GitFile::path);
}

bool AttributesDiffer(const Attr& a, const Attr& b) {
  return a.mode != b.mode || a.uid != b.uid || a.gid != b.gid ||
         a.mtime != b.mtime;
}

/// Makes one rename of each pair that libgit2 finds.
Status MergeRenames(std::vector<NetChange>& changes, const ContentReader& read,
                    std::map<std::string, unsigned>& similarities,
                    bool& skipped) {
  uint64_t bytes = 0;
  const auto deleted = Candidates(changes, ChangeKind::kDeleted, bytes);
  const auto added = Candidates(changes, ChangeKind::kAdded, bytes);
  if (deleted.empty() || added.empty()) return {};
  if (bytes > kCandidatesMax ||
      deleted.size() * added.size() > kComparisonsMax) {
    skipped = true;
    return {};
  }
  const auto before = TRY(ReadCandidates(changes, deleted, true, read));
  const auto after = TRY(ReadCandidates(changes, added, false, read));
  const GitDiff diff = TRY(GitDiff::Compare(before, after, kSimilar));
  std::vector<bool> merged(changes.size());
  for (const GitRename& rename : diff.Renames()) {
    const size_t from = deleted.at(rename.old_path);
    NetChange& change = changes[added.at(rename.path)];
    change.kind = ChangeKind::kRenamed;
    change.old_path = rename.old_path;
    change.before = changes[from].before;
    change.content = FileAt(before, rename.old_path).content !=
                     FileAt(after, rename.path).content;
    change.attributes =
        AttributesDiffer(change.before->attr, change.after->attr);
    similarities[rename.path] = rename.similarity;
    merged[from] = true;
  }
  size_t index = 0;
  std::erase_if(changes, [&](const NetChange&) { return merged[index++]; });
  return {};
}

/// Stands for content that is equal on both sides and need not be read.
constexpr const char* kSameContent = "same\n";

const std::optional<ChangeSide>& SideOf(const NetChange& net, bool before) {
  return before ? net.before : net.after;
}

const std::string& PathOf(const NetChange& net, bool before) {
  return before && !net.old_path.empty() ? net.old_path : net.path;
}

/// Whether the diff has a file for the side.
bool HasFile(const NetChange& net, bool before) {
  const auto& side = SideOf(net, before);
  return side && IsGitType(side->attr.type) &&
         !IsGitInternal(PathOf(net, before));
}

/// Whether the content of a side that has a file is to be read: libgit2 sees no
/// renames of symlinks and prints their targets.
bool IsRead(const NetChange& net, bool before) {
  const auto& side = SideOf(net, before);
  return HasFile(net, before) &&
         (net.content || side->attr.type == FileType::kSymlink);
}

Result<std::vector<GitFile>> SideFiles(const FileChange& change, bool before,
                                       Result<std::string> content) {
  const NetChange& net = change.net;
  if (!HasFile(net, before)) return std::vector<GitFile>();
  std::vector<GitFile> files(1);
  files[0].path = PathOf(net, before);
  files[0].mode = GitMode(SideOf(net, before)->attr);
  files[0].content =
      IsRead(net, before) ? TRY(std::move(content)) : kSameContent;
  return files;
}

/// None: there is no file.
std::optional<std::string> TakeContent(std::vector<GitFile>& files) {
  if (files.empty()) return std::nullopt;
  return std::move(files[0].content);
}

std::string ModeText(uint32_t mode) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%04o", mode);
  return text.data();
}

std::string OwnerText(const Attr& attr) {
  return std::to_string(attr.uid) + ":" + std::to_string(attr.gid);
}

const char* TypeText(FileType type) {
  switch (type) {
    case FileType::kFifo:
      return "fifo";
    case FileType::kSocket:
      return "socket";
    case FileType::kCharDevice:
      return "character device";
    case FileType::kBlockDevice:
      return "block device";
    default:
      return nullptr;
  }
}

/// git writes 0644 and 0755, whatever the umask makes of them.
bool GitSaysMode(const Attr& before, const Attr& after) {
  const auto usual = [](const Attr& attr) {
    return attr.mode == 0644 || attr.mode == 0755;
  };
  return before.mode == after.mode || (usual(before) && usual(after));
}

/// Of a rename into a .git, or out of one, the half that is not in it would not
/// be seen in a patch.
void SplitRenamesOfGit(std::vector<NetChange>& changes) {
  std::vector<NetChange> gone;
  for (NetChange& change : changes) {
    if (change.kind != ChangeKind::kRenamed ||
        IsGitInternal(change.path) == IsGitInternal(change.old_path)) {
      continue;
    }
    gone.push_back({.kind = ChangeKind::kDeleted,
                    .path = std::exchange(change.old_path, {}),
                    .old_path = {},
                    .before = std::exchange(change.before, std::nullopt),
                    .after = std::nullopt,
                    .content = true});
    change.kind = ChangeKind::kAdded;
    change.content = true;
    change.attributes = false;
  }
  std::ranges::move(gone, std::back_inserter(changes));
}

/// Whether owner or mode may close the content of `side` to this user.
bool MayBeClosed(const std::optional<ChangeSide>& side) {
  const uid_t user = ::geteuid();
  return side && side->attr.type == FileType::kRegular && user != 0 &&
         (side->attr.uid != user || (side->attr.mode & S_IRUSR) == 0) &&
         side->attr.size <= kPatchContentMax;
}

/// Similarity of a rename, percent.
Result<unsigned> Similarity(const FileChange& change, ContentsAhead& contents) {
  if (!change.net.content) return 100;
  if (IsTooLarge(change)) return 0;
  const auto diff = TRY(DiffOf(change, contents));
  const auto renames = diff ? diff->Renames() : std::vector<GitRename>();
  return renames.empty() ? 0 : renames[0].similarity;
}

/// As FileChange, without its content.
FileChange Unread(NetChange net, bool closed) {
  const char status = StatusOf(net.kind);
  const bool is_known = status != 'R' || !net.content;
  return {.status = status,
          .similarity = is_known ? 100U : 0U,
          .net = std::move(net),
          .closed = closed};
}

void AppendUnread(std::vector<FileChange>& list, std::vector<NetChange> changes,
                  bool closed) {
  if (changes.empty()) return;
  for (NetChange& change : changes) {
    list.push_back(Unread(std::move(change), closed));
  }
  std::ranges::stable_sort(
      list, {},
      [](const FileChange& change) -> const auto& { return change.net.path; });
}

}  // namespace

bool IsGitType(FileType type) {
  return type == FileType::kRegular || type == FileType::kSymlink;
}

bool IsGitInternal(std::string_view path) {
  while (!path.empty()) {
    const size_t slash = path.find('/');
    if (path.substr(0, slash) == ".git") return true;
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
  }
  return false;
}

uint32_t GitMode(const Attr& attr) {
  if (attr.type == FileType::kSymlink) return kGitSymlink;
  return (attr.mode & 0100) != 0 ? kGitExecutable : kGitFile;
}

Result<std::vector<FileChange>> FileChanges(std::vector<NetChange> changes,
                                            const ContentReader& read,
                                            bool* skipped) {
  std::map<std::string, unsigned> similarities;
  TRY(MergeRenames(changes, read, similarities, *skipped));
  SplitRenamesOfGit(changes);
  std::vector<FileChange> files;
  files.reserve(changes.size());
  std::vector<FileChange> renames;  // of which the journal knows
  for (NetChange& change : changes) {
    FileChange file{.status = StatusOf(change.kind), .net = std::move(change)};
    const auto found = similarities.find(file.net.path);
    const bool is_rename = file.status == 'R';
    if (is_rename && found != similarities.end()) {
      file.similarity = found->second;
    }
    const bool is_compared = is_rename && found == similarities.end();
    (is_compared ? renames : files).push_back(std::move(file));
  }
  ContentsAhead contents(renames, read);
  for (FileChange& file : renames) {
    file.similarity = TRY(Similarity(file, contents));
  }
  std::ranges::move(renames, std::back_inserter(files));
  std::ranges::sort(files, {}, [](const FileChange& file) -> const auto& {
    return file.net.path;
  });
  return files;
}

Result<ShownChanges> ShowChanges(std::vector<NetChange> readable,
                                 std::vector<NetChange> closed,
                                 std::vector<NetChange> lost,
                                 const ContentReader& read) {
  ShownChanges shown;
  shown.changes = TRY(FileChanges(std::move(readable), read, &shown.skipped));
  AppendUnread(shown.changes, std::move(closed), true);
  AppendUnread(shown.changes, std::move(lost), false);
  return shown;
}

Result<std::vector<NetChange>> TakeClosed(std::vector<NetChange>& changes,
                                          const ContentProbe& probe) {
  std::vector<WantedSide> sides;
  std::vector<size_t> owners;  // of the sides, as indices of changes
  for (size_t i = 0; i < changes.size(); ++i) {
    if (!changes[i].content) continue;
    for (const bool before : {true, false}) {
      const auto& side = SideOf(changes[i], before);
      if (!MayBeClosed(side)) continue;
      sides.push_back({&*side, before});
      owners.push_back(i);
    }
  }
  if (sides.empty()) return std::vector<NetChange>();
  const std::vector<Status> probed = TRY(probe(sides));
  std::vector<bool> is_closed(changes.size());
  for (size_t i = 0; i < probed.size(); ++i) {
    if (!probed[i] && IsForbidden(probed[i].error())) {
      is_closed[owners[i]] = true;
    }
  }
  std::vector<NetChange> closed;
  std::vector<NetChange> open;
  for (size_t i = 0; i < changes.size(); ++i) {
    (is_closed[i] ? closed : open).push_back(std::move(changes[i]));
  }
  changes = std::move(open);
  return closed;
}

bool IsTooLarge(const FileChange& change) {
  const auto too_large = [](const std::optional<ChangeSide>& side) {
    return side && side->attr.type == FileType::kRegular &&
           side->attr.size > kPatchContentMax;
  };
  return change.net.content &&
         (too_large(change.net.before) || too_large(change.net.after));
}

bool IsInPatch(const FileChange& change) {
  const NetChange& net = change.net;
  const auto visible = [](const std::optional<ChangeSide>& side) {
    return side && IsGitType(side->attr.type);
  };
  return !IsGitInternal(net.path) &&
         (visible(net.before) || visible(net.after));
}

ContentsAhead::ContentsAhead(const std::vector<FileChange>& changes,
                             const ContentReader& read)
    : read_(read) {
  for (const FileChange& change : changes) {
    if (IsWanted(change)) wanted_.push_back(&change);
  }
}

bool ContentsAhead::IsWanted(const FileChange& change) {
  return (IsRead(change.net, true) || IsRead(change.net, false)) &&
         IsInPatch(change) && !change.closed && !IsTooLarge(change);
}

Result<SideContents> ContentsAhead::Of(const FileChange& change) {
  if (!IsWanted(change)) return SideContents();
  while (wanted_.at(next_) != &change) {
    ++next_;
    if (!ready_.empty()) ready_.pop_front();
  }
  if (ready_.empty()) TRY(ReadBatch());
  SideContents contents = std::move(ready_.front());
  ready_.pop_front();
  ++next_;
  return contents;
}

Status ContentsAhead::ReadBatch() {
  constexpr uint64_t kBytes = 1 << 20;
  constexpr size_t kSides = 1000;
  std::vector<WantedSide> sides;
  uint64_t bytes = 0;
  size_t end = next_;
  for (; end < wanted_.size() && sides.size() + 2 <= kSides; ++end) {
    const NetChange& net = wanted_[end]->net;
    for (const bool before : {true, false}) {
      if (IsRead(net, before)) bytes += SideOf(net, before)->attr.size + 1;
    }
    if (bytes > kBytes && end != next_) break;
    for (const bool before : {true, false}) {
      if (IsRead(net, before)) sides.push_back({&*SideOf(net, before), before});
    }
  }
  Contents contents = TRY(read_(sides));
  size_t at = 0;
  for (size_t i = next_; i < end; ++i) {
    SideContents& own = ready_.emplace_back();
    const NetChange& net = wanted_[i]->net;
    if (IsRead(net, true)) own.before = std::move(contents[at++]);
    if (IsRead(net, false)) own.after = std::move(contents[at++]);
  }
  return {};
}

Result<std::optional<GitDiff>> DiffOf(const FileChange& change,
                                      ContentsAhead& contents) {
  if (change.closed) return std::nullopt;
  SideContents own = TRY(contents.Of(change));
  auto before = SideFiles(change, true, std::move(own.before));
  if (!before && IsForbidden(before.error())) return std::nullopt;
  if (!before) return std::unexpected(before.error());
  auto after = SideFiles(change, false, std::move(own.after));
  if (!after && IsForbidden(after.error())) return std::nullopt;
  if (!after) return std::unexpected(after.error());
  const auto is_plain = [](const GitFile& file) {
    return file.mode == kGitFile;
  };
  const bool any = !before->empty() || !after->empty();
  if (any && change.status != 'R' && std::ranges::all_of(*before, is_plain) &&
      std::ranges::all_of(*after, is_plain)) {
    return GitDiff::OfFile(change.net.path, TakeContent(*before),
                           TakeContent(*after));
  }
  // What the journal knows to be a rename is one however little is alike.
  return GitDiff::Compare(*before, *after, change.status == 'R' ? 1 : 0);
}

std::string DescribeAttributes(const FileChange& change) {
  const auto& before = change.net.before;
  const auto& after = change.net.after;
  if (!before || !after || before->attr.type != after->attr.type) {
    const auto& side = after ? after : before;
    const char* type = side ? TypeText(side->attr.type) : nullptr;
    if (type == nullptr) return {};
    return std::string(after ? "added " : "deleted ") + type;
  }
  std::string text;
  if (!GitSaysMode(before->attr, after->attr)) {
    text = "mode " + ModeText(before->attr.mode) + " -> " +
           ModeText(after->attr.mode);
  }
  if (before->attr.uid != after->attr.uid ||
      before->attr.gid != after->attr.gid) {
    text += (text.empty() ? "" : ", ") + ("owner " + OwnerText(before->attr)) +
            " -> " + OwnerText(after->attr);
  }
  return text;
}

}  // namespace txfs::cli
