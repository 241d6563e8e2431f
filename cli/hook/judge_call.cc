#include "cli/hook/judge_call.h"

#include <sys/stat.h>

#include <algorithm>
#include <future>
#include <utility>

#include "cli/hook/free_call.h"
#include "cli/hook/own_repository.h"
#include "cli/locate/locate.h"
#include "cli/locate/way.h"
#include "cli/output/errors.h"
#include "cli/output/paths.h"
#include "cli/output/text.h"
#include "cli/shell/reader.h"

namespace txfs::cli {
namespace {

using policy::Action;
using policy::Class;
using policy::Confinement;

constexpr const char* kTakesBack = "txfs can take it back";
/// More files of one patch are not judged.
constexpr size_t kMostFiles = 256;

HookAnswer AskBecause(const std::string& why) {
  return {Decision::kAsk, "txfs cannot judge this call: " + why};
}

std::string ReasonOf(const RuleVerdict& verdict) {
  std::string reason = "txfs: " + verdict.reason;
  if (verdict.action != Action::kDeny) {
    reason += "; only the user can let it run";
  }
  return reason + ". Instead: " + verdict.suggest + " (rule " + verdict.rule +
         ")";
}

/// `free`: why it may run unasked; "": it may not. `doubt`: why the rules may
/// not be all that hold.
HookAnswer AnswerTo(const RuleVerdict& verdict, const std::string& free,
                    const std::string& doubt) {
  if (verdict.action == Action::kDeny) {
    return {Decision::kDeny, ReasonOf(verdict)};
  }
  if (verdict.action >= Action::kHook) {
    return {Decision::kAsk, ReasonOf(verdict)};
  }
  if (!doubt.empty()) return AskBecause(doubt);
  // What is held at the commit runs, and the host may ask about it: it could be
  // a setting that the host reads in the mount.
  if (!free.empty() && verdict.action <= Action::kAudit) {
    return {Decision::kAllow, free};
  }
  return {Decision::kSilent, ""};
}

/// Why a command may run unasked; "": it may not.
Result<std::string> WhyFree(const RuleVerdict& verdict,
                            const std::vector<PlainPart>& parts,
                            const CommandStart& start, CallSite& site) {
  // Where the daemon hangs, so does each look at a file.
  if (verdict.action > Action::kAudit || !site.doubt().empty()) {
    return std::string();
  }
  if (start.confinement == Confinement::kRun) {
    const bool is_kept = verdict.consequence != Class::kIrreversible;
    return std::string(is_kept ? "the sandbox of txfs keeps it" : "");
  }
  const bool is_kept = start.confinement == Confinement::kMount &&
                       verdict.consequence == Class::kUndoable;
  if (!verdict.reads_only && !is_kept) return std::string();
  if (!TRY(MayRunUnasked(parts, start, site))) return std::string();
  return std::string(verdict.reads_only ? "it only reads" : kTakesBack);
}

Result<HookAnswer> JudgeShell(const std::string& text, CallSite& site) {
  const CommandStart start = TRY(site.Start());
  // Mostly waits for the parser, while this thread reaches the daemon or reads
  // the rules.
  auto parsing = std::async(std::launch::async,
                            [&] { return ReadShellText(text, start.shell); });
  if (site.Daemon() == nullptr) TRY(site.LoadRules());
  ShellReading reading = parsing.get();
  const std::vector<PlainPart> parts = PlainPartsOf(reading);
  const RuleVerdict verdict = TRY(site.JudgeParts(std::move(reading), start));
  return AnswerTo(verdict, TRY(WhyFree(verdict, parts, start, site)),
                  site.doubt());
}

/// The directory in which `path` is.
std::string DirectoryOfPath(const std::string& path) {
  return path.substr(0, std::max<size_t>(path.rfind('/'), 1));
}

/// A use of a file, with absolute paths without symbolic links that the tool
/// would follow.
struct ResolvedUse {
  FileUse::What what;
  std::string path, new_path;
  bool exists = false;
};

Result<ResolvedUse> ResolveUse(const FileUse& use,
                               const std::string& directory) {
  TRY(CheckWay(directory, use.path));
  ResolvedUse resolved{.what = use.what, .path = {}, .new_path = {}};
  if (use.what == FileUse::What::kWrite) {
    // To write is to write to what a link leads to, also to what is missing.
    const auto go_on = [](int) { return Status(); };
    resolved.path = TRY(WalkTo(MakeAbsolute(directory, use.path), go_on));
  } else {
    resolved.path = ResolveParent(directory, use.path);
  }
  if (use.what == FileUse::What::kMove) {
    TRY(CheckWay(directory, use.new_path));
    resolved.new_path = ResolvePath(directory, use.new_path);
  }
  struct stat st{};
  resolved.exists = ::lstat(resolved.path.c_str(), &st) == 0;
  return resolved;
}

/// A command that does the same, for what no rule about files is about.
std::string CommandFor(const ResolvedUse& use) {
  const std::string path = QuoteShell(use.path);
  switch (use.what) {
    case FileUse::What::kWrite:
      break;
    case FileUse::What::kRemove:
      return "rm -- " + path;
    case FileUse::What::kMove:
      return "mv -- " + path + " " + QuoteShell(use.new_path);
  }
  return ": > " + path;
}

/// None: `root` or what is outside of it.
std::optional<policy::Proposal> ProposalBelow(const std::string& root,
                                              const ResolvedUse& use) {
  const auto path = RelativeTo(use.path, root);
  if (!path || path->empty()) return std::nullopt;
  policy::Proposal proposal;
  proposal.path = *path;
  proposal.op = use.exists ? policy::Op::kWrite : policy::Op::kCreate;
  if (use.what == FileUse::What::kRemove) proposal.op = policy::Op::kUnlink;
  if (use.what == FileUse::What::kMove) {
    const auto new_path = RelativeTo(use.new_path, root);
    if (!new_path || new_path->empty()) return std::nullopt;
    proposal.op = policy::Op::kRename;
    proposal.new_path = *new_path;
  }
  return proposal;
}

Result<HookAnswer> AnswerInMount(const policy::Proposal& proposal,
                                 CallSite& site) {
  const RuleVerdict verdict = TRY(site.JudgeOperation(proposal));
  if (verdict.action == Action::kAsk || verdict.action == Action::kHook) {
    // The operation itself waits for the answer.
    return HookAnswer{Decision::kSilent, ""};
  }
  const bool may_be_git = IsOfGit(proposal.path) || IsOfGit(proposal.new_path);
  return AnswerTo(verdict, may_be_git ? "" : kTakesBack, site.doubt());
}

/// Whether a tool of a host may take `path` for another one.
bool MayBeExpanded(std::string_view path) {
  return path.starts_with('~') || path.starts_with('$') ||
         path.starts_with("file:") || path.contains("://");
}

Result<HookAnswer> AnswerFile(const FileUse& use, CallSite& site) {
  for (const std::string& path : {use.path, use.new_path}) {
    if (MayBeExpanded(path)) {
      return AskBecause(QuoteShell(path) + " may stand for another path");
    }
  }
  const ResolvedUse resolved = TRY(ResolveUse(use, site.context().directory));
  CallSite there(DirectoryOfPath(resolved.path));
  const bool is_here = there.mount() && site.mount() &&
                       there.mount()->mount_id == site.mount()->mount_id;
  CallSite& at = is_here ? site : there;
  if (at.mount()) {
    const auto proposal = ProposalBelow(at.mount()->mountpoint, resolved);
    if (proposal) return AnswerInMount(*proposal, at);
  } else {
    const auto found = TRY(FindWorkspace(at.context().directory));
    const std::string root = found.value_or(site.context().directory);
    if (const auto proposal = ProposalBelow(root, resolved)) {
      CallSite& rules = found ? at : site;
      const RuleVerdict verdict = TRY(rules.JudgeOperation(*proposal));
      return AnswerTo(verdict, "", rules.doubt());
    }
  }
  HookAnswer answer = TRY(JudgeShell(CommandFor(resolved), site));
  // Outside of the mount only the sandbox of a run takes it back.
  if (answer.decision == Decision::kAllow && !site.is_in_run()) {
    answer = {Decision::kSilent, ""};
  }
  return answer;
}

Result<HookAnswer> AnswerFiles(const std::vector<FileUse>& files,
                               CallSite& site) {
  if (files.size() > kMostFiles) {
    return AskBecause("it changes more than " + std::to_string(kMostFiles) +
                      " files");
  }
  std::optional<HookAnswer> strongest;
  for (const FileUse& use : files) {
    HookAnswer answer = TRY(AnswerFile(use, site));
    if (!strongest || answer.decision > strongest->decision) {
      strongest = std::move(answer);
    }
  }
  return strongest.value_or(HookAnswer{});
}

}  // namespace

HookAnswer JudgeCall(const HookCall& call, CallSite& site) {
  if (!call.is_judged()) return {};
  auto answer = call.command ? JudgeShell(*call.command, site)
                             : AnswerFiles(call.files, site);
  if (!answer) return AskBecause(Explained(answer.error()));
  if (!call.doubt.empty() && answer->decision < Decision::kAsk) {
    return AskBecause(call.doubt);
  }
  return std::move(*answer);
}

}  // namespace txfs::cli
