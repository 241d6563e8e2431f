#include "cli/run/probes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <ranges>
#include <set>
#include <tuple>

#include "cli/locate/reach.h"
#include "cli/locate/trust.h"
#include "cli/output/paths.h"
#include "cli/output/text.h"
#include "cli/protocol/runtime_dir.h"
#include "cli/run/home_mount.h"
#include "cli/run/limits.h"
#include "cli/run/proxy.h"
#include "cli/run/run_transaction.h"
#include "cli/run/sandbox_probes.h"
#include "cli/shell/syntax.h"
#include "fs/host/mount_table.h"
#include "fs/host/processes.h"
#include "journal/support/bytes.h"
#include "journal/support/file.h"
#include "journal/support/filesystem_kind.h"
#include "journal/support/unique_fd.h"

namespace txfs::cli {
namespace {

/// A directory with a name of its own, removed at its end.
class ProbeDirectory {
 public:
  static Result<std::unique_ptr<ProbeDirectory>> Make() {
    const char* tmp = std::getenv("TMPDIR");
    std::string path = ResolvePath("/", tmp != nullptr ? tmp : "/tmp");
    path = JoinPath(path, "txfs-doctor.XXXXXX");
    if (::mkdtemp(path.data()) == nullptr) {
      return Fail(errno, "cannot make the temporary directory " + path,
                  "set TMPDIR to a directory of your own");
    }
    return std::unique_ptr<ProbeDirectory>(new ProbeDirectory(path));
  }
  ~ProbeDirectory() { std::ignore = RemoveTree(AT_FDCWD, path_); }
  ProbeDirectory(const ProbeDirectory&) = delete;
  ProbeDirectory& operator=(const ProbeDirectory&) = delete;

  [[nodiscard]] std::string Below(const char* name) const {
    return JoinPath(path_, name);
  }

 private:
  explicit ProbeDirectory(std::string path) : path_(std::move(path)) {}

  const std::string path_;
};

constexpr const char* kProbeFile = "file";
constexpr std::string_view kProbeContent = "written through a mount";

/// Writes through the mount at `mountpoint` of `base`, and reads it back.
Status UseMount(const std::string& mountpoint, const std::string& base) {
  const UniqueFd root =
      TRY(OpenAt(AT_FDCWD, mountpoint, O_RDONLY | O_DIRECTORY));
  TRY(ReplaceFile(root.get(), kProbeFile, kProbeContent));
  if (TRY(ReadWholeFile(root.get(), kProbeFile)) != kProbeContent) {
    return Fail(0, "a mount does not return what was written to it");
  }
  if (::access(JoinPath(base, kProbeFile).c_str(), F_OK) == 0) {
    return Fail(0, "a mount wrote to its workspace before the commit");
  }
  return {};
}

Status TryMount() {
  const std::unique_ptr<ProbeDirectory> directory = TRY(ProbeDirectory::Make());
  const std::string base = directory->Below("workspace");
  const std::string mountpoint = directory->Below("mount");
  TRY(MakeDirectoryAt(AT_FDCWD, base, 0700));
  TRY(MakeDirectoryAt(AT_FDCWD, mountpoint, 0700));
  const std::unique_ptr<HomeMount> mount =
      TRY(HomeMount::Start(base, mountpoint, directory->Below("store"), {}));
  TRY(mount->Await());
  TRY(UseMount(mountpoint, base));
  const HomeChanges changes = TRY(mount->Finish({kProbeFile}));
  if (!changes.problem.empty()) return Fail(0, changes.problem);
  if (TRY(ReadWholeFile(AT_FDCWD, JoinPath(base, kProbeFile))) !=
      kProbeContent) {
    return Fail(0, "a commit does not write what was written to the mount");
  }
  return {};
}

/// The workspace that a run from `directory` would have.
Result<RealWorkspace> WorkspaceAround(const std::string& directory) {
  const auto around = FindTxfsMount(directory);
  return around ? ReachWorkspaceOf(*around) : ReachWorkspace(directory);
}

/// Which renames a filesystem has.
struct Renames {
  bool exchange = false;
  bool noreplace = false;
};

/// Two files in a directory of a name that belongs to txfs, so that no mount
/// shows it; removed at its end.
class TwoFiles {
 public:
  static Result<std::unique_ptr<TwoFiles>> Make(int base) {
    std::string name = ".txfs-vault-" + TRY(MakeRunName());
    TRY(MakeDirectoryAt(base, name, 0700));
    std::unique_ptr<TwoFiles> files(new TwoFiles(base, name));
    files->directory_ = TRY(OpenDirectoryBelow(base, name));
    for (const char* file : {"a", "b"}) {
      TRY(OpenAt(files->directory_.get(), file, O_WRONLY | O_CREAT | O_EXCL,
                 0600));
    }
    return files;
  }
  ~TwoFiles() { std::ignore = RemoveTree(base_, name_); }
  TwoFiles(const TwoFiles&) = delete;
  TwoFiles& operator=(const TwoFiles&) = delete;

  [[nodiscard]] Renames Try() const {
    Renames renames;
    renames.exchange = Rename("a", "b", RENAME_EXCHANGE) == 0;
    renames.noreplace = Rename("a", "b", RENAME_NOREPLACE) != 0 &&
                        errno == EEXIST &&
                        Rename("a", "c", RENAME_NOREPLACE) == 0;
    return renames;
  }

 private:
  TwoFiles(int base, std::string name) : base_(base), name_(std::move(name)) {}
  int Rename(const char* from, const char* to, unsigned flags) const {
    return ::renameat2(directory_.get(), from, directory_.get(), to, flags);
  }

  const int base_;
  const std::string name_;
  UniqueFd directory_;
};

/// The nearest directory at or above `path` that is there.
std::string NearestThere(std::string path) {
  struct stat st{};
  while (path.size() > 1 && ::stat(path.c_str(), &st) != 0 && errno == ENOENT) {
    path.resize(std::max<size_t>(path.rfind('/'), 1));
  }
  return path;
}

/// A new transaction needs about 3 MiB, and a run has two.
constexpr uint64_t kLeastBytes = uint64_t{8} << 20;
constexpr uint64_t kFewBytes = uint64_t{256} << 20;
constexpr uint64_t kLeastFiles = 100;

constexpr const char* kElsewhere =
    "set XDG_STATE_HOME to a directory on a local filesystem, or name one with "
    "--store";

/// The words for a shell.
std::string ShellWords(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += " " + QuoteShell(word);
  return text;
}

/// Where something is mounted, in any mount namespace whose processes this one
/// may look at.
std::set<std::string> MountpointsAnywhere() {
  std::set<std::string> seen, mountpoints;
  std::vector<std::string> processes = {"self"};
  for (const pid_t pid : ListProcesses()) {
    processes.push_back(std::to_string(pid));
  }
  for (const std::string& process : processes) {
    std::array<char, 64> space{};
    const std::string link = "/proc/" + process + "/ns/mnt";
    if (::readlink(link.c_str(), space.data(), space.size() - 1) < 0 ||
        !seen.insert(space.data()).second) {
      continue;
    }
    const auto table = ReadMountTable(process);
    if (!table) continue;
    for (const MountEntry& entry : *table) {
      mountpoints.insert(entry.mountpoint);
    }
  }
  return mountpoints;
}

/// The directories of runs in `directory`, if that is this user's.
std::vector<std::string> RunsIn(const std::string& directory) {
  std::vector<std::string> runs;
  const auto fd = OpenOwnParent(JoinPath(directory, "."));
  const auto names =
      fd ? ListNames(fd->get(), ".") : Result<std::vector<std::string>>();
  if (!names) return runs;
  for (const std::string& name : *names) {
    struct stat st{};
    if (name.starts_with(kRunPrefix) &&
        ::fstatat(fd->get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISDIR(st.st_mode)) {
      runs.push_back(JoinPath(directory, name));
    }
  }
  return runs;
}

/// Whether a run made the directory `mountpoint`.
bool IsOfRun(const std::string& mountpoint) {
  return std::ranges::any_of(
      RuntimeDirectories(::geteuid()), [&](const std::string& directory) {
        return mountpoint.starts_with(
            JoinPath(directory, std::string(kRunPrefix)));
      });
}

/// Mountpoints of runs at which nothing is mounted.
std::vector<std::string> EmptyMountpoints() {
  const std::set<std::string> mounted = MountpointsAnywhere();
  std::vector<std::string> left;
  for (const std::string& directory : RuntimeDirectories(::geteuid())) {
    std::ranges::copy_if(
        RunsIn(directory), std::back_inserter(left),
        [&](const std::string& path) { return !mounted.contains(path); });
  }
  return left;
}

/// Stores of runs that no process has open.
std::vector<std::string> AbandonedStores() {
  std::vector<std::string> left;
  for (const std::string& path : RunsIn(StateDirectory() + "/runs")) {
    struct stat st{};
    const std::string real = ResolvePath("/", path);
    if (::stat(real.c_str(), &st) == 0 &&
        ProcessesUsing(real, st.st_dev).empty()) {
      left.push_back(path);
    }
  }
  return left;
}

}  // namespace

Probe ProbeFuseDevice() {
  constexpr const char* kName = "fuse-device";
  const UniqueFd fd(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (fd.valid()) {
    return {kName, Probe::State::kOk, "/dev/fuse can be opened"};
  }
  const int code = errno;
  std::string remedy = "as root: chmod 666 /dev/fuse";
  if (code == ENOENT || code == ENODEV || code == ENXIO) {
    remedy =
        "as root: modprobe fuse; in a container, start it with --device "
        "/dev/fuse --cap-add SYS_ADMIN";
  } else if (code == EPERM || ::geteuid() == 0) {
    remedy = "start the container with --device /dev/fuse --cap-add SYS_ADMIN";
  }
  return {kName, Probe::State::kFail,
          std::string("/dev/fuse cannot be opened: ") + ::strerror(code),
          std::move(remedy)};
}

Probe ProbeFusermount() {
  constexpr const char* kName = "fusermount3";
  if (::geteuid() == 0) {
    return {kName, Probe::State::kOk, "root mounts without fusermount3"};
  }
  const std::string program = FindProgram("fusermount3");
  if (program.empty()) {
    return {kName, Probe::State::kFail,
            "fusermount3, which mounts for ordinary users, is not in PATH",
            "install it: apt install fuse3"};
  }
  if (OwnStatus("NoNewPrivs") == "1") {
    return {kName, Probe::State::kFail,
            "this process may gain no rights (no_new_privs), so fusermount3 "
            "cannot mount",
            "run txfs outside of this sandbox, or start the container without "
            "no-new-privileges"};
  }
  struct stat st{};
  const bool is_of_root = ::stat(program.c_str(), &st) == 0 &&
                          (st.st_mode & S_ISUID) != 0 && st.st_uid == 0;
  const bool has_rights =
      ::getxattr(program.c_str(), "security.capability", nullptr, 0) > 0;
  if (is_of_root || has_rights) {
    return {kName, Probe::State::kOk, "fusermount3 is " + program};
  }
  return {kName, Probe::State::kFail,
          program + " is not set-user-ID root, so it cannot mount",
          "as root: chown root " + QuoteShell(program) + " && chmod 4755 " +
              QuoteShell(program)};
}

Probe ProbeMount() {
  constexpr const char* kName = "mount";
  const Status done = TryMount();
  if (!done) return FailedProbe(kName, done.error());
  return {kName, Probe::State::kOk,
          "a mount was made, written to, read, committed and unmounted"};
}

Probe ProbeCgroups() {
  constexpr const char* kName = "cgroups";
  constexpr LimitValues kHigh{
      .memory = 1ULL << 40, .cpu_ms = 1ULL << 40, .pids = 100'000};
  // As a run makes its groups; they go at once.
  const auto limits = Limits::Make(
      kHigh, [](const std::vector<std::string>&) { return Status(); });
  const std::string source = limits ? (*limits)->source() : "";
  if (!source.empty() && !source.contains("counted")) {
    return {kName, Probe::State::kOk,
            "limits of memory, CPU time and processes are by " + source};
  }
  if (MayEnterScope()) {
    return {kName, Probe::State::kOk,
            "a run with limits starts itself again in a scope of systemd; its "
            "report says what enforces them there"};
  }
  return {kName, Probe::State::kNote,
          "not every limit can have a cgroup: the processes of a run are "
          "counted together each 100 ms, which is weaker (docs/run.md)",
          "run txfs where a cgroup is delegated, as by `systemd-run --user "
          "--scope txfs run ...`"};
}

Probe ProbeShellParser() {
  constexpr const char* kName = "shell-parser";
  ParseFailure failure;
  ParserBudget budget;
  // A machine that has much to do is no fault.
  budget.deadline += std::chrono::seconds(10);
  const auto tree = ParseShell("true", budget, failure);
  if (!tree) return FailedProbe(kName, tree.error());
  return {kName, Probe::State::kOk, "shfmt parses the text of commands"};
}

Probe ProbeWorkspace(const std::string& directory) {
  constexpr const char* kName = "workspace";
  const auto workspace = WorkspaceAround(directory);
  const auto around = FindTxfsMount(directory);
  if (!workspace && around && IsDead(*around)) {
    return {kName, Probe::State::kNote,
            directory + " lies in a dead mount, which a run clears first",
            "txfs umount " + QuoteShell(around->mountpoint)};
  }
  if (!workspace) return FailedProbe(kName, workspace.error());
  const auto files = TwoFiles::Make(workspace->base->get());
  if (!files) {
    return {kName, Probe::State::kFail,
            workspace->path +
                " cannot be written to, so nothing can be "
                "committed: " +
                ::strerror(files.error().code),
            "name a workspace that you may write to"};
  }
  const Renames renames = (*files)->Try();
  std::vector<const char*> missing;
  if (!renames.exchange) missing.push_back("RENAME_EXCHANGE");
  if (!renames.noreplace) missing.push_back("RENAME_NOREPLACE");
  if (missing.empty()) {
    return {kName, Probe::State::kOk,
            "a commit to " + workspace->path +
                " replaces each object in one step (renameat2)"};
  }
  return {kName, Probe::State::kNote,
          "the filesystem of " + workspace->path + " lacks " + Join(missing) +
              ": a commit replaces objects in several steps, and what another "
              "program changes between them may be lost",
          "let no other program change the workspace during a commit"};
}

Probe ProbeStateDirectory() {
  constexpr const char* kName = "state-directory";
  const Status checked = CheckStateDirectory();
  if (!checked) return FailedProbe(kName, checked.error());
  return {kName, Probe::State::kOk,
          StateDirectory() + " is out of reach of other users"};
}

Probe ProbeStore(const char* name, const std::string& path) {
  const std::string there = NearestThere(path);
  struct statfs st{};
  if (::statfs(there.c_str(), &st) != 0) {
    return {name, Probe::State::kFail, there + ": " + ::strerror(errno),
            kElsewhere};
  }
  if (IsServedElsewhere(st)) {
    return {name, Probe::State::kFail,
            path +
                " is on a network or FUSE filesystem, where a store cannot "
                "be locked",
            kElsewhere};
  }
  if ((static_cast<uint64_t>(st.f_flags) & ST_RDONLY) != 0) {
    return {name, Probe::State::kFail, path + " is on a read-only filesystem",
            kElsewhere};
  }
  const auto block =
      static_cast<uint64_t>(st.f_frsize != 0 ? st.f_frsize : st.f_bsize);
  const uint64_t bytes = st.f_bavail * block;
  const std::string free =
      path + " is on a local filesystem, with " + HumanSize(bytes) + " free";
  const bool is_full = bytes < kLeastBytes;
  // Some filesystems make their inodes as they need them, and count none.
  if (is_full || (st.f_files != 0 && st.f_ffree < kLeastFiles)) {
    return {name, Probe::State::kFail,
            path + " has no space for a store: " +
                (is_full ? HumanSize(bytes) : Count(st.f_ffree, "inode")) +
                " free",
            "free some space (`txfs gc` frees commits), or choose another "
            "place with --store"};
  }
  if (bytes < kFewBytes) {
    return {name, Probe::State::kNote, free,
            "free some space: what a run writes is stored there until its end"};
  }
  return {name, Probe::State::kOk, free};
}

Probe ProbeDeadMounts() {
  constexpr const char* kName = "dead-mounts";
  std::vector<std::string> dead, commands;
  const auto table = ReadMountTable();
  if (!table) return FailedProbe(kName, table.error());
  for (const MountEntry& entry : *table) {
    if (!entry.is_own() || !entry.is_txfs() || !IsDead(entry)) continue;
    dead.push_back(entry.mountpoint);
    const std::string path = QuoteShell(entry.mountpoint);
    // A run made the directory as well.
    commands.push_back("txfs umount " + path +
                       (IsOfRun(entry.mountpoint) ? " && rmdir " + path : ""));
  }
  if (dead.empty()) {
    return {kName, Probe::State::kOk, "no mount of txfs is dead"};
  }
  std::string remedy;
  for (const std::string& command : commands) {
    remedy += (remedy.empty() ? "" : "; ") + command;
  }
  return {kName, Probe::State::kNote,
          "the daemon of " + Count(dead.size(), "mount") +
              " has died: " + Join(dead),
          std::move(remedy)};
}

Probe ProbeLeftovers() {
  constexpr const char* kName = "leftovers";
  const std::vector<std::string> mountpoints = EmptyMountpoints();
  const std::vector<std::string> stores = AbandonedStores();
  if (mountpoints.empty() && stores.empty()) {
    return {kName, Probe::State::kOk, "no run has left anything behind"};
  }
  std::string remedy;
  if (!mountpoints.empty()) remedy = "rmdir" + ShellWords(mountpoints);
  if (!stores.empty()) {
    remedy += (remedy.empty() ? "" : "; ") + ("rm -r" + ShellWords(stores));
  }
  return {kName, Probe::State::kNote,
          "runs that were killed have left " +
              Count(mountpoints.size() + stores.size(), "path") + " behind",
          std::move(remedy)};
}

std::vector<Probe> ProbeAll(const std::string& directory,
                            const std::optional<std::string>& store) {
  // Before a probe starts threads: these start processes.
  std::vector<Probe> probes = {
      ProbeFuseDevice(),    ProbeFusermount(),     ProbeMount(),   ProbeBwrap(),
      ProbeUserNamespace(), ProbeMountNamespace(), ProbeSandbox(), ProbeProxy(),
      ProbeCgroups(),       ProbeShellParser(),
  };
  probes.push_back(ProbeWorkspace(directory));
  probes.push_back(ProbeStateDirectory());
  probes.push_back(ProbeStore("store", StateDirectory()));
  constexpr const char* kStoreElsewhere = "workspace-store";
  const auto workspace = WorkspaceAround(directory);
  const bool is_elsewhere =
      workspace && workspace->record && workspace->record->store_id;
  if (store) {
    probes.push_back(ProbeStore(kStoreElsewhere, *store));
  } else if (is_elsewhere) {
    probes.push_back(ProbeStore(kStoreElsewhere, workspace->record->store));
  }
  probes.push_back(ProbeDeadMounts());
  probes.push_back(ProbeLeftovers());
  return probes;
}

}  // namespace txfs::cli
