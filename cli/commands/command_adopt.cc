#include <fcntl.h>
#include <unistd.h>

#include <climits>
#include <set>

#include "cli/commands/commands.h"
#include "cli/diff/diff_format.h"
#include "cli/locate/locate.h"
#include "cli/locate/trust.h"
#include "cli/locate/way.h"
#include "cli/output/errors.h"
#include "cli/output/output.h"
#include "cli/output/paths.h"
#include "cli/output/text.h"
#include "cli/rules/policy_rules.h"
#include "fs/veto/policy_check.h"
#include "fs/workspace/adopt_transaction.h"
#include "fs/workspace/workspace.h"
#include "journal/store_copy.h"
#include "journal/support/file.h"
#include "policy/explain.h"

namespace txfs::cli {
namespace {

/// In the workspace's own store: a store of what is being adopted.
constexpr const char* kScratch = "adopt";

/// A store that is not the workspace's own.
struct Foreign {
  std::string path;
  UniqueFd directory;
  /// The workspace that it was of is elsewhere: objects have other numbers
  /// here.
  bool is_of_copy = false;
};

/// A transaction in it, as a copy that can be opened.
struct Adopted {
  TransactionSummary summary;
  std::vector<NetChange> changes;
  struct Refusal {
    const NetChange* change;
    std::string rule, reason;
  };
  std::vector<Refusal> refused;
};

Result<Foreign> NothingToAdopt(const RealWorkspace& workspace) {
  std::string hint = "`txfs adopt --from STORE` names a store";
  const auto gone = TRY(GoneWorkspaces());
  if (!gone.empty()) {
    hint += ", or a workspace that was moved here: " +
            Join(gone, [](const WorkspaceRecord& record) {
              return EscapeControls(record.path);
            });
  }
  return Fail(0, "there is no foreign store in " + workspace.path, hint);
}

Result<Foreign> OpenForeign(const std::string& path, UniqueFd directory,
                            const RealWorkspace& workspace) {
  // Root can read what that user, or this one, could not.
  if (::geteuid() == 0) TRY(CheckIsOwn(directory.get(), "store", path));
  if (!TRY(Exists(directory.get(), "FORMAT"))) {
    return Fail(0, path + " is not a txfs store", "name the store's directory");
  }
  const auto named = ReadWholeFile(directory.get(), "workspace", PATH_MAX);
  return Foreign{.path = path,
                 .directory = std::move(directory),
                 .is_of_copy = !named || *named != workspace.path};
}

/// `from`: absolute, a store or the path that a moved workspace had.
Result<Foreign> FindForeign(const RealWorkspace& workspace,
                            const std::optional<std::string>& from) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
  if (!from) {
    if (!HasForeignStore(workspace.base->get())) {
      return NothingToAdopt(workspace);
    }
    UniqueFd fd = TRY(OpenAt(workspace.base->get(), kStoreName, kFlags));
    return OpenForeign(JoinPath(workspace.path, kStoreName), std::move(fd),
                       workspace);
  }
  for (const WorkspaceRecord& record : TRY(GoneWorkspaces())) {
    if (record.path != *from) continue;
    UniqueFd fd = TRY(OpenRecordedStore(record));
    return OpenForeign(record.store, std::move(fd), workspace);
  }
  auto fd = OpenAt(AT_FDCWD, *from, kFlags);
  if (!fd) {
    return Fail(fd.error().code, "cannot open the store " + *from,
                "name the store's directory");
  }
  return OpenForeign(*from, std::move(*fd), workspace);
}

/// What the transaction would have asked for, had it been judged.
std::vector<policy::Proposal> ProposalsOf(const NetChange& change) {
  using policy::Op;
  const auto type_of = [](const std::optional<ChangeSide>& side) {
    return side ? JudgedType(side->attr.type) : policy::Type::kFile;
  };
  const auto make = [&] {
    constexpr Op kOps[] = {Op::kCreate, Op::kMkdir, Op::kSymlink, Op::kMknod};
    const policy::Type type = type_of(change.after);
    const bool is_empty = change.after &&
                          change.after->attr.type == FileType::kRegular &&
                          change.after->attr.size == 0;
    return policy::Proposal{
        .op = kOps[static_cast<size_t>(type)],
        .path = change.path,
        .layer = is_empty ? policy::Layer::kEmpty : policy::Layer::kNew,
        .type = type};
  };
  const auto remove = [&] {
    const policy::Type type = type_of(change.before);
    return policy::Proposal{
        .op = type == policy::Type::kDirectory ? Op::kRmdir : Op::kUnlink,
        .path = change.path,
        .type = type};
  };
  const policy::Type type = type_of(change.after);
  std::vector<policy::Proposal> proposals;
  switch (change.kind) {
    case ChangeKind::kAdded:
      return {make()};
    case ChangeKind::kDeleted:
      return {remove()};
    case ChangeKind::kTypeChanged:
      return {remove(), make()};
    case ChangeKind::kRenamed:
      proposals.push_back({.op = Op::kRename,
                           .path = change.old_path,
                           .new_path = change.path,
                           .type = type});
      break;
    case ChangeKind::kModified:
      break;
  }
  if (change.content) {
    proposals.push_back({.op = Op::kWrite, .path = change.path, .type = type});
  }
  if (change.attributes) {
    proposals.push_back({.op = Op::kChmod, .path = change.path, .type = type});
  }
  return proposals;
}

bool IsDevice(const std::optional<ChangeSide>& side) {
  return side && (side->attr.type == FileType::kCharDevice ||
                  side->attr.type == FileType::kBlockDevice);
}

void Judge(const Rules& rules, Adopted& adopted) {
  for (const NetChange& change : adopted.changes) {
    if (IsDevice(change.after)) {
      adopted.refused.push_back(
          {&change, "txfs-adopt", "a device node gives access to the machine"});
      continue;
    }
    for (const policy::Proposal& proposal : ProposalsOf(change)) {
      const policy::Verdict verdict = policy::Explain(*rules, proposal).verdict;
      // Nobody is there who could be asked, and what another machine made is
      // looked at there.
      if (verdict.action <= policy::Action::kAudit) continue;
      adopted.refused.push_back(
          {&change, verdict.rule->id, verdict.rule->reason});
      break;
    }
  }
}

/// The copies of what is open in a foreign store, beside the workspace's own.
class StoreAdoption {
 public:
  static Result<std::unique_ptr<StoreAdoption>> Begin(RealWorkspace workspace,
                                                      Foreign foreign) {
    auto adoption = std::unique_ptr<StoreAdoption>(
        new StoreAdoption(std::move(workspace), std::move(foreign)));
    TRY(adoption->Copy());
    return adoption;
  }
  ~StoreAdoption() {
    scratch_.reset();
    if (store_) std::ignore = RemoveTree(store_->dir(), kScratch);
  }
  StoreAdoption(const StoreAdoption&) = delete;
  StoreAdoption& operator=(const StoreAdoption&) = delete;

  /// What is in it, by transaction.
  Result<std::vector<Adopted>> Look(const Rules& rules) {
    std::vector<Adopted> all;
    for (const TransactionSummary& summary : TRY(scratch_->ListOpen())) {
      Adopted& adopted = all.emplace_back();
      adopted.summary = summary;
      const std::unique_ptr<Workspace> opened = TRY(Open(summary));
      adopted.changes = TRY(opened->Changes(true));
      Judge(rules, adopted);
    }
    return all;
  }

  /// Takes them over, without what is refused.
  Status Take(std::vector<Adopted>& all) {
    for (Adopted& adopted : all) {
      std::vector<std::string> paths;
      for (const Adopted::Refusal& refusal : adopted.refused) {
        paths.push_back(refusal.change->path);
      }
      if (!paths.empty()) {
        const std::unique_ptr<Workspace> opened = TRY(Open(adopted.summary));
        TRY(opened->DiscardPart(paths));
        TRY(opened->Close());
      }
      TRY(Rename(adopted.summary));
      TRY(Move(adopted.summary.id));
    }
    for (const TransactionSummary& summary : ended_) {
      TRY(store_->history().Write(summary));
    }
    return {};
  }

  [[nodiscard]] bool was_interrupted() const { return was_interrupted_; }
  /// What ended: it is listed afterwards, and cannot be undone here.
  [[nodiscard]] const std::vector<TransactionSummary>& ended() const {
    return ended_;
  }
  [[nodiscard]] const Foreign& foreign() const { return foreign_; }

 private:
  StoreAdoption(RealWorkspace workspace, Foreign foreign)
      : workspace_(std::move(workspace)), foreign_(std::move(foreign)) {}

  Status Copy() {
    store_ = TRY(OpenStore(workspace_));
    TRY(RemoveTree(store_->dir(), kScratch));
    TRY(MakeDirectoryAt(store_->dir(), kScratch, S_IRWXU));
    UniqueFd directory = TRY(ScratchDirectory());
    scratch_ =
        TRY(Store::Open(std::move(directory), foreign_.path, workspace_.path));
    was_interrupted_ = TRY(Exists(foreign_.directory.get(), "intent"));
    auto names = ListNames(foreign_.directory.get(), "txn");
    if (!names) return std::unexpected(names.error());
    for (const std::string& id : *names) {
      if (!IsTransactionId(id)) continue;
      TRY(CheckIsFree(id));
      TRY(CopyTransaction(foreign_.directory.get(), scratch_->dir(), id));
      TRY(MakeOurs(id));
    }
    for (const TransactionSummary& summary : TRY(scratch_->ListOpen())) {
      if (!summary.name.empty()) TRY(CheckTransactionName(summary.name));
    }
    return FindEnded();
  }

  Result<UniqueFd> ScratchDirectory() {
    return OpenAt(store_->dir(), kScratch, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  }

  Status CheckIsFree(const std::string& id) {
    if (!TRY(store_->IsOpen(id)) && !TRY(store_->history().Has(id))) return {};
    return Fail(
        0,
        "the workspace " + workspace_.path + " already has a transaction " + id,
        "`txfs list` shows it");
  }

  Status MakeOurs(const std::string& id) {
    const OpenTransaction open =
        TRY(scratch_->Resume(id, {.background_drain = false}));
    const BaseDirectory base(
        TRY(OpenAt(workspace_.base->get(), ".", O_RDONLY | O_DIRECTORY)));
    return AdoptTransaction(*open.journal, base,
                            foreign_.is_of_copy ? NotedObjects::kOfOriginal
                                                : NotedObjects::kOfThis);
  }

  Result<std::unique_ptr<Workspace>> Open(const TransactionSummary& summary) {
    WorkspaceOptions options;
    options.path = workspace_.path;
    options.base = workspace_.base;
    options.store = foreign_.path;
    options.store_directory =
        std::make_shared<UniqueFd>(TRY(ScratchDirectory()));
    options.name = summary.name;
    options.begin = false;
    options.collects = false;
    return Workspace::Open(options);
  }

  /// Where the workspace has an open one of that name.
  Status Rename(TransactionSummary& summary) {
    std::set<std::string> taken;
    for (const TransactionSummary& open : TRY(store_->ListOpen())) {
      taken.insert(open.name);
    }
    for (int i = 1; taken.contains(summary.name); ++i) {
      summary.name = "adopted-" + std::to_string(i);
    }
    return scratch_->UpdateSummary(summary);
  }

  Status Move(const std::string& id) {
    const std::string path = "txn/" + id;
    TRY(SyncTree(scratch_->dir()));
    if (::renameat(scratch_->dir(), path.c_str(), store_->dir(),
                   path.c_str()) != 0) {
      return Fail(errno, "move transaction " + id + " to the store");
    }
    return SyncDirectory(store_->dir(), "txn");
  }

  static Status SyncTree(int directory) {
    if (::syncfs(directory) == 0) return {};
    return Fail(errno, "sync the store");
  }

  Status FindEnded() {
    const TransactionHistory history(foreign_.directory.get());
    const auto ids = history.Ids();
    if (!ids) return {};
    for (const std::string& id : *ids) {
      const auto summary = history.Read(id);
      if (!summary || !IsEnded(*summary) || TRY(store_->history().Has(id)) ||
          TRY(store_->IsOpen(id))) {
        continue;
      }
      ended_.push_back(*summary);
    }
    return {};
  }

  RealWorkspace workspace_;
  Foreign foreign_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Store> scratch_;
  std::vector<TransactionSummary> ended_;
  bool was_interrupted_ = false;
};

std::string AdoptionText(const std::vector<Adopted>& all) {
  std::string text;
  for (const Adopted& adopted : all) {
    const TransactionSummary& summary = adopted.summary;
    text += "transaction " + summary.id +
            (summary.name.empty() ? "" : " " + EscapeControls(summary.name)) +
            ": " + Count(adopted.changes.size(), "change") + "\n";
    for (const NetChange& change : adopted.changes) {
      text += "  " + NameStatusLine(
                         {.status = "ADMRT"[static_cast<size_t>(change.kind)],
                          .net = change},
                         false);
    }
    for (const Adopted::Refusal& refusal : adopted.refused) {
      text += "  refused: " + PathText(refusal.change->path) + " by " +
              refusal.rule + ": " + EscapeControls(refusal.reason) + "\n";
    }
  }
  return text;
}

}  // namespace

Result<int> RunAdopt(const Context& context, const AdoptArguments& arguments) {
  const std::string path =
      arguments.workspace
          ? ResolvePath(context.directory, *arguments.workspace)
          : TRY(FindWorkspace(context.directory)).value_or(context.directory);
  RealWorkspace workspace = TRY(ReachWorkspace(path));
  std::optional<std::string> from;
  if (arguments.from) TRY(CheckWay(context.directory, *arguments.from));
  if (arguments.from) from = ResolvePath(context.directory, *arguments.from);
  Foreign foreign = TRY(FindForeign(workspace, from));
  const Rules rules = TRY(RulesOfNextMount(workspace));
  if (!workspace.record) {
    workspace.record =
        TRY(MakeRecord(workspace.base->get(), path, context.store));
  }
  TRY(MakeStore(workspace));
  const std::unique_ptr<StoreAdoption> adoption =
      TRY(StoreAdoption::Begin(std::move(workspace), std::move(foreign)));
  std::vector<Adopted> all = TRY(adoption->Look(rules));
  Output output;
  output.Write(AdoptionText(all));
  for (const TransactionSummary& summary : adoption->ended()) {
    output.Write("ended: transaction " + summary.id + ", " +
                 std::string(StateName(summary.state)) +
                 (summary.message.empty()
                      ? ""
                      : ", \"" + EscapeControls(summary.message) + "\"") +
                 "\n");
  }
  if (adoption->was_interrupted()) {
    Say("note: a commit was interrupted in that store; adopt does not finish "
        "it");
  }
  if (arguments.yes) {
    TRY(adoption->Take(all));
    output.Write("adopted " + Count(all.size(), "transaction") + " of " +
                 EscapeControls(adoption->foreign().path) +
                 ", which txfs no longer uses\n");
  } else {
    output.Write(
        "nothing is adopted yet: `txfs adopt --yes` adopts all changes that "
        "are not refused. The new files will belong to you, without "
        "set-user-ID bits and capabilities.\n");
  }
  TRY(output.Finish());
  return 0;
}

}  // namespace txfs::cli
