#include "cli/run/run.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <ranges>
#include <tuple>

#include "cli/locate/locate.h"
#include "cli/locate/reach_daemon.h"
#include "cli/locate/way.h"
#include "cli/output/conflict_text.h"
#include "cli/output/errors.h"
#include "cli/output/held_text.h"
#include "cli/output/limit_text.h"
#include "cli/output/paths.h"
#include "cli/output/summary_format.h"
#include "cli/output/text.h"
#include "cli/protocol/runtime_dir.h"
#include "cli/rules/policy_rules.h"
#include "cli/run/call_site.h"
#include "cli/run/control_group.h"
#include "cli/run/environment.h"
#include "cli/run/hidden_paths.h"
#include "cli/run/home_mount.h"
#include "cli/run/nested.h"
#include "cli/run/process.h"
#include "cli/run/program.h"
#include "cli/run/proxy.h"
#include "cli/run/report.h"
#include "cli/run/run_config.h"
#include "cli/run/run_directory.h"
#include "cli/run/run_transaction.h"
#include "cli/run/sandbox.h"
#include "cli/run/sandbox_probes.h"
#include "fs/host/mount_table.h"
#include "journal/support/file.h"

extern char** environ;

namespace txfs::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kNotValidCode = 5;
constexpr int kOwnCode = 125;
constexpr int kNotFoundCode = 127;

/// The home of a run: what is mounted there, and from where.
struct Home {
  std::string path;  ///< "": none
  RunDirectory directory;
  std::unique_ptr<HomeMount> mount;
  std::string mountpoint;
};

bool IsDirectoryAt(const std::string& path) {
  struct stat st{};
  return ::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

/// The first symbolic link among `path`, which is below `directory`, and the
/// directories on the way to it; "": there is none.
std::string LinkOnWay(const std::string& directory, const std::string& path) {
  for (size_t end = 0; end < path.size();) {
    end = std::min(path.find('/', end + 1), path.size());
    const std::string part = path.substr(0, end);
    struct stat st{};
    const bool is_link = ::lstat(JoinPath(directory, part).c_str(), &st) == 0 &&
                         S_ISLNK(st.st_mode);
    if (is_link) return part;
  }
  return "";
}

/// The first ones of paths below the home.
std::string HomePathsText(const std::vector<std::string>& paths) {
  constexpr size_t kShown = 5;
  return Join(paths | std::views::take(kShown),
              [](const std::string& path) { return "~/" + path; }) +
         (paths.size() > kShown ? ", ..." : "");
}

/// The home, unless the workspace has or is it.
std::string HomeBeside(const std::string& workspace) {
  std::string path = ResolvePath("/", HomeDirectory());
  if (path == "/" || IsWithin(path, workspace) || !IsDirectoryAt(path)) {
    return "";
  }
  return path;
}

RunLimits WriteLimits(const RunArguments& arguments) {
  return RunLimits::Of(arguments.limits.disk, arguments.limits.files);
}

/// What is mounted there is there only later.
Result<Home> StartHome(const RunArguments& arguments,
                       const std::string& workspace) {
  Home home;
  home.path = HomeBeside(workspace);
  const bool is_private = arguments.home == "cow" && !arguments.no_sandbox;
  if (home.path.empty() || !is_private) return home;
  home.directory = TRY(RunDirectory::Make());
  home.mountpoint = home.directory.path();
  const std::string name = TRY(MakeRunName());
  const std::string stores = StateDirectory() + "/runs";
  TRY(MakeDirectories(stores));
  home.mount = TRY(HomeMount::Start(
      home.path, home.mountpoint, stores + "/" + name, WriteLimits(arguments)));
  return home;
}

/// The store of the home has no option.
std::unexpected<Error> OfHome(Error error) {
  error.message = "cannot make the private home: " + error.message;
  if (error.hint.empty() || error.hint.contains("--store")) {
    error.hint = "its store is in " + StateDirectory() +
                 "/runs: make room there, or set XDG_STATE_HOME to a directory "
                 "on another local filesystem; --home=ro needs no store";
  }
  return std::unexpected(std::move(error));
}

std::string ProfileOf(const RunArguments& arguments) {
  const std::string name = arguments.profile.value_or("");
  return name == "none" ? "" : name;
}

/// Paths of options, absolute and without links.
std::vector<std::string> Resolved(const Context& context,
                                  const std::vector<std::string>& given) {
  std::vector<std::string> paths;
  for (const std::string& path : given) {
    paths.push_back(ResolvePath(context.directory, path));
  }
  return paths;
}

/// What the command sees as its workspace, and what is there in truth.
struct Scene {
  std::string workspace;
  std::string mountpoint;
  bool is_writable = true;
};

/// The working directory as the command sees it. The caller may stand in
/// another mount of the workspace than that of the run.
Result<std::string> DirectoryOf(const Context& context, const Scene& scene) {
  const auto around = FindTxfsMount(context.directory);
  auto below = RelativeTo(context.directory, scene.workspace);
  if (around && around->source == scene.workspace) {
    below = RelativeTo(context.directory, around->mountpoint);
  }
  if (const auto inside = RelativeTo(context.directory, scene.mountpoint)) {
    below = inside;
  }
  if (below && IsDirectoryAt(JoinPath(scene.mountpoint, *below))) {
    return JoinPath(scene.workspace, *below);
  }
  return Fail(ENOENT,
              "the working directory " + PathText(context.directory) +
                  " is not in the transaction of the run",
              "change to a directory that exists there, such as " +
                  PathText(scene.workspace));
}

bool IsHiddenFor(const std::string& path, const Sandbox& sandbox,
                 const Scene& scene) {
  return !IsWithin(path, scene.workspace) &&
         std::ranges::any_of(sandbox.hidden, [&](const std::string& hidden) {
           return IsWithin(path, hidden);
         });
}

/// Shows the paths of --show that lie below /run, which is empty otherwise.
/// What is in the workspace or the home is shown there.
void ShowRuntime(const std::vector<std::string>& show, const Scene& scene,
                 const Home& home, Sandbox& sandbox) {
  for (const std::string& path : show) {
    const bool is_elsewhere = !IsWithin(path, "/run") ||
                              IsWithin(path, scene.workspace) ||
                              (!home.path.empty() && IsWithin(path, home.path));
    if (is_elsewhere || ::access(path.c_str(), F_OK) != 0) continue;
    sandbox.binds.push_back({path, path, false});
  }
}

Result<Sandbox> MakeSandbox(const Context& context,
                            const RunArguments& arguments, const Scene& scene,
                            const Home& home, Environment environment) {
  Sandbox sandbox;
  sandbox.has_network = arguments.has_network;
  sandbox.may_nest = arguments.may_nest;
  sandbox.memory = arguments.limits.memory;
  sandbox.environment = std::move(environment.variables);
  std::vector<std::string> show = Resolved(context, arguments.show);
  for (const std::string& path : Resolved(context, arguments.hide_always)) {
    std::erase(show, path);
  }
  sandbox.hidden = TRY(HiddenPaths(
      {.workspace = scene.workspace, .mountpoint = scene.mountpoint},
      Resolved(context, arguments.hide), show));
  ShowRuntime(show, scene, home, sandbox);
  if (home.mount) {
    sandbox.binds.push_back({home.mountpoint, home.path, true, home.path});
  } else if (!home.path.empty()) {
    sandbox.binds.push_back(
        {home.path, home.path, arguments.home == "rw" && scene.is_writable});
  }
  for (const std::string& path : Resolved(context, arguments.rw)) {
    if (IsHiddenFor(path, sandbox, scene)) {
      Say("warning: " + PathText(path) +
          " is hidden, so that nothing is written there; --show shows what is "
          "not txfs's own");
    }
    const bool is_in_home = home.mount && IsWithin(path, home.path);
    if (!is_in_home) {
      sandbox.binds.push_back({path, path, scene.is_writable});
    }
  }
  sandbox.binds.push_back(
      {scene.mountpoint, scene.workspace, scene.is_writable});
  sandbox.directory = TRY(DirectoryOf(context, scene));
  return sandbox;
}

/// Counts in `now` that were not in `before`.
std::vector<RuleCount> Since(const std::vector<RuleCount>& before,
                             std::vector<RuleCount> now) {
  for (RuleCount& rule : now) {
    const auto same = std::ranges::find(before, rule.rule, &RuleCount::rule);
    if (same != before.end()) rule.count -= std::min(rule.count, same->count);
  }
  std::erase_if(now, [](const RuleCount& rule) { return rule.count == 0; });
  return now;
}

/// Each word after a space.
std::string CommandText(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += " " + QuoteShell(word);
  return text;
}

/// A run from its begin to its end.
class Run {
 public:
  Run(const Context& context, const RunArguments& arguments)
      : context_(context), arguments_(arguments) {
    report_.command = arguments.command;
  }

  /// Whether SIGINT came while the command ran.
  [[nodiscard]] bool is_interrupted() const { return is_interrupted_; }

  Result<int> Do() {
    TRY(OpenReportFile());
    report_.timeout_ms = arguments_.timeout_ms;
    report_.limits = arguments_.limits;
    report_.judgement = TRY(JudgeRun(context_, arguments_));
    if (IsRefused(*report_.judgement)) return Refuse();
    if (const auto scene = TRY(DirectScene())) return WorkDirectly(*scene);
    if (Status begun = Begin(); !begun) {
      report_.outcome = "not begun";
      report_.why = begun.error().message;
      report_.code = kOwnCode;
      WriteReportFile();
      return std::unexpected(std::move(begun).error());
    }
    Status done = Work();
    home_.mount.reset();
    StopProxy();
    if (!done) {
      report_.why = "txfs failed";
      report_.code = kOwnCode;
      run_->Explain(done.error().message, kOwnCode);
      const Status back = run_->is_open() ? run_->RollBack() : Status();
      report_.outcome = back ? "rolled back" : "not settled";
      if (!back) Say("warning: " + back.error().ToString());
      Conclude();
      return std::unexpected(std::move(done).error());
    }
    Conclude();
    return report_.code;
  }

 private:
  Status OpenReportFile() {
    if (arguments_.json.empty()) return {};
    report_file_ =
        TRY(OpenReport(MakeAbsolute(context_.directory, arguments_.json)));
    return {};
  }

  int Refuse() {
    report_.outcome = "refused";
    report_.why = WhyRefused(*report_.judgement);
    report_.code = kRefusedCode;
    SayRefused(arguments_, *report_.judgement);
    WriteReportFile();
    return report_.code;
  }

  /// The workspace as it is for a command that only reads; none: it gets a
  /// transaction.
  Result<std::optional<Scene>> DirectScene() {
    const bool is_asked_for = arguments_.direct && !arguments_.no_sandbox &&
                              !arguments_.name && arguments_.validators.empty();
    if (!is_asked_for || !report_.judgement->reads_only) return std::nullopt;
    TRY(CheckWay("/", context_.directory));
    const auto around = FindTxfsMount(context_.directory);
    if (around && (IsDead(*around) || !around->source.starts_with('/'))) {
      return std::nullopt;
    }
    Scene scene{.workspace = {}, .mountpoint = {}, .is_writable = false};
    if (around) {
      scene.workspace = around->source;
      scene.mountpoint = around->mountpoint;
    } else {
      scene.workspace = TRY(WorkspaceOf(context_.directory));
      const auto mountpoint = MountpointOf(scene.workspace);
      // Only a mount refuses to read.
      const bool needs_mount =
          !mountpoint &&
          TRY(RulesForCommands(context_))->Cares(policy::kReading);
      if (needs_mount) return std::nullopt;
      scene.mountpoint = mountpoint.value_or(scene.workspace);
    }
    return scene;
  }

  /// The sandbox has nothing to write to, so nothing can be to take back.
  Result<int> WorkDirectly(const Scene& scene) {
    report_.direct = true;
    report_.workspace = scene.workspace;
    report_.outcome = "unchanged";
    TRY(RestrictByWorkspace(scene.workspace));
    TRY(CheckPrograms());
    home_.path = HomeBeside(scene.workspace);
    Environment environment = MakeEnvironment(environ, arguments_.env, true);
    report_.dropped = environment.dropped;
    sandbox_ = TRY(MakeSandbox(context_, arguments_, scene, home_,
                               std::move(environment)));
    TRY(StartProxy());
    Phase("begin");
    if (FindsProgram()) {
      TRY(ExecuteDirectly());
      Phase("run");
    }
    StopProxy();
    Conclude();
    return report_.code;
  }

  Status ExecuteDirectly() {
    const auto limits = TRY(Limits::Make(
        arguments_.limits,
        [](const std::vector<std::string>&) -> Status { return {}; }));
    RunBounds bounds{.timeout_ms = arguments_.timeout_ms,
                     .limits = limits.get(),
                     .needed = {},
                     .on_pipe = {}};
    if (proxy_) bounds.needed.push_back(proxy_->process());
    const Ended ended =
        TRY(RunSandboxed(sandbox_, arguments_.command, bounds, [](pid_t) {}));
    return Take(ended, *limits);
  }

  /// Error: a program of the sandbox is missing.
  [[nodiscard]] Status CheckPrograms() const {
    if (arguments_.no_sandbox) return {};
    if (FindProgram("bwrap").empty()) return std::unexpected(WhyNoSandbox(""));
    if (arguments_.network.empty()) return {};
    return NetworkProxy::CheckPrograms();
  }

  Status Begin() {
    // Before it makes a transaction.
    TRY(CheckPrograms());
    // Before the command can make links there.
    kept_ = Resolved(context_, arguments_.rw);
    // Both mounts at the same time.
    const auto on_workspace =
        [&](const std::string& workspace) -> Result<RunLimits> {
      TRY(RestrictByWorkspace(workspace));
      auto home = StartHome(arguments_, workspace);
      if (!home) return OfHome(std::move(home).error());
      home_ = *std::move(home);
      return WriteLimits(arguments_);
    };
    run_ = TRY(RunTransaction::Begin(
        context_, arguments_.name,
        {.command = arguments_.command,
         .profile = ProfileOf(arguments_),
         .clean = !arguments_.validators.empty() &&
                  arguments_.on_success == Settle::kCommit},
        on_workspace));
    report_.workspace = run_->workspace();
    report_.transaction = run_->id();
    report_.name = run_->name();
    Environment environment =
        MakeEnvironment(environ, arguments_.env, !arguments_.no_sandbox);
    report_.dropped = environment.dropped;
    const Scene scene{.workspace = run_->workspace(),
                      .mountpoint = run_->mountpoint()};
    sandbox_ = TRY(MakeSandbox(context_, arguments_, scene, home_,
                               std::move(environment)));
    for (const Sandbox::Bind& bind : sandbox_.binds) {
      const bool is_mount =
          bind.at == scene.workspace || bind.from == home_.mountpoint;
      if (bind.writable && !is_mount) {
        report_.writable_outside.push_back(bind.at);
      }
    }
    if (arguments_.no_sandbox) report_.writable_outside = {"/"};
    TRY(StartProxy());
    TRY(PlaceSocket());
    if (home_.mount) {
      Status served = home_.mount->Await();
      if (!served) return OfHome(std::move(served).error());
    }
    Phase("begin");
    return {};
  }

  /// After the daemons, which are processes that have no thread to lose.
  Status StartProxy() {
    if (arguments_.network.empty()) return {};
    proxy_ = TRY(NetworkProxy::Start(arguments_.network));
    proxy_->SetVariables(sandbox_.environment);
    sandbox_.proxy = proxy_.get();
    return {};
  }

  void StopProxy() {
    if (proxy_) report_.refused = proxy_->Stop();
  }

  Status RestrictByWorkspace(const std::string& workspace) {
    const RunConfig config = TRY(ReadWorkspaceRunConfig(workspace));
    const size_t of_user = arguments_.configuration.size();
    Restrict(config, arguments_);
    report_.configuration = arguments_.configuration;
    report_.timeout_ms = arguments_.timeout_ms;
    report_.limits = arguments_.limits;
    const auto restricts = arguments_.configuration | std::views::drop(of_user);
    if (restricts.empty()) return {};
    Say("note: " + PathText(config.file) + " restricts the run: " +
        Join(restricts, [](const TakenSetting& taken) { return taken.key; }));
    return {};
  }

  /// A run in the run is a part of it, and finds a socket.
  Status PlaceSocket() {
    const std::vector<std::string> directories = TRY(MakeRuntimeDirectories());
    const std::string name = TRY(MakeRunName());
    socket_ = directories.front() + "/" + name + ".run";
    TRY(run_->AnnounceSocket(socket_));
    if (arguments_.no_sandbox) {
      sandbox_.environment.emplace_back(kRunVariable, socket_);
      return {};
    }
    // The workspace's is the last one.
    sandbox_.binds.insert(sandbox_.binds.begin(), {socket_, kRunSocket, false});
    sandbox_.environment.emplace_back(kRunVariable, kRunSocket);
    return {};
  }

  /// False: the report says why.
  bool FindsProgram() {
    const std::string& program = arguments_.command.front();
    report_.code = FindProgram(sandbox_, program);
    if (report_.code == 0) return true;
    report_.why = "cannot run " + program +
                  (report_.code == kNotFoundCode
                       ? ": there is no such program in the sandbox"
                       : ": it is not executable");
    Say("error: " + report_.why);
    return false;
  }

  void SayUnenforced() const {
    if (arguments_.unenforced.empty()) return;
    Say("warning: not enforced without a sandbox: " +
        Join(arguments_.unenforced, [](const TakenSetting& asked) {
          return asked.from.empty()
                     ? asked.key
                     : asked.key + " (" + PathText(asked.from) + ")";
        }));
  }

  Status Work() {
    if (arguments_.no_sandbox) {
      Say("warning: without a sandbox, the command can write outside of the "
          "workspace, read credentials and reach the store");
      SayUnenforced();
    }
    if (arguments_.no_sandbox || FindsProgram()) {
      const Status executed = Execute(arguments_.command);
      // What the command did there is not in the home itself.
      for (Sandbox::Bind& bind : sandbox_.binds) bind.alike.clear();
      TRY(executed);
      has_run_ = true;
      Phase("run");
    }
    report_.changes = TRY(run_->Changes());
    report_.denied = Since(run_->denied_before(), TRY(run_->Denied()));
    if (report_.code == 0 && arguments_.strict && !report_.denied.empty()) {
      report_.code = kHeldCode;
      report_.why = "the policy refused " + DeniedText(report_.denied);
    }
    if (report_.code == 0 && !arguments_.validators.empty()) {
      TRY(Validate());
      Phase("validate");
    }
    StopProxy();
    if (home_.mount) {
      TRY(FinishHome());
      Phase("home");
    }
    TRY(Settle());
    Phase(commits_ ? "commit" : "settle");
    return {};
  }

  Status Execute(const std::vector<std::string>& command,
                 bool output_to_errors = false) {
    const auto announce = [&](const std::vector<std::string>& made) {
      return run_->Announce(made);
    };
    const auto limits = TRY(Limits::Make(arguments_.limits, announce));
    limits->Watch(run_->limit_signal());
    if (home_.mount) limits->Watch(home_.mount->limit_signal());
    RunBounds bounds{
        .timeout_ms = arguments_.timeout_ms,
        .limits = limits.get(),
        .needed = {run_->daemon()},
        .on_pipe =
            [&](uint64_t inode) { std::ignore = run_->AnnouncePipe(inode); },
        .output_to_errors = output_to_errors};
    if (home_.mount) bounds.needed.push_back(home_.mount->daemon());
    if (proxy_) bounds.needed.push_back(proxy_->process());
    const auto on_begin = [&](pid_t pid) { std::ignore = run_->Started(pid); };
    // Each has its own: a validator does not go back to where the command
    // began.
    Client client = TRY(run_->Connect());
    const auto channel = TRY(RunChannel::Open(socket_, std::move(client)));
    // Opened before: syncfs(2) tells the errors since then.
    const std::vector<UniqueFd> mounts = OpenMounts();
    const Ended ended =
        arguments_.no_sandbox
            ? TRY(RunPlain(command, PlainDirectory(), PlainEnvironment(),
                           bounds, on_begin))
            : TRY(RunSandboxed(sandbox_, command, bounds, on_begin));
    if (ended.why != Ended::Why::kLost) TRY(channel->Close());
    TRY(Take(ended, *limits));
    for (const UniqueFd& mount : mounts) CheckWritten(mount.get());
    return {};
  }

  /// Those that the command writes to.
  [[nodiscard]] std::vector<UniqueFd> OpenMounts() const {
    std::vector<std::string> paths = {run_->mountpoint()};
    if (home_.mount) paths.push_back(home_.mountpoint);
    std::vector<UniqueFd> mounts;
    for (const std::string& path : paths) {
      auto mount = OpenAt(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
      if (mount) mounts.push_back(*std::move(mount));
    }
    return mounts;
  }

  /// What is stored through a mapping, the kernel writes when the mapping ends,
  /// and no system call tells the command of a failure. A refusal of the policy
  /// is a denial, as it is elsewhere.
  void CheckWritten(int mount) {
    if (report_.code != 0 || ::syncfs(mount) == 0 || errno == EPERM ||
        errno == EACCES) {
      return;
    }
    report_.why = std::string(
                      "what was stored through a mapping could not be "
                      "written: ") +
                  std::strerror(errno);
    report_.code = kOwnCode;
  }

  Status Take(const Ended& ended, const Limits& limits) {
    if (ended.why == Ended::Why::kLost && proxy_ && proxy_->is_lost()) {
      return Fail(0, "the proxy for --network has died", "try again");
    }
    if (ended.why == Ended::Why::kLost) {
      return Fail(0, "a process that serves a mount of the run has died",
                  "its log is in " + StateDirectory() + "/log; try again");
    }
    // The shell that executes the command may not find its libraries.
    const bool has_no_shell = !arguments_.no_sandbox &&
                              ended.code == kNotFoundCode &&
                              !ended.said.empty();
    if (ended.why == Ended::Why::kNotBegun || has_no_shell) {
      return std::unexpected(WhyNoSandbox(ended.said, OptionsOnPaths()));
    }
    report_.code = ended.code;
    is_interrupted_ = ended.interrupted;
    if (limits.used().memory != 0) report_.used = limits.used();
    report_.limits_by = limits.source();
    if (ended.code != 0) report_.why = WhyEnded(ended);
    return {};
  }

  /// The options on paths: bwrap does not start without some files, and cannot
  /// mount everywhere.
  [[nodiscard]] std::string OptionsOnPaths() const {
    const auto named = [](const char* option) {
      return [option](const std::string& path) {
        return option + QuoteShell(path);
      };
    };
    const std::string hide = Join(arguments_.hide, named("--hide "));
    const std::string rw = Join(arguments_.rw, named("--rw "));
    return hide + (hide.empty() || rw.empty() ? "" : " or ") + rw;
  }

  [[nodiscard]] std::string WhyEnded(const Ended& ended) const {
    if (ended.why == Ended::Why::kTimeout) return "timeout";
    if (ended.limit) return DescribeExceeded(*ended.limit, arguments_.limits);
    return "exit " + std::to_string(ended.code);
  }

  /// Where the mount shows the working directory.
  [[nodiscard]] std::string PlainDirectory() const {
    const auto below = RelativeTo(sandbox_.directory, run_->workspace());
    return JoinPath(run_->mountpoint(), below.value_or(""));
  }

  [[nodiscard]] std::vector<std::string> PlainEnvironment() const {
    std::vector<std::string> list;
    for (const auto& [name, value] : sandbox_.environment) {
      list.push_back(name + "=" + value);
    }
    return list;
  }

  Status Validate() {
    const std::string mark = TRY(run_->Mark());
    for (const std::string& validator : arguments_.validators) {
      // Who reads the output of this process wants that of the command.
      TRY(Execute({"sh", "-c", validator}, true));
      if (report_.code == 0) continue;
      report_.why = "`" + validator + "` failed (" + report_.why + ")";
      report_.code = kNotValidCode;
      break;
    }
    return run_->ReturnTo(mark);
  }

  Status FinishHome() {
    std::vector<std::string> keep, links;
    for (const std::string& path : kept_) {
      const auto below = RelativeTo(path, home_.path);
      if (!below) continue;
      // The next run would follow the link, and keep what it leads to.
      const std::string link = LinkOnWay(home_.mountpoint, *below);
      if (link.empty()) {
        keep.push_back(*below);
        continue;
      }
      links.push_back(link);
      Say("warning: ~/" + link + " is a link now, and is not kept");
    }
    const HomeChanges changes = TRY(home_.mount->Finish(keep, links));
    report_.home_kept = changes.kept;
    report_.home_not_kept = changes.not_kept;
    if (!changes.problem.empty()) {
      Say("warning: nothing was kept under ~: " + changes.problem);
    }
    if (!changes.held.empty()) {
      Say("warning: not kept, because the change is also one outside of what "
          "is kept (a move or a hard link): " +
          HomePathsText(changes.held));
    }
    return {};
  }

  Status Settle() {
    run_->Explain(report_.why, report_.code);
    const auto settle =
        report_.code == 0 ? arguments_.on_success : arguments_.on_failure;
    if (settle == Settle::kKeep) {
      report_.outcome = "kept";
      return run_->Keep();
    }
    if (settle == Settle::kDiscard || report_.changes.empty()) {
      const bool nothing =
          report_.changes.empty() && (report_.code == 0 || !has_run_);
      report_.outcome = nothing ? "unchanged" : "rolled back";
      return run_->RollBack();
    }
    commits_ = true;
    auto reply = run_->Commit(Message(), report_.changes);
    if (reply) return Committed(reply->report);
    if (run_->is_lost()) return std::unexpected(std::move(reply).error());
    return NotCommitted(reply.error());
  }

  /// What was made is not lost because, for example, a disk is full. A commit
  /// that stopped half-way can only go on.
  Status NotCommitted(const Error& error) {
    const bool is_half_way = TRY(run_->IsHalfWay());
    Report(error);
    report_.outcome = is_half_way ? "not settled" : "kept";
    report_.why = error.ToString();
    report_.code = kOwnCode;
    run_->Explain(report_.why, report_.code);
    return run_->Keep();
  }

  Status Committed(const CommitReport& report) {
    for (const std::string& sentence : report.withheld) {
      Say("warning: " + sentence);
    }
    SayExceeded(report.limits);
    report_.outcome = report.committed() ? "committed" : "kept";
    report_.committed = report.committed() ? report.changes : 0;
    if (report.nothing) report_.outcome = "unchanged";
    if (!report.conflicts.empty()) {
      SayConflicts(report.conflicts);
      report_.conflicts = report.conflicts;
      report_.code = kConflictCode;
      report_.why = ConflictCount(report.conflicts.size());
    } else if (!report.depends.empty()) {
      report_.code = kConflictCode;
      report_.why = WhyKept(report);
    } else if (AnyStops(report.limits)) {
      TakeExceeded(report.limits);
      report_.code = kHeldCode;
      report_.why = "the commit exceeds a limit of the policy";
    } else if (report.held.stops()) {
      SayHeld(report.held);
      report_.held = report.held;
      report_.code = kHeldCode;
      report_.why = HeldCount(report.held);
    }
    return {};
  }

  /// Says by how much the commit exceeds `limits`, which stop it.
  void TakeExceeded(const std::vector<LimitExcess>& limits) {
    Say("warning: " + StopError("was", limits, {}, {}).error().message);
    for (const LimitExcess& limit : limits) {
      if (limit.stops()) accept_ += " --accept " + limit.id;
    }
  }

  [[nodiscard]] std::string Message() const {
    if (!arguments_.message.empty()) return arguments_.message;
    return "txfs run:" + CommandText(arguments_.command);
  }

  void Conclude() {
    report_.total_ms = MsSince(start_);
    if (!report_.denied.empty()) {
      Say("note: the policy refused " + DeniedText(report_.denied));
    }
    if (!report_.refused.empty()) {
      Say("note: --network has refused " + RefusedText(report_.refused));
    }
    const std::vector<std::string>& kept = report_.home_kept;
    if (report_.code != 0 && !kept.empty()) {
      Say("note: kept under ~: " + Count(kept.size(), "path") + ": " +
          HomePathsText(kept));
    }
    const std::vector<std::string>& lost = report_.home_not_kept;
    if (!lost.empty()) {
      Say(Count(lost.size(), "path") +
          " changed under ~, not kept: " + HomePathsText(lost));
    }
    Say(OutcomeLine(report_));
    if (report_.outcome == "kept") SayHowToGoOn();
    WriteReportFile();
  }

  void WriteReportFile() {
    if (!report_file_.valid()) return;
    // The exit code says what became of the transaction.
    const Status written =
        WriteReport(report_, report_file_.get(), arguments_.json);
    if (!written) Say("warning: " + written.error().ToString());
  }

  void SayHowToGoOn() const {
    const std::string in =
        report_.name.empty() ? "" : "-t " + report_.name + " ";
    if (report_.held.stops()) {
      Say("hint: `txfs " + in + "diff --held` shows what is held; `txfs " + in +
          "commit` says how to accept it, and `txfs " + in +
          "commit --without-held` commits everything else");
      return;
    }
    if (!report_.conflicts.empty()) {
      Say("hint: `txfs " + in + "diff` shows the changes; `txfs " + in +
          "commit --on-conflict=mine`, `=theirs` or `=merge` resolves the "
          "conflicts, and `txfs " +
          in + "discard` drops the changes");
      return;
    }
    Say("hint: `txfs " + in + "diff` shows the changes; `txfs " + in +
        "commit" + accept_ + "` or `txfs " + in + "discard` ends them");
  }

  static uint64_t MsSince(SteadyClock::time_point begin) {
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(
            SteadyClock::now() - begin)
            .count());
  }

  void Phase(const char* name) {
    report_.phases.emplace_back(name, MsSince(phase_));
    phase_ = SteadyClock::now();
  }

  const Context& context_;
  RunArguments arguments_;
  const SteadyClock::time_point start_ = SteadyClock::now();
  SteadyClock::time_point phase_ = start_;
  std::unique_ptr<RunTransaction> run_;
  Home home_;
  Sandbox sandbox_;
  std::unique_ptr<NetworkProxy> proxy_;
  std::string socket_;  ///< for runs in the run
  UniqueFd report_file_;
  bool has_run_ = false;  ///< the command
  bool is_interrupted_ = false;
  bool commits_ = false;
  std::string accept_;             ///< options for a commit that exceeds limits
  std::vector<std::string> kept_;  ///< --rw, absolute
  RunReport report_;
};

}  // namespace

Result<RuleVerdict> JudgeRun(const Context& context,
                             const RunArguments& arguments) {
  if (arguments.unjudged) return RuleVerdict();
  CallSite site(context.directory);
  const auto confinement = arguments.no_sandbox ? policy::Confinement::kMount
                                                : policy::Confinement::kRun;
  return site.JudgeWords(arguments.command, confinement);
}

bool IsRefused(const RuleVerdict& verdict) {
  return verdict.action > policy::Action::kAudit;
}

std::string WhyRefused(const RuleVerdict& verdict) {
  return verdict.reason + " (rule " + verdict.rule + ")";
}

void SayRefused(const RunArguments& arguments, const RuleVerdict& verdict) {
  Say("error: not run:" + CommandText(arguments.command) + ": " +
      WhyRefused(verdict));
  Say("hint: " + verdict.suggest +
      "; `txfs run --unjudged` runs it all the same");
}

Result<int> RunInTransaction(const Context& context,
                             const RunArguments& arguments) {
  // A caller that ignores it would take the state of each child away.
  ::signal(SIGCHLD, SIG_DFL);
  if (IsInRun()) return RunNested(context, arguments);
  const LimitValues& limits = arguments.limits;
  EnterScope({.memory = limits.memory != 0,
              .pids = limits.pids != 0,
              .cpu = limits.cpu_ms != 0});
  Run run(context, arguments);
  auto code = run.Do();
  // Whoever started txfs, such as a loop of a shell, stops only if the signal
  // ends it.
  if (code && *code == 128 + SIGINT && run.is_interrupted()) {
    DieBy(SIGINT);
  }
  return code;
}

}  // namespace txfs::cli
