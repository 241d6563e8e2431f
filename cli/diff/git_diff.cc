#include "cli/diff/git_diff.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "cli/diff/libgit.h"

namespace txfs::cli {

namespace {

/// A directory of files, in the order in which git's tree objects have them:
/// as if directories ended in a slash.
struct Directory {
  struct Entry {
    uint32_t mode = 0;
    git_oid id{};
    std::unique_ptr<Directory> directory;
  };
  std::map<std::string, Entry, std::less<>> entries;

  void Add(std::string_view path, uint32_t mode, const git_oid& id) {
    const size_t slash = path.find('/');
    if (slash == std::string_view::npos) {
      Entry& entry = entries[std::string(path)];
      entry.mode = mode;
      entry.id = id;
      return;
    }
    Entry& entry = entries[std::string(path.substr(0, slash + 1))];
    entry.mode = GIT_FILEMODE_TREE;
    if (!entry.directory) entry.directory = std::make_unique<Directory>();
    entry.directory->Add(path.substr(slash + 1), mode, id);
  }
};

/// Tree objects are written as bytes: git_treebuilder refuses names that a
/// workspace may well have.
Result<git_oid> WriteTree(git_odb* odb, Directory& directory) {
  std::string bytes;
  for (auto& [name, entry] : directory.entries) {
    if (entry.directory) entry.id = TRY(WriteTree(odb, *entry.directory));
    std::array<char, 16> mode{};
    std::snprintf(mode.data(), mode.size(), "%o ", entry.mode);
    bytes += mode.data();
    bytes += name.ends_with('/') ? name.substr(0, name.size() - 1) : name;
    bytes += '\0';
    bytes.append(reinterpret_cast<const char*>(entry.id.id), GIT_OID_RAWSZ);
  }
  git_oid id{};
  if (Git().git_odb_write(&id, odb, bytes.data(), bytes.size(),
                          GIT_OBJECT_TREE) != 0) {
    return GitFailure("write tree");
  }
  return id;
}

/// In a tree object for each directory of a deep file most of the time would
/// go, and libgit2 goes through them by recursion.
bool IsDeep(const GitFile& file) {
  constexpr auto kDeep = 100;
  return std::ranges::count(file.path, '/') > kDeep;
}

/// `flat`: in one tree object whose names are paths.
Result<git_oid> WriteFiles(git_odb* odb, const std::vector<GitFile>& files,
                           bool flat) {
  Directory root;
  for (const GitFile& file : files) {
    git_oid id{};
    if (Git().git_odb_write(&id, odb, file.content.data(), file.content.size(),
                            GIT_OBJECT_BLOB) != 0) {
      return GitFailure("write blob");
    }
    if (flat) {
      root.entries[file.path] = {.mode = file.mode, .id = id, .directory = {}};
    } else {
      root.Add(file.path, file.mode, id);
    }
  }
  return WriteTree(odb, root);
}

struct FreeTree {
  void operator()(git_tree* tree) const { Git().git_tree_free(tree); }
};
using TreePtr = std::unique_ptr<git_tree, FreeTree>;

Result<TreePtr> OpenTree(git_repository* repository, const git_oid& id) {
  git_tree* tree = nullptr;
  if (Git().git_tree_lookup(&tree, repository, &id) != 0) {
    return GitFailure("look up tree");
  }
  return TreePtr(tree);
}

/// Gives the repository an empty index. Else libgit2, which looks there for
/// attributes, takes the file `index` in the working directory for it.
Status SetNoIndex(git_repository* repository) {
  git_index* index = nullptr;
  if (Git().git_index_new(&index) != 0) return GitFailure("new index");
  const int error = Git().git_repository_set_index(repository, index);
  Git().git_index_free(index);  // the repository has its own reference
  if (error != 0) return GitFailure("set index");
  return {};
}

Status FindSimilar(git_diff* diff, uint16_t threshold) {
  git_diff_find_options options = GIT_DIFF_FIND_OPTIONS_INIT;
  options.flags = GIT_DIFF_FIND_RENAMES | GIT_DIFF_FIND_DONT_IGNORE_WHITESPACE;
  options.rename_threshold = threshold;
  options.rename_limit = 1000;
  if (Git().git_diff_find_similar(diff, &options) != 0) {
    return GitFailure("find renames");
  }
  return {};
}

git_diff_options PatchOptions() {
  git_diff_options options = GIT_DIFF_OPTIONS_INIT;
  options.flags = GIT_DIFF_SHOW_BINARY;
  options.id_abbrev = GIT_OID_HEXSZ;
  return options;
}

using Sink = std::function<void(LineStyle, std::string_view)>;

LineStyle StyleOf(char origin) {
  switch (origin) {
    case GIT_DIFF_LINE_FILE_HDR:
      return LineStyle::kHeader;
    case GIT_DIFF_LINE_HUNK_HDR:
      return LineStyle::kHunk;
    case GIT_DIFF_LINE_ADDITION:
      return LineStyle::kAdded;
    case GIT_DIFF_LINE_DELETION:
      return LineStyle::kDeleted;
    default:
      return LineStyle::kPlain;
  }
}

int PrintLine(const git_diff_delta*, const git_diff_hunk*,
              const git_diff_line* line, void* payload) {
  const auto& sink = *static_cast<const Sink*>(payload);
  std::string text;
  if (line->origin == GIT_DIFF_LINE_CONTEXT ||
      line->origin == GIT_DIFF_LINE_ADDITION ||
      line->origin == GIT_DIFF_LINE_DELETION) {
    text += line->origin;
  }
  text.append(line->content, line->content_len);
  sink(StyleOf(line->origin), text);
  return 0;
}

}  // namespace

void GitDiff::Free::operator()(git_diff* diff) const {
  Git().git_diff_free(diff);
}
void GitDiff::Free::operator()(git_odb* odb) const { Git().git_odb_free(odb); }
void GitDiff::Free::operator()(git_patch* patch) const {
  Git().git_patch_free(patch);
}
void GitDiff::Free::operator()(git_repository* repository) const {
  Git().git_repository_free(repository);
}

Result<GitDiff> GitDiff::Compare(const std::vector<GitFile>& before,
                                 const std::vector<GitFile>& after,
                                 uint16_t threshold) {
  TRY(LoadGit());
  GitDiff made;
  git_odb* odb = nullptr;
  if (Git().git_odb_new(&odb) != 0) return GitFailure("new object database");
  made.odb_.reset(odb);
  git_odb_backend* backend = nullptr;
  if (Git().git_mempack_new(&backend) != 0) return GitFailure("new backend");
  if (Git().git_odb_add_backend(odb, backend, 999) != 0) {
    backend->free(backend);
    return GitFailure("add backend");
  }
  git_repository* repository = nullptr;
  if (Git().git_repository_wrap_odb(&repository, odb) != 0) {
    return GitFailure("new repository");
  }
  made.repository_.reset(repository);
  TRY(SetNoIndex(repository));
  const bool flat =
      std::ranges::any_of(before, IsDeep) || std::ranges::any_of(after, IsDeep);
  const git_oid before_id = TRY(WriteFiles(odb, before, flat));
  const git_oid after_id = TRY(WriteFiles(odb, after, flat));
  const TreePtr before_tree = TRY(OpenTree(repository, before_id));
  const TreePtr after_tree = TRY(OpenTree(repository, after_id));
  const git_diff_options options = PatchOptions();
  git_diff* diff = nullptr;
  if (Git().git_diff_tree_to_tree(&diff, repository, before_tree.get(),
                                  after_tree.get(), &options) != 0) {
    return GitFailure("compare");
  }
  made.diff_.reset(diff);
  if (threshold != 0) TRY(FindSimilar(diff, threshold));
  return made;
}

Result<GitDiff> GitDiff::OfFile(const std::string& path,
                                std::optional<std::string> before,
                                std::optional<std::string> after) {
  TRY(LoadGit());
  GitDiff made;
  made.buffers_ =
      std::make_unique<Buffers>(std::move(before), std::move(after));
  const auto data = [](const std::optional<std::string>& side) {
    return side ? side->data() : nullptr;
  };
  const auto size = [](const std::optional<std::string>& side) {
    return side ? side->size() : 0;
  };
  const auto& [old_side, new_side] = *made.buffers_;
  const git_diff_options options = PatchOptions();
  git_patch* patch = nullptr;
  if (Git().git_patch_from_buffers(&patch, data(old_side), size(old_side),
                                   path.c_str(), data(new_side), size(new_side),
                                   path.c_str(), &options) != 0) {
    return GitFailure("make patch");
  }
  made.patch_.reset(patch);
  return made;
}

size_t GitDiff::DeltaCount() const {
  return diff_ ? Git().git_diff_num_deltas(diff_.get()) : 0;
}

Status GitDiff::EachPatch(
    const std::function<Status(git_patch*)>& visit) const {
  if (patch_) return visit(patch_.get());
  for (size_t i = 0; i < DeltaCount(); ++i) {
    git_patch* patch = nullptr;
    if (Git().git_patch_from_diff(&patch, diff_.get(), i) != 0) {
      return GitFailure("make patch");
    }
    const PatchPtr owned(patch);
    TRY(visit(patch));
  }
  return {};
}

std::vector<GitRename> GitDiff::Renames() const {
  std::vector<GitRename> renames;
  for (size_t i = 0; i < DeltaCount(); ++i) {
    const git_diff_delta* delta = Git().git_diff_get_delta(diff_.get(), i);
    if (delta->status != GIT_DELTA_RENAMED) continue;
    renames.push_back({.old_path = delta->old_file.path,
                       .path = delta->new_file.path,
                       .similarity = delta->similarity});
  }
  return renames;
}

Result<GitLineCounts> GitDiff::CountLines() const {
  GitLineCounts counts;
  TRY(EachPatch([&](git_patch* patch) -> Status {
    size_t insertions = 0;
    size_t deletions = 0;
    if (Git().git_patch_line_stats(nullptr, &insertions, &deletions, patch) !=
        0) {
      return GitFailure("count lines");
    }
    counts.insertions += insertions;
    counts.deletions += deletions;
    const git_diff_delta* delta = Git().git_patch_get_delta(patch);
    // Equal buffers have a patch, too, which may call them binary.
    if (delta->status == GIT_DELTA_UNMODIFIED) return {};
    counts.binary |= (delta->flags & GIT_DIFF_FLAG_BINARY) != 0;
    return {};
  }));
  return counts;
}

Status GitDiff::Print(const Sink& sink) const {
  return EachPatch([&](git_patch* patch) -> Status {
    Sink copy = sink;
    if (Git().git_patch_print(patch, PrintLine, &copy) != 0) {
      return GitFailure("print patch");
    }
    return {};
  });
}

}  // namespace txfs::cli
