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
  std::vector<GitFile> files;
  for (const auto& [path, index] : candidates) {
    const NetChange& change = changes[index];
    const ChangeSide& side = before ? *change.before : *change.after;
    auto content = read(side, before);
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

Result<std::vector<GitFile>> SideFiles(const FileChange& change, bool before,
                                       const ContentReader& read) {
  const NetChange& net = change.net;
  const auto& side = before ? net.before : net.after;
  const std::string& path =
      before && !net.old_path.empty() ? net.old_path : net.path;
  if (!side || !IsGitType(side->attr.type) || IsGitInternal(path)) {
    return std::vector<GitFile>();
  }
  std::string content = kSameContent;
  // libgit2 sees no renames of symlinks and prints their targets.
  if (net.content || side->attr.type == FileType::kSymlink) {
    content = TRY(read(*side, before));
  }
  return std::vector<GitFile>{{.path = path,
                               .mode = GitMode(side->attr),
                               .content = std::move(content)}};
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

/// Whether this user may not read `side`. Probes only the files that owner or
/// mode may close to this user, because each probe is a request.
bool IsClosed(const std::optional<ChangeSide>& side, bool before,
              const ContentProbe& probe) {
  const uid_t user = ::geteuid();
  const bool may_be =
      side && side->attr.type == FileType::kRegular && user != 0 &&
      (side->attr.uid != user || (side->attr.mode & S_IRUSR) == 0);
  if (!may_be || side->attr.size > kPatchContentMax) return false;
  const Status probed = probe(*side, before);
  return !probed && IsForbidden(probed.error());
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
  for (NetChange& change : changes) {
    FileChange file{.status = StatusOf(change.kind), .net = std::move(change)};
    if (const auto found = similarities.find(file.net.path);
        found != similarities.end() && file.status == 'R') {
      file.similarity = found->second;
    } else if (file.status == 'R') {
      file.similarity = TRY(Similarity(file, read));
    }
    files.push_back(std::move(file));
  }
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
  shown.at_hand = TRY(FileChanges(std::move(readable), read, &shown.skipped));
  AppendUnread(shown.at_hand, std::move(closed), true);
  shown.all = shown.at_hand;
  AppendUnread(shown.all, std::move(lost), false);
  return shown;
}

std::vector<NetChange> TakeClosed(std::vector<NetChange>& changes,
                                  const ContentProbe& probe) {
  std::vector<NetChange> closed;
  std::vector<NetChange> open;
  for (NetChange& change : changes) {
    const bool is_closed =
        change.content && (IsClosed(change.before, true, probe) ||
                           IsClosed(change.after, false, probe));
    (is_closed ? closed : open).push_back(std::move(change));
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

Result<std::optional<GitDiff>> DiffOf(const FileChange& change,
                                      const ContentReader& read) {
  if (change.closed) return std::nullopt;
  const auto before = SideFiles(change, true, read);
  if (!before && IsForbidden(before.error())) return std::nullopt;
  if (!before) return std::unexpected(before.error());
  const auto after = SideFiles(change, false, read);
  if (!after && IsForbidden(after.error())) return std::nullopt;
  if (!after) return std::unexpected(after.error());
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

Result<unsigned> Similarity(const FileChange& change,
                            const ContentReader& read) {
  if (!change.net.content) return 100;
  if (IsTooLarge(change)) return 0;
  const auto diff = TRY(DiffOf(change, read));
  const auto renames = diff ? diff->Renames() : std::vector<GitRename>();
  return renames.empty() ? 0 : renames[0].similarity;
}

}  // namespace txfs::cli
