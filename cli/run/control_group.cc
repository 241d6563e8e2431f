#include "cli/run/control_group.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <tuple>

#include "cli/daemon/kernel_file.h"
#include "cli/daemon/run_groups.h"
#include "fs/host/mount_table.h"

namespace txfs::cli {
namespace {

/// Whether `list`, with `separator` between words, has `word`.
bool HasWord(const std::string& list, std::string_view word, char separator) {
  std::istringstream words(list);
  for (std::string each; std::getline(words, each, separator);) {
    if (each == word) return true;
  }
  return false;
}

/// A group of this process, and the directory above which it cannot see.
struct OwnGroup {
  std::string path, top;
};

/// The path of this process's group, below the root of its hierarchy: that with
/// `controller`, or of version 2 if that is "".
std::optional<std::string> NameOfOwnGroup(std::string_view controller) {
  std::istringstream lines(ReadKernelFile("/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string list = line.substr(first + 1, second - first - 1);
    const bool is_it =
        controller.empty() ? list.empty() : HasWord(list, controller, ',');
    if (is_it) return line.substr(second + 1);
  }
  return std::nullopt;
}

/// As NameOfOwnGroup, its directory. The mount may show a part of the hierarchy
/// alone, so what counts is that this process is in it.
std::optional<OwnGroup> FindOwnGroup(std::string_view controller) {
  const auto name = NameOfOwnGroup(controller);
  const auto table = ReadMountTable();
  if (!name || !table) return std::nullopt;
  const std::string own = std::to_string(::getpid());
  for (const MountEntry& mount : *table) {
    const bool is_it =
        controller.empty()
            ? mount.type == "cgroup2"
            : mount.type == "cgroup" && HasWord(mount.options, controller, ',');
    if (!is_it) continue;
    for (const std::string& below : {*name, std::string("/")}) {
      std::string path = mount.mountpoint + (below == "/" ? "" : below);
      if (HasWord(ReadKernelFile(path + "/cgroup.procs"), own, '\n')) {
        return OwnGroup{std::move(path), mount.mountpoint};
      }
    }
  }
  return std::nullopt;
}

/// Whether the groups in `parent` have the controllers, which this turns on if
/// it may. Groups in one with processes have none, but for the topmost. (Some
/// controllers can be turned on there, but then only for threads.)
bool TurnOn(const std::string& parent,
            const std::vector<std::string>& controllers) {
  if (controllers.empty()) return true;
  const bool is_topmost =
      ::access((parent + "/cgroup.type").c_str(), F_OK) != 0;
  if (!is_topmost && !ReadKernelFile(parent + "/cgroup.procs").empty()) {
    return false;
  }
  std::string on = ReadKernelFile(parent + "/cgroup.subtree_control");
  std::ranges::replace(on, '\n', ' ');
  return std::ranges::all_of(controllers, [&](const std::string& controller) {
    return HasWord(on, controller, ' ') ||
           WriteKernelFile(parent + "/cgroup.subtree_control",
                           "+" + controller);
  });
}

/// The group of version 2 in or above that of this process in which one for a
/// run can be made; "": none.
std::string ParentOfUnified(const GroupNeeds& needs) {
  const auto own = FindOwnGroup("");
  if (!own) return "";
  std::vector<std::string> controllers;
  if (needs.memory) controllers.emplace_back("memory");
  if (needs.pids) controllers.emplace_back("pids");
  for (std::string at = own->path; at.size() >= own->top.size();
       at = at.substr(0, at.rfind('/'))) {
    // To move a process, one has to be able to do so in the group around both.
    if (::access(at.c_str(), W_OK) == 0 &&
        ::access((at + "/cgroup.procs").c_str(), W_OK) == 0 &&
        TurnOn(at, controllers)) {
      return at;
    }
  }
  return "";
}

/// The path of a group `name` of version 1 in that of this process; "": none.
std::string PathOfClassic(std::string_view controller,
                          const std::string& name) {
  const auto own = FindOwnGroup(controller);
  if (!own || ::access(own->path.c_str(), W_OK) != 0) return "";
  return own->path + "/" + name;
}

/// As ControlGroup::Read, of the file at `path`.
uint64_t NumberIn(const std::string& path, std::string_view key) {
  std::istringstream words(ReadKernelFile(path));
  uint64_t number = 0;
  if (key.empty()) return words >> number ? number : 0;
  for (std::string word; words >> word >> number;) {
    if (word == key) return number;
  }
  return 0;
}

constexpr const char* kScopeProgram = "/usr/bin/systemd-run";
/// Set for the program in the scope.
constexpr const char* kInScope = "TXFS_RUN_SCOPE";

/// The words of `command` in a scope.
std::vector<std::string> WordsInScope(const std::vector<std::string>& command) {
  std::vector<std::string> words = {kScopeProgram, "--user",
                                    "--scope",     "--quiet",
                                    "--collect",   "--property=Delegate=yes",
                                    "--"};
  std::ranges::copy(command, std::back_inserter(words));
  return words;
}

std::vector<char*> PointersTo(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Whether `words` can be run, without a word, and end with 0.
bool Succeeds(std::vector<std::string> words) {
  posix_spawn_file_actions_t actions{};
  ::posix_spawn_file_actions_init(&actions);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    ::posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  }
  pid_t pid = 0;
  const std::vector<char*> pointers = PointersTo(words);
  const int failed = ::posix_spawn(&pid, words.front().c_str(), &actions,
                                   nullptr, pointers.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return false;
  int state = 0;
  while (::waitpid(pid, &state, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

/// This program and its arguments; none: they are not known.
std::vector<std::string> OwnCommand() {
  std::array<char, 4096> path{};
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
  if (size <= 0 || size == std::ssize(path)) return {};
  std::vector<std::string> words;
  std::istringstream line(ReadKernelFile("/proc/self/cmdline"));
  for (std::string word; std::getline(line, word, '\0');) {
    words.push_back(word);
  }
  if (!words.empty())
    words.front().assign(path.data(), static_cast<size_t>(size));
  return words;
}

}  // namespace

bool MayEnterScope() {
  const char* directory = std::getenv("XDG_RUNTIME_DIR");
  if (directory == nullptr || ::geteuid() == 0) return false;
  const std::string manager = std::string(directory) + "/systemd/private";
  return ::access(manager.c_str(), F_OK) == 0 &&
         Succeeds(WordsInScope({"/bin/true"}));
}

void EnterScope(const GroupNeeds& needs) {
  const bool is_in_one = std::getenv(kInScope) != nullptr;
  ::unsetenv(kInScope);
  if (is_in_one) return;
  const GroupPlan plan = PlanGroups("txfs-run-plan", needs);
  const bool has_groups =
      !plan.unified.empty() || ((!needs.memory || !plan.memory.empty()) &&
                                (!needs.pids || !plan.pids.empty()) &&
                                (!needs.cpu || !plan.cpuacct.empty()));
  if (has_groups || !MayEnterScope()) return;
  const std::vector<std::string> own = OwnCommand();
  if (own.empty()) return;
  std::vector<std::string> words = WordsInScope(own);
  ::setenv(kInScope, "1", 1);
  ::execv(kScopeProgram, PointersTo(words).data());
  ::unsetenv(kInScope);
}

std::vector<std::string> GroupPlan::Paths() const {
  std::vector<std::string> paths = {unified, memory, pids, cpuacct};
  std::erase(paths, "");
  return paths;
}

GroupPlan PlanGroups(const std::string& name, const GroupNeeds& needs) {
  GroupPlan plan;
  plan.unified = ParentOfUnified(needs);
  if (!plan.unified.empty()) plan.unified += "/" + name;
  if (needs.memory) plan.memory = PathOfClassic("memory", name);
  if (needs.pids) plan.pids = PathOfClassic("pids", name);
  if (needs.cpu) plan.cpuacct = PathOfClassic("cpuacct", name);
  return plan;
}

std::optional<ControlGroup> ControlGroup::Make(const std::string& path) {
  if (path.empty() || ::mkdir(path.c_str(), 0755) != 0) return std::nullopt;
  // Before Linux 5.11, limits hold for the groups in a group only with this.
  std::ignore = WriteKernelFile(path + "/memory.use_hierarchy", "1");
  const std::string inner = path + std::string(kRunGroupInner);
  ::mkdir(inner.c_str(), 0755);
  UniqueFd processes(
      ::open((inner + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  if (!processes.valid()) {
    RemoveRunGroup(path);
    return std::nullopt;
  }
  return ControlGroup(path, std::move(processes));
}

ControlGroup::~ControlGroup() {
  if (processes_.valid()) RemoveRunGroup(path_);
}

bool ControlGroup::Enter() const {
  return ::write(processes_.get(), "0", 1) == 1;
}

bool ControlGroup::TakesProcesses() const {
  return ReadKernelFile(path_ + std::string(kRunGroupInner) + "/cgroup.type") ==
         "domain\n";
}

bool ControlGroup::Write(std::string_view file, std::string_view text) const {
  return WriteKernelFile(path_ + "/" + std::string(file), text);
}

uint64_t ControlGroup::Read(std::string_view file, std::string_view key) const {
  return NumberIn(path_ + "/" + std::string(file), key);
}

uint64_t ControlGroup::ReadEvents(std::string_view file,
                                  std::string_view key) const {
  const std::string inner = path_ + std::string(kRunGroupInner);
  return Read(file, key) + NumberIn(inner + "/" + std::string(file), key);
}

}  // namespace txfs::cli
