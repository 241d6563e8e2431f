#include "cli/hook/free_call.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <ranges>
#include <set>

#include "cli/hook/own_repository.h"
#include "cli/hook/secret_path.h"
#include "cli/locate/way.h"
#include "cli/output/paths.h"
#include "fs/host/mount_table.h"
#include "policy/ascii.h"

namespace txfs::cli {
namespace {

using How = PlainUse::How;
using policy::Region;
using Names = std::vector<std::string>;

/// More paths of one text are not looked at.
constexpr size_t kMostPaths = 256;
constexpr size_t kMostEntries = 4096;

/// Directories of the system that have nothing to hide.
constexpr auto kOpenDirectories = std::to_array<std::string_view>(
    {"/usr", "/bin", "/lib", "/lib64", "/opt", "/etc/os-release", "/etc/hosts",
     "/etc/debian_version", "/proc/cpuinfo", "/proc/meminfo", "/proc/version",
     "/dev/null"});

std::optional<struct stat> StatusOf(const std::string& path, int flags = 0) {
  struct stat st{};
  if (::fstatat(AT_FDCWD, path.c_str(), &st, flags) != 0) return std::nullopt;
  return st;
}

bool IsDirectoryNow(const std::string& path) {
  const auto st = StatusOf(path);
  return st && S_ISDIR(st->st_mode);
}

/// Without symbolic links; what is missing is taken literally.
Result<std::string> RealPath(const std::string& directory,
                             const std::string& path) {
  return WalkTo(MakeAbsolute(directory, path), [](int) { return Status(); });
}

/// The names that `word` stands for in `directory`; none: too many, or it is
/// not known.
std::optional<Names> NamesIn(const policy::Word& word,
                             const std::string& directory) {
  if (!IsPattern(word)) return Names{word.text};
  const size_t slash = word.text.rfind('/') + 1;
  const std::string before = word.text.substr(0, slash);
  const std::string pattern = word.text.substr(slash);
  // What a bracket stands for depends on the language.
  if (before.find_first_of("*?[") != std::string::npos || pattern.empty() ||
      pattern.contains('[')) {
    return std::nullopt;
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(
      ::opendir(MakeAbsolute(directory, before.empty() ? "." : before).c_str()),
      ::closedir);
  Names names;
  size_t entries = 0;
  while (stream != nullptr) {
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) break;
    if (++entries > kMostEntries) return std::nullopt;
    const std::string name = entry->d_name;
    // A character of a shell may be several bytes.
    if (pattern.contains('?') && !std::ranges::all_of(name, policy::IsAscii)) {
      return std::nullopt;
    }
    if (::fnmatch(pattern.c_str(), name.c_str(), FNM_PERIOD) != 0) continue;
    // ".*" has the directory above in it.
    if (name == "..") return std::nullopt;
    if (before.empty() && name.starts_with('-')) return std::nullopt;
    if (names.size() == kMostPaths) return std::nullopt;
    names.push_back(before + name);
  }
  if (names.empty()) names.push_back(word.text);
  return names;
}

/// Whether a variable of the environment leads `use` elsewhere.
bool IsLedElsewhere(const PlainUse& use,
                    const policy::Surroundings& surroundings) {
  if (use.searched == "rg") {
    const char* config = std::getenv("RIPGREP_CONFIG_PATH");
    if (config == nullptr || *config == '\0') return false;
    return *config != '/' ||
           policy::RegionOf(config, surroundings) != Region::kHome;
  }
  const char* directories = std::getenv("CDPATH");
  if (directories == nullptr || *directories == '\0') return false;
  return std::ranges::any_of(use.files, [&](const PlainUse::File& file) {
    return file.how == How::kEnter && !use.is_git &&
           !file.file.text.starts_with('/') && !file.file.text.starts_with('.');
  });
}

/// Looks at one text, part after part.
class Inspector {
 public:
  Inspector(const CommandStart& start, CallSite& site)
      : around_(start.shell.surroundings), site_(site) {
    const bool in_mount = start.confinement == policy::Confinement::kMount;
    if (!in_mount || !site.mount()) return;
    const std::string& root = site.mount()->mountpoint;
    base_ = site.mount()->source;
    const auto table = ReadMountTable();
    const auto st = StatusOf(root);
    // What is done to all below a directory would reach a mount there.
    const auto is_below = [&](const MountEntry& entry) {
      return entry.mountpoint != root && IsWithin(entry.mountpoint, root);
    };
    if (!table || !st || std::ranges::any_of(*table, is_below)) return;
    root_ = root;
    device_ = st->st_dev;
  }

  Result<bool> Allows(const PlainPart& part) {
    const PlainUse& use = part.use;
    if (part.directory.empty() || (use.changes && root_.empty())) return false;
    if (!use.searched.empty() && !IsInstalled(use)) return false;
    if (IsLedElsewhere(use, around_)) return false;
    directory_ = TRY(RealPath("/", part.directory));
    if (!IsDirectoryNow(directory_) || !IsOpen(directory_)) return false;
    // Paths lead elsewhere, perhaps, also to another repository.
    if (has_moved_ && (use.is_git || !use.files.empty())) return false;
    for (const PlainUse::File& file : use.files) {
      if (!TRY(AllowsFile(file, use))) return false;
    }
    if (use.is_git &&
        !IsOwnRepository(directory_, {.writes_index = use.writes_index,
                                      .index_changes = has_added_})) {
      return false;
    }
    if (use.is_git && use.changes && !IsInMount(directory_)) return false;
    has_added_ = has_added_ || (use.is_git && use.changes);
    has_changes_ = has_changes_ || use.changes;
    return true;
  }

 private:
  /// Whether the first program of this name in PATH is one that no agent has
  /// put there. git starts others.
  [[nodiscard]] bool IsInstalled(const PlainUse& use) const {
    const char* variable = std::getenv("PATH");
    if (variable == nullptr) return true;
    for (const auto part : std::views::split(std::string_view(variable), ':')) {
      const std::string directory(std::string_view(part.begin(), part.end()));
      // The one in which the shell is.
      if (!directory.starts_with('/')) return false;
      const Region region = policy::RegionOf(directory, around_);
      const bool is_own = region == Region::kWorkspace ||
                          region == Region::kTemporary ||
                          (!base_.empty() && IsWithin(directory, base_));
      const bool is_there =
          ::access(JoinPath(directory, use.searched).c_str(), X_OK) == 0;
      if (is_own && (is_there || use.is_git)) return false;
      if (is_there && !use.is_git) return true;
    }
    return true;
  }

  /// Whether reading `path`, which has no links in it, needs no question.
  [[nodiscard]] bool IsOpen(const std::string& path) const {
    if (IsSecretPath(path)) return false;
    if (path.starts_with("/dev/") || path.starts_with("/proc/")) {
      return IsOfSystem(path);
    }
    const Region region = policy::RegionOf(path, around_);
    if (region == Region::kWorkspace) {
      // A whole home may be the workspace.
      return around_.is_workspace ||
             (around_.workspace != "/" &&
              !IsWithin(around_.home, around_.workspace));
    }
    return region == Region::kTemporary || IsOfSystem(path);
  }
  static bool IsOfSystem(const std::string& path) {
    return std::ranges::any_of(kOpenDirectories, [&](std::string_view open) {
      return IsWithin(path, open);
    });
  }

  /// Whether `path`, which has no links in it, is in the mount, and in no other
  /// below it.
  [[nodiscard]] bool IsInMount(const std::string& path) const {
    if (root_.empty() || !IsWithin(path, root_)) return false;
    std::string there = path;
    auto st = StatusOf(there, AT_SYMLINK_NOFOLLOW);
    while (!st && there.size() > root_.size()) {
      there.resize(there.rfind('/'));
      st = StatusOf(there, AT_SYMLINK_NOFOLLOW);
    }
    return st && st->st_dev == device_;
  }

  /// Whether the transaction has `path` and no rule is against `op`.
  Result<bool> AllowsChange(policy::Op op, const std::string& path,
                            const std::string& new_path = "") {
    if (++paths_ > kMostPaths || !IsInMount(path)) return false;
    policy::Proposal proposal{.op = op, .path = {}};
    proposal.path = RelativeTo(path, root_).value_or("");
    if (!new_path.empty()) {
      if (!IsInMount(new_path)) return false;
      proposal.new_path = RelativeTo(new_path, root_).value_or("");
      if (proposal.new_path.empty()) return false;
    }
    if (proposal.path.empty() || IsOfGit(proposal.path) ||
        IsOfGit(proposal.new_path)) {
      return false;
    }
    const RuleVerdict verdict = TRY(site_.JudgeOperation(proposal));
    return verdict.action <= policy::Action::kAudit;
  }

  Result<bool> AllowsFile(const PlainUse::File& file, const PlainUse& use) {
    if (file.how == How::kEnter) {
      // Where it fails, what follows runs elsewhere: plain text goes on only
      // if it does not.
      if (!IsOpen(policy::NormalPath(directory_, file.file.text))) return false;
      const std::string entered = MakeAbsolute(directory_, file.file.text);
      // "nope/.." is no directory to the kernel.
      if (!IsDirectoryNow(entered) || ::access(entered.c_str(), X_OK) != 0) {
        return false;
      }
      directory_ = TRY(RealPath(directory_, file.file.text));
      return !has_changes_ && IsDirectoryNow(directory_) && IsOpen(directory_);
    }
    const auto names = NamesIn(file.file, directory_);
    if (!names) return false;
    for (const std::string& name : *names) {
      // "./*/../../x" and the like.
      const bool is_pattern = IsPattern(file.file) && name.contains("..");
      if (is_pattern || !TRY(AllowsName(file, name, use))) return false;
    }
    return true;
  }

  Result<bool> AllowsName(const PlainUse::File& file, const std::string& name,
                          const PlainUse& use) {
    // Elsewhere, nothing is looked at: it may hang.
    const std::string as_written = policy::NormalPath(directory_, name);
    if (!IsOpen(as_written)) return false;
    const std::string real = TRY(RealPath(directory_, name));
    switch (file.how) {
      case How::kFile:
        // Also links in a directory would be read.
        if (IsDirectoryNow(real)) return false;
        [[fallthrough]];
      case How::kEnter:
      case How::kDirectory:
        if (++paths_ > kMostPaths || !IsOpen(real)) return false;
        return !use.changes || IsInMount(real);
      case How::kWrite:
        return !HasOtherNames(real) &&
               TRY(AllowsChange(
                   StatusOf(real) ? policy::Op::kWrite : policy::Op::kCreate,
                   real));
      case How::kMake:
        for (std::string made = real; IsWithin(made, root_) && made != root_;
             made.resize(made.rfind('/'))) {
          made_.insert(made);
        }
        if (IsDirectoryNow(real)) return IsInMount(real);
        return AllowsChange(policy::Op::kMkdir, real);
      case How::kRemove: {
        // With a slash behind it, a link may be followed.
        const std::string path =
            name.ends_with('/') ? real : ResolveParent(directory_, name);
        const auto st = StatusOf(path, AT_SYMLINK_NOFOLLOW);
        const bool is_directory = st && S_ISDIR(st->st_mode);
        if (is_directory) removed_.insert(path);
        has_moved_ = has_moved_ || (st && S_ISLNK(st->st_mode));
        return AllowsChange(
            is_directory ? policy::Op::kRmdir : policy::Op::kUnlink, path);
      }
      case How::kMode:
        return !HasOtherNames(real) &&
               TRY(AllowsChange(policy::Op::kChmod, real));
      case How::kCopy:
      case How::kMove:
        return AllowsTransfer(file, name);
    }
    return false;
  }

  Result<bool> AllowsTransfer(const PlainUse::File& file,
                              const std::string& name) {
    const std::string_view last = policy::BaseName(name);
    if (last == ".." || last.empty()) return false;
    const std::string from = ResolveParent(directory_, name);
    const bool moves = file.how == How::kMove;
    if (!moves && !IsOpen(TRY(RealPath(directory_, name)))) return false;
    if (IsSecretPath(from)) return false;
    if (!IsOpen(policy::NormalPath(directory_, file.to.text))) return false;
    std::string to = TRY(RealPath(directory_, file.to.text));
    // Whether it copies to it or into it is known no more.
    if (removed_.contains(to)) return false;
    if (last != "." && (IsDirectoryNow(to) || made_.contains(to))) {
      to = TRY(RealPath(to, std::string(policy::BaseName(from))));
    }
    if (HasOtherNames(to)) return false;
    if (!TRY(AllowsChange(
            StatusOf(to) ? policy::Op::kWrite : policy::Op::kCreate, to))) {
      return false;
    }
    if (moves && !TRY(AllowsChange(policy::Op::kRename, from, to)))
      return false;
    const auto st = StatusOf(from, AT_SYMLINK_NOFOLLOW);
    if (!st || S_ISREG(st->st_mode)) return true;
    has_moved_ = true;
    return !S_ISDIR(st->st_mode) || TRY(AllowsTree(from, to));
  }

  /// A rule may be about another one.
  static bool HasOtherNames(const std::string& path) {
    const auto st = StatusOf(path);
    return st && !S_ISDIR(st->st_mode) && st->st_nlink > 1;
  }

  /// What is below the directory `from` gets names below `to`, which rules may
  /// hold.
  Result<bool> AllowsTree(const std::string& from, const std::string& to) {
    std::error_code error;
    std::filesystem::recursive_directory_iterator entries(from, error);
    for (; !error && entries != std::filesystem::end(entries);
         entries.increment(error)) {
      const std::string path = entries->path();
      if (IsSecretPath(path)) return false;
      const policy::Op op = entries->is_symlink(error) ? policy::Op::kSymlink
                            : entries->is_directory(error)
                                ? policy::Op::kMkdir
                                : policy::Op::kCreate;
      // A link that is there already leads elsewhere.
      const std::string target =
          TRY(RealPath(to, RelativeTo(path, from).value_or("")));
      if (!TRY(AllowsChange(op, target))) return false;
    }
    return !error;
  }

  const policy::Surroundings& around_;
  CallSite& site_;
  std::string root_;  ///< of the mount; "": there is none
  std::string base_;  ///< the directory that the mount shows
  dev_t device_ = 0;
  std::string directory_;
  std::set<std::string> made_, removed_;  ///< directories
  bool has_changes_ = false;
  bool has_moved_ = false;  ///< paths may lead elsewhere than they do now
  bool has_added_ = false;  ///< to git's index
  size_t paths_ = 0;
};

}  // namespace

std::vector<PlainPart> PlainPartsOf(const ShellReading& reading) {
  std::vector<PlainPart> parts;
  if (!reading.is_plain) return {};
  for (const ShellPart& part : reading.parts) {
    auto use = UseOf(part.command);
    if (!use) return {};
    parts.push_back({*std::move(use), part.command.directory});
  }
  for (const auto& [file, directory] : reading.inputs) {
    PlainUse use;
    use.files.push_back({How::kFile, file});
    parts.push_back({std::move(use), directory});
  }
  return parts;
}

Result<bool> MayRunUnasked(const std::vector<PlainPart>& parts,
                           const CommandStart& start, CallSite& site) {
  if (parts.empty()) return false;
  Inspector inspector(start, site);
  for (const PlainPart& part : parts) {
    if (!TRY(inspector.Allows(part))) return false;
  }
  return true;
}

}  // namespace txfs::cli
