#include "cli/run/run.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <tuple>

#include "cli/output/conflict_text.h"
#include "cli/output/errors.h"
#include "cli/output/limit_text.h"
#include "cli/output/paths.h"
#include "cli/output/text.h"
#include "cli/protocol/runtime_dir.h"
#include "cli/run/environment.h"
#include "cli/run/hidden_paths.h"
#include "cli/run/home_mount.h"
#include "cli/run/process.h"
#include "cli/run/run_transaction.h"
#include "cli/run/sandbox.h"
#include "journal/support/file.h"

extern char** environ;

namespace txfs::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kConflictCode = 3;
constexpr int kHeldCode = 4;
constexpr int kNotValidCode = 5;

/// "1.2 s".
std::string Seconds(SteadyClock::duration time) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f s",
                std::chrono::duration<double>(time).count());
  return text.data();
}

/// The home of a run: what is mounted there, and from where.
struct Home {
  std::string path;  ///< "": none
  std::unique_ptr<HomeMount> mount;
  std::string mountpoint;
};

bool IsDirectoryAt(const std::string& path) {
  struct stat st{};
  return ::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

/// The home, unless the workspace has or is it.
std::string HomeBeside(const std::string& workspace) {
  const char* home = std::getenv("HOME");
  if (home == nullptr || home[0] != '/') return "";
  std::string path = ResolvePath("/", home);
  if (path == "/" || IsWithin(path, workspace) || !IsDirectoryAt(path)) {
    return "";
  }
  return path;
}

Result<Home> MakeHome(const RunArguments& arguments,
                      const RunTransaction& run) {
  Home home;
  home.path = HomeBeside(run.workspace());
  if (home.path.empty() || arguments.home != "cow") return home;
  const std::string name = TRY(MakeRunName());
  home.mountpoint = TRY(MakeRuntimeDirectories()).front() + "/" + name;
  if (::mkdir(home.mountpoint.c_str(), 0700) != 0) {
    return Fail(errno, "cannot make " + home.mountpoint);
  }
  const std::string stores = StateDirectory() + "/runs";
  TRY(MakeDirectories(stores));
  home.mount =
      TRY(HomeMount::Start(home.path, home.mountpoint, stores + "/" + name));
  return home;
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

/// The working directory as the command sees it.
std::string DirectoryOf(const Context& context, const RunTransaction& run) {
  auto below = RelativeTo(context.directory, run.mountpoint());
  if (!below) below = RelativeTo(context.directory, run.workspace());
  const std::string there = JoinPath(run.mountpoint(), below.value_or(""));
  if (!IsDirectoryAt(there)) return run.workspace();
  return JoinPath(run.workspace(), below.value_or(""));
}

Result<Sandbox> MakeSandbox(const Context& context,
                            const RunArguments& arguments,
                            const RunTransaction& run, const Home& home,
                            Environment environment) {
  Sandbox sandbox;
  sandbox.has_network = arguments.has_network;
  sandbox.may_nest = arguments.may_nest;
  sandbox.environment = std::move(environment.variables);
  sandbox.hidden = TRY(HiddenPaths(
      {.workspace = run.workspace(), .mountpoint = run.mountpoint()},
      Resolved(context, arguments.hide), Resolved(context, arguments.show)));
  if (home.mount) {
    sandbox.binds.push_back({home.mountpoint, home.path, true});
  } else if (!home.path.empty()) {
    sandbox.binds.push_back({home.path, home.path, arguments.home == "rw"});
  }
  for (const std::string& path : Resolved(context, arguments.rw)) {
    const bool is_in_home = home.mount && IsWithin(path, home.path);
    if (!is_in_home) sandbox.binds.push_back({path, path, true});
  }
  sandbox.binds.push_back({run.mountpoint(), run.workspace(), true});
  sandbox.directory = DirectoryOf(context, run);
  return sandbox;
}

/// A run from its begin to its end.
class Run {
 public:
  Run(const Context& context, const RunArguments& arguments)
      : context_(context), arguments_(arguments) {}

  Result<int> Do() {
    run_ = TRY(RunTransaction::Begin(context_, arguments_.name));
    home_ = TRY(MakeHome(arguments_, *run_));
    Environment environment = MakeEnvironment(environ, arguments_.env);
    dropped_ = environment.dropped;
    sandbox_ = TRY(MakeSandbox(context_, arguments_, *run_, home_,
                               std::move(environment)));
    const Ended ended = TRY(Execute(arguments_.command));
    code_ = ended.code;
    if (ended.why == Ended::Why::kNotBegun) {
      return Fail(0, "bwrap did not start the command", "its message is above");
    }
    if (code_ == 0) TRY(Validate());
    TRY(FinishHome());
    TRY(Settle(ended));
    return code_;
  }

 private:
  Result<Ended> Execute(const std::vector<std::string>& command) {
    return RunSandboxed(sandbox_, command, arguments_.timeout_ms,
                        [&](pid_t pid) { std::ignore = run_->Started(pid); });
  }

  Status Validate() {
    if (arguments_.validators.empty()) return {};
    const std::string mark = TRY(run_->Mark());
    for (const std::string& validator : arguments_.validators) {
      const Ended ended = TRY(Execute({"sh", "-c", validator}));
      if (ended.code == 0) continue;
      failed_validator_ = validator;
      code_ = kNotValidCode;
      break;
    }
    return run_->ReturnTo(mark);
  }

  Status FinishHome() {
    if (!home_.mount) return {};
    std::vector<std::string> keep;
    for (const std::string& path : Resolved(context_, arguments_.rw)) {
      if (const auto below = RelativeTo(path, home_.path)) {
        keep.push_back(*below);
      }
    }
    home_changes_ = TRY(home_.mount->Finish(keep));
    home_.mount.reset();
    return {};
  }

  Status Settle(const Ended& ended) {
    const auto settle =
        code_ == 0 ? arguments_.on_success : arguments_.on_failure;
    const std::vector<NetChange> changes = TRY(run_->Changes());
    const std::string after = " after " + Seconds(SteadyClock::now() - start_);
    if (settle == Settle::kDiscard) {
      TRY(run_->RollBack());
      Conclude("rolled back: " + Why(ended) + after);
      return {};
    }
    if (settle == Settle::kKeep) {
      TRY(run_->Keep());
      Conclude("kept " + Count(changes.size(), "change") + ": " + Why(ended) +
               after);
      return {};
    }
    if (changes.empty()) {
      TRY(run_->RollBack());
      Conclude("nothing changed" + after);
      return {};
    }
    const CommitReply reply = TRY(run_->Commit(Message(), changes));
    return Committed(reply);
  }

  Status Committed(const CommitReply& reply) {
    const CommitReport& report = reply.report;
    if (!report.conflicts.empty()) {
      SayConflicts(report.conflicts);
      code_ = kConflictCode;
      Conclude("kept: " + ConflictCount(report.conflicts.size()));
      return {};
    }
    if (AnyStops(report.limits)) {
      SayExceeded(report.limits);
      code_ = kHeldCode;
      Conclude("kept: the commit exceeds a limit of the policy");
      return {};
    }
    for (const std::string& sentence : report.withheld) {
      Say("warning: " + sentence);
    }
    Conclude("committed " + Count(report.changes, "change") + " in " +
             Seconds(SteadyClock::now() - start_));
    return {};
  }

  [[nodiscard]] std::string Why(const Ended& ended) const {
    if (!failed_validator_.empty()) {
      return "`" + failed_validator_ + "` failed";
    }
    if (ended.why == Ended::Why::kTimeout) return "timeout";
    return "exit " + std::to_string(code_);
  }

  [[nodiscard]] std::string Message() const {
    if (!arguments_.message.empty()) return arguments_.message;
    std::string text = "txfs run:";
    for (const std::string& word : arguments_.command) {
      text += " " + QuoteShell(word);
    }
    return text;
  }

  void Conclude(const std::string& line) const {
    const std::vector<std::string>& lost = home_changes_.not_kept;
    if (!lost.empty()) {
      Say(Count(lost.size(), "path") + " changed under ~, not kept: " +
          Join(lost | std::views::take(5),
               [](const std::string& path) { return "~/" + path; }) +
          (lost.size() > 5 ? ", ..." : ""));
    }
    if (!home_changes_.problem.empty()) {
      Say("warning: nothing was kept under ~: " + home_changes_.problem);
    }
    Say(line);
  }

  const Context& context_;
  const RunArguments& arguments_;
  const SteadyClock::time_point start_ = SteadyClock::now();
  std::unique_ptr<RunTransaction> run_;
  Home home_;
  Sandbox sandbox_;
  std::vector<std::string> dropped_;
  std::string failed_validator_;
  HomeChanges home_changes_;
  int code_ = 0;
};

}  // namespace

Result<int> RunInTransaction(const Context& context,
                             const RunArguments& arguments) {
  return Run(context, arguments).Do();
}

}  // namespace txfs::cli
