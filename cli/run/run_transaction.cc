#include "cli/run/run_transaction.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <tuple>

#include "cli/locate/locate.h"
#include "cli/locate/trust.h"
#include "cli/locate/way.h"
#include "cli/mount/mounting.h"
#include "cli/output/errors.h"
#include "cli/output/held_text.h"
#include "cli/output/paths.h"
#include "cli/output/text.h"
#include "cli/protocol/archive_dispatcher.h"
#include "cli/protocol/runtime_dir.h"
#include "fs/fuse/fuse_mount.h"
#include "journal/support/file.h"

namespace txfs::cli {
namespace {

/// The git repository around `directory` whose names only this user or root
/// could have made, below the home.
std::optional<std::string> RepositoryAround(const std::string& directory) {
  const std::string home = ResolvePath("/", HomeDirectory());
  for (std::string at = directory; at.size() > 1;
       at = at.substr(0, at.rfind('/'))) {
    struct stat st{};
    if (at == home || ::lstat(at.c_str(), &st) != 0 ||
        st.st_uid != ::geteuid() || !IsOutOfOthersReach(st)) {
      return std::nullopt;
    }
    if (::lstat((at + "/.git").c_str(), &st) == 0) return at;
  }
  return std::nullopt;
}

Result<Client> ConnectTo(const std::string& mountpoint) {
  const auto entry = FindTxfsMount(mountpoint);
  if (!entry) return Fail(0, mountpoint + " is not mounted");
  return Client(TRY(ConnectDaemon(AddressOf(*entry))));
}

/// Ends the transaction `name` of the workspace if nothing was done in it.
void DropUnused(const std::string& workspace, const std::string& name) {
  const Context context{
      .directory = workspace, .store = {}, .transaction = name, .trailing = {}};
  auto client = Connect(context);
  if (!client) return;
  const auto status = client->GetStatus();
  const bool is_unused = status && status->status.changes == 0 &&
                         status->status.savepoints.empty();
  if (is_unused) std::ignore = client->Discard({});
}

/// Removes what is left of a mount that was made for a run and whose daemon
/// died before the run began; with `transaction`, also that transaction.
void GiveUpMount(const std::string& workspace, const std::string& mountpoint,
                 const std::optional<std::string>& transaction) {
  const auto entry = FindTxfsMount(mountpoint);
  const bool is_there = entry && entry->mountpoint == mountpoint;
  // A daemon that lives ends it itself.
  if (is_there && !IsDead(*entry)) return;
  if (is_there) std::ignore = UnmountPath(mountpoint, true, entry->device());
  ::rmdir(mountpoint.c_str());
  if (transaction) DropUnused(workspace, *transaction);
}

/// The paths of both sides of `changes`.
std::vector<std::string> PathsOf(const std::vector<NetChange>& changes) {
  std::vector<std::string> paths;
  for (const NetChange& change : changes) {
    paths.push_back(change.path);
    if (!change.old_path.empty()) paths.push_back(change.old_path);
  }
  return paths;
}

}  // namespace

Result<std::string> WorkspaceOf(const std::string& directory) {
  const std::string home = ResolvePath("/", HomeDirectory());
  const auto known = TRY(FindWorkspace(directory));
  // A workspace of that size was made for something else.
  if (known && !IsWithin(home, *known)) return *known;
  return RepositoryAround(directory).value_or(directory);
}

std::optional<std::string> MountpointOf(const std::string& workspace) {
  const auto real = ReachWorkspace(workspace);
  if (!real || !real->record) return std::nullopt;
  const auto store = OpenStore(*real);
  if (!store) return std::nullopt;
  const auto open = ListServed(**store);
  if (!open) return std::nullopt;
  for (const ServedTransaction& transaction : *open) {
    if (transaction.summary.name.empty() &&
        transaction.daemon == DaemonState::kRunning) {
      return transaction.address.mountpoint;
    }
  }
  return std::nullopt;
}

std::string WhyKept(const CommitReport& report) {
  return "the transaction had a change of " + PathText(report.depends) +
         " before the run";
}

Result<std::string> MakeRunName() {
  std::array<unsigned char, 6> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) !=
      static_cast<ssize_t>(bytes.size())) {
    return Fail(errno, "getrandom");
  }
  std::string name(kRunPrefix);
  for (const unsigned char byte : bytes) {
    name.push_back("bcdfghjkmnpqrstvwxz23456789"[byte % 27]);
  }
  return name;
}

Result<RunTransaction::Place> RunTransaction::MountOwn(
    const Context& context, const std::string& workspace,
    const std::optional<std::string>& name) {
  Place place{
      .workspace = workspace, .mountpoint = {}, .name = {}, .directory = {}};
  place.name = name ? *name : TRY(MakeRunName());
  place.directory = TRY(RunDirectory::Make());
  place.mountpoint = place.directory.path();
  Context there = context;
  there.directory = workspace;
  MountArguments arguments;
  arguments.workspace = workspace;
  arguments.mountpoint = place.mountpoint;
  arguments.name = place.name;
  MountPlan plan = TRY(PlanMount(there, arguments));
  plan.daemon.supervisor = ::getpid();
  if (auto spawned = SpawnDaemon(plan.daemon); !spawned) {
    GiveUpMount(workspace, place.mountpoint,
                name ? std::nullopt : std::optional(place.name));
    return std::unexpected(std::move(spawned).error());
  }
  return place;
}

Result<Client> RunTransaction::Connect() const {
  return ConnectTo(place_.mountpoint);
}

Result<std::unique_ptr<RunTransaction>> RunTransaction::BeginIn(
    Place place, const RunWords& words) {
  const std::string id = TRY(MakeRunName());
  Client client = TRY(ConnectTo(place.mountpoint));
  RunBegun begun = TRY(client.BeginRun({.id = id,
                                        .own = place.is_own(),
                                        .command = words.command,
                                        .profile = words.profile,
                                        .limits = words.limits,
                                        .clean = words.clean}));
  std::unique_ptr<RunTransaction> run(new RunTransaction(
      std::move(place), std::move(client), std::move(begun)));
  const StatusReply begun_in = TRY(run->client_.GetStatus());
  run->id_ = begun_in.status.id;
  run->run_id_ = id;
  run->denied_before_ = begun_in.status.denied;
  run->daemon_ =
      UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, begun_in.pid, 0)));
  return run;
}

Result<std::unique_ptr<RunTransaction>> RunTransaction::Begin(
    const Context& context, const std::optional<std::string>& name,
    RunWords words,
    const std::function<Result<RunLimits>(const std::string&)>& on_workspace) {
  TRY(CheckWay("/", context.directory));
  const auto around = FindTxfsMount(context.directory);
  const bool is_dead = around && IsDead(*around);
  if (is_dead) TRY(ClearDeadMount(*around));
  const bool stands_in_one = around && !is_dead;
  std::string workspace = stands_in_one && around->source.starts_with('/')
                              ? around->source
                              : TRY(WorkspaceOf(context.directory));
  words.limits = TRY(on_workspace(workspace));
  if (!name) {
    const std::optional<std::string> mountpoint =
        stands_in_one ? around->mountpoint : MountpointOf(workspace);
    if (mountpoint) {
      auto run = BeginIn({.workspace = workspace,
                          .mountpoint = *mountpoint,
                          .name = {},
                          .directory = {}},
                         words);
      if (run || run.error().kind != ErrorKind::kBusy) return run;
    }
  }
  Place place = TRY(MountOwn(context, workspace, name));
  const std::string mountpoint = place.mountpoint;
  const auto made_up = name ? std::nullopt : std::optional(place.name);
  auto run = BeginIn(std::move(place), words);
  if (!run) GiveUpMount(workspace, mountpoint, made_up);
  return run;
}

RunTransaction::~RunTransaction() {
  if (open_) std::ignore = RollBack();
}

Result<std::vector<NetChange>> RunTransaction::Changes() {
  auto changes = begun_.fresh
                     ? TRY(client_.Changes(true, {}))
                     : TRY(client_.Changes(true, {}, begun_.savepoint));
  unchanged_ = changes.empty();
  return changes;
}

Result<std::vector<RuleCount>> RunTransaction::Denied() {
  return TRY(client_.GetStatus()).status.denied;
}

Result<std::string> RunTransaction::Mark() {
  unchanged_ = false;
  const std::string name = TRY(MakeRunName());
  return TRY(client_.MakeSavepoint(name)).name;
}

Status RunTransaction::ReturnTo(const std::string& savepoint) {
  TRY(client_.Rollback(savepoint));
  return {};
}

Result<CommitReply> RunTransaction::Commit(
    const std::string& message, const std::vector<NetChange>& changes) {
  CommitRequest request;
  request.message = message;
  if (begun_.changes != 0) request.paths = PathsOf(changes);
  Record(RunOutcome::kCommitted, false);
  auto committed = client_.Commit(request);
  lost_ = !committed && IsDaemonGone();
  if (lost_) {
    return CommitInStore(std::move(committed).error());
  }
  CommitReply reply = TRY(std::move(committed));
  const CommitReport& report = reply.report;
  if (!report.conflicts.empty()) Explain("conflict", kConflictCode);
  if (!report.depends.empty()) Explain(WhyKept(report), kConflictCode);
  if (AnyStops(report.limits)) {
    Explain("the commit exceeds a limit of the policy", kHeldCode);
  } else if (report.held.stops()) {
    Explain(HeldCount(report.held), kHeldCode);
  }
  Record(report.nothing       ? RunOutcome::kUnchanged
         : report.committed() ? RunOutcome::kCommitted
                              : RunOutcome::kKept,
         true);
  // The commit is done, whatever becomes of the mount.
  if (const Status ended = End(); !ended) {
    Say("warning: " + ended.error().ToString());
  }
  return reply;
}

Result<bool> RunTransaction::IsHalfWay() {
  const StatusReply reply = TRY(client_.GetStatus());
  return reply.status.state == TransactionState::kCommitting;
}

Status RunTransaction::RollBack() {
  const RunOutcome outcome = unchanged_ && code_ == 0 ? RunOutcome::kUnchanged
                                                      : RunOutcome::kRolledBack;
  Record(outcome, false);
  Status done = [&]() -> Status {
    TRY(GoBack(client_));
    is_back_ = true;
    Record(outcome, true);
    return End();
  }();
  if (done) return done;
  open_ = false;
  return RollBackInStore();
}

Status RunTransaction::Keep() {
  Record(RunOutcome::kKept, true);
  // It is kept, whatever becomes of the mount.
  if (const Status ended = End(); !ended) {
    Say("warning: " + ended.error().ToString());
  }
  return {};
}

void RunTransaction::Record(RunOutcome outcome, bool done) {
  std::ignore =
      client_.SettleRun({.outcome = outcome, .why = why_, .code = code_}, done);
}

Status RunTransaction::End() {
  open_ = false;
  if (!place_.is_own()) return client_.EndRun();
  Status ended = EndMount();
  siginfo_t how{};
  const bool is_killed = ::waitid(P_PIDFD, static_cast<id_t>(daemon_.get()),
                                  &how, WEXITED | WNOHANG | WNOWAIT) == 0 &&
                         how.si_pid != 0 && how.si_code != CLD_EXITED;
  // It had begun the next transaction, which it ends otherwise.
  if (is_killed) {
    std::ignore = ClearMount();
    DropUnused(place_.workspace, place_.name);
  }
  return ended;
}

Status RunTransaction::EndMount() {
  const auto entry = FindTxfsMount(place_.mountpoint);
  if (entry && entry->mountpoint == place_.mountpoint) {
    auto connection = TRY(ConnectDaemon(AddressOf(*entry)));
    // A mount namespace that was made during the run has the mount, too, for as
    // long as it likes. Nobody works in it any more, but the kernel may not
    // have written everything yet. What it could not write for a run that
    // failed, a limit may have refused.
    const auto mount = OpenAt(AT_FDCWD, place_.mountpoint, O_RDONLY);
    const bool synced = !mount || ::syncfs(mount->get()) == 0;
    if (!synced && code_ == 0 && !is_back_) {
      return Fail(errno, "cannot write the changes of the run");
    }
    // It no longer watches this process from then on.
    TRY(connection->Call(
        {{"request", "unmount"}, {"lazy", true}, {"stop", true}}));
    TRY(connection->AwaitExit(-1));
  }
  return {};
}

bool RunTransaction::IsDaemonGone() {
  if (client_.GetStatus()) return false;
  // The connection ends before the process.
  constexpr int kPatienceMs = 10'000;
  pollfd process{daemon_.get(), POLLIN, 0};
  int ready = 0;
  while ((ready = ::poll(&process, 1, kPatienceMs)) < 0 && errno == EINTR) {
  }
  return ready > 0;
}

Status RunTransaction::ClearMount() const {
  const auto entry = FindTxfsMount(place_.mountpoint);
  const bool is_there = entry && entry->mountpoint == place_.mountpoint;
  if (!place_.is_own()) {
    // Beneath it is the base.
    const bool covers = is_there && place_.mountpoint == place_.workspace;
    if (covers && IsDead(*entry)) TRY(ClearDeadMount(*entry));
    return {};
  }
  if (is_there) TRY(ClearDeadMount(*entry));
  return {};
}

Result<CommitReply> RunTransaction::CommitInStore(Error lost) {
  TRY(ClearMount());
  const RealWorkspace real = TRY(ReachWorkspace(place_.workspace));
  const std::unique_ptr<Archive> archive = TRY(OpenArchive(real));
  TRY(RollForward(*archive, "", RefreshSiblings));
  const auto is_of_run = [&](const TransactionSummary& ended) {
    return ended.state == TransactionState::kCommitted &&
           std::ranges::find(ended.runs, run_id_, &RunRecord::id) !=
               ended.runs.end();
  };
  const auto ended = TRY(archive->store().history().ReadAll());
  const auto found = std::ranges::find_if(ended, is_of_run);
  if (found == ended.end()) return std::unexpected(std::move(lost));
  open_ = false;
  // The daemon had begun the next one.
  if (place_.is_own()) DropUnused(place_.workspace, place_.name);
  Say("warning: the daemon of the workspace died after the point of no return "
      "of the commit, which is done; its log is in " +
      StateDirectory() + "/log");
  CommitReply reply;
  reply.report.id = found->id;
  reply.report.partial = found->kind == TransactionKind::kPartial;
  reply.report.changes = found->changes;
  return reply;
}

Status RunTransaction::RollBackInStore() {
  TRY(ClearMount());
  const Context context{.directory = place_.workspace,
                        .store = {},
                        .transaction = id_,
                        .trailing = {}};
  auto client = cli::Connect(context);
  if (client) return GoBack(*client);
  // The daemon may have discarded it before it died.
  const RealWorkspace real = TRY(ReachWorkspace(place_.workspace));
  const std::unique_ptr<Store> store = TRY(OpenStore(real));
  const bool is_gone = begun_.fresh && !TRY(store->IsOpen(id_));
  if (is_gone) return {};
  return std::unexpected(std::move(client).error());
}

Status RunTransaction::GoBack(Client& client) const {
  // In a mount of its own, the transaction ends with it.
  if (begun_.fresh && unchanged_ && !place_.is_own()) return {};
  if (begun_.fresh) {
    TRY(client.Discard({}));
  } else {
    TRY(client.Rollback(begun_.savepoint));
  }
  return {};
}

}  // namespace txfs::cli
