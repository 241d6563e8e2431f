#include "fs/check/check_commits.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "fs/commit/commit_image.h"
#include "fs/commit/committer.h"
#include "fs/vault/vault_manifest.h"
#include "fs/vault/vault_sums.h"
#include "fs/vault/vaults.h"
#include "journal/history.h"
#include "journal/support/file.h"

namespace txfs {
namespace {

constexpr std::string_view kPlan = ".plan";
constexpr std::string_view kImage = ".image";
constexpr std::string_view kManifest = ".vault";

/// One of the three files that undo needs.
struct Part {
  std::string_view suffix, kind, name;
};
constexpr std::array<Part, 3> kParts{{{kPlan, "commit.plan", "plan"},
                                      {kImage, "commit.image", "image"},
                                      {kManifest, "commit.vault", "manifest"}}};

class CommitsCheck {
 public:
  CommitsCheck(int store, const BaseDirectory* base, Findings findings)
      : store_(store),
        base_(base),
        history_(store),
        findings_(std::move(findings)) {
    if (base != nullptr) vaults_.emplace(*base, store);
  }

  Result<std::optional<std::string>> Run() {
    for (const std::string& name : TRY(ListNames(store_, "history"))) {
      const auto [id, suffix] = SplitHistoryName(name);
      if (IsTransactionId(id)) files_[std::string(id)].emplace(suffix);
    }
    TRY(CheckIntent());
    for (const auto& [id, files] : files_) TRY(CheckCommit(id, files));
    TRY(NoteUnreferenced());
    if (unsummed_ != 0) {
      findings_.Note(std::to_string(unsummed_) +
                     " files in the vaults have no checksum yet: the daemon "
                     "computes it while the workspace is mounted");
    }
    return ending_;
  }

 private:
  using Files = std::set<std::string, std::less<>>;

  Status CheckIntent() {
    if (!history_.HasIntent()) return {};
    const Findings intent = findings_.Below("intent");
    const auto record = CheckPlan(history_.ReadIntent(), "", intent);
    if (record) {
      const auto vault = TRY(OpenVault(*record, intent));
      if (vault) {
        CheckStaged(record->steps, *vault, intent);
        for (const std::string& other :
             FindOthers(*vault, SumsOf(*vault, intent).sums, false, intent)) {
          Findings(intent).Add("commit.vault", "in its vault: " + other);
        }
      }
      unfinished_ = {record->summary.id, record->summary.of};
      if (record->summary.kind == TransactionKind::kWhole) {
        ending_ = record->summary.id;
      }
    }
    Findings(intent).Note(
        "a commit is past its point of no return and not finished; the next "
        "command that opens the store finishes it");
    return {};
  }

  /// What the commit is yet to bring to the base is in the vault.
  void CheckStaged(const CommitSteps& steps, const Vault& vault,
                   Findings findings) const {
    for (size_t i = 0; i < steps.size(); ++i) {
      const CommitStep& step = steps[i];
      const bool brings =
          (step.kind == StepKind::kMove || step.kind == StepKind::kExchange) &&
          IsStaged(step.from) && !step.to.vault;
      if (brings && !IsAt(vault, step.from, step.ino) &&
          !IsDone(step, std::span(steps).subspan(i + 1))) {
        findings.Add("commit.vault", "the new object for " + step.to.path +
                                         " is missing: " + step.from.path);
      }
      if (step.kind != StepKind::kPatch) continue;
      for (const auto& delta : {step.before, step.after}) {
        if (delta && !IsThere(vault, Spot::Vault(delta->name, step.to.mount))) {
          findings.Add("commit.vault", "the patch for " + step.to.path +
                                           " is missing: " + delta->name);
        }
      }
    }
  }

  /// What in the vault has other content than its sums say.
  std::vector<std::string> FindOthers(const Vault& vault,
                                      const std::vector<ContentSum>& sums,
                                      bool is_copy, Findings findings) {
    std::vector<std::string> found;
    const auto others = FindOtherContent(vault, sums, is_copy,
                                         &findings.report().content_bytes);
    if (!others) findings.Note(others.error().ToString());
    for (const OtherContent& other :
         others.value_or(std::vector<OtherContent>())) {
      found.push_back(NameInVault(other.mount, other.path) + " " + other.what);
    }
    return found;
  }

  static VaultSums SumsOf(const Vault& vault, Findings findings) {
    auto sums = ReadSums(vault);
    if (!sums) findings.Add("commit.vault", sums.error());
    return std::move(sums).value_or(VaultSums());
  }

  static bool IsStaged(const Spot& spot) {
    return spot.vault && IsSlot(VaultSlot::kStaged, spot.path);
  }

  static std::optional<struct stat> StatOf(const Vault& vault,
                                           const Spot& spot) {
    const auto directory = DirectoryOf(vault, spot);
    struct stat st{};
    const bool found = directory && ::fstatat(*directory, spot.path.c_str(),
                                              &st, AT_SYMLINK_NOFOLLOW) == 0;
    return found ? std::optional(st) : std::nullopt;
  }

  static bool IsThere(const Vault& vault, const Spot& spot) {
    return StatOf(vault, spot).has_value();
  }

  static bool IsAt(const Vault& vault, const Spot& spot, uint64_t ino) {
    const auto st = StatOf(vault, spot);
    return st && st->st_ino == ino;
  }

  /// Whether the object is where `step` puts it; also where one of those after
  /// it may have moved it on, with what it is in.
  bool IsDone(const CommitStep& step, std::span<const CommitStep> after) const {
    const auto st = base_->Stat(step.to.path);
    if (st && st->st_ino == step.ino) return true;
    const std::string place = step.to.path + "/";
    const auto moves = [&](const Spot& spot) {
      return !spot.vault && place.starts_with(spot.path + "/");
    };
    return std::ranges::any_of(after, [&](const CommitStep& later) {
      const bool renames =
          later.kind == StepKind::kMove || later.kind == StepKind::kExchange;
      return renames && (moves(later.from) || moves(later.to));
    });
  }

  Status CheckCommit(const std::string& id, const Files& files) {
    const Findings place = findings_.Below("history");
    std::optional<CommitRecord> record;
    if (files.contains(kPlan)) {
      record = CheckPlan(history_.ReadPlan(id), id, place.Below(id + ".plan"));
    }
    if (files.contains(kImage)) {
      CheckImage(history_.ReadImage(id), place.Below(id + ".image"));
    }
    if (record) TRY(CheckVault(id, *record, files));
    // What is half there is so while somebody is at it, or died at it.
    const bool changing =
        unfinished_.contains(id) || files.contains(kDroppedPlanSuffix);
    if (!changing) CheckComplete(id, files);
    return {};
  }

  /// A commit that can be undone has all its files; one that cannot, none.
  void CheckComplete(const std::string& id, const Files& files) {
    const auto has = [&](const Part& part) {
      return files.contains(part.suffix);
    };
    const auto count = static_cast<size_t>(std::ranges::count_if(kParts, has));
    Findings place = findings_.Below("history").Below(id);
    if (count != 0 && !files.contains("")) {
      place.Add("store.summary",
                "it is missing, but the files that an undo needs exist: `txfs "
                "gc` removes them");
      return;
    }
    if (count == 0 || count == kParts.size()) return;
    for (const Part& part : kParts) {
      if (has(part)) continue;
      place.Add(part.kind, "its " + std::string(part.name) +
                               " is missing: it cannot be undone");
    }
  }

  /// A plan that can be read; nothing, and a problem, for one that cannot.
  static std::optional<CommitRecord> CheckPlan(Result<std::string> bytes,
                                               const std::string& id,
                                               Findings findings) {
    // It may be done or freed since its name was read.
    if (!bytes && bytes.error().code == ENOENT) return std::nullopt;
    auto record = bytes ? DecodeRecord(AsBytes(*bytes))
                        : Result<CommitRecord>(std::unexpected(bytes.error()));
    if (!record) {
      findings.Add("commit.plan", record.error());
      return std::nullopt;
    }
    if (!id.empty() && record->summary.id != id) {
      findings.Add("commit.plan",
                   "it belongs to transaction " + record->summary.id);
    }
    return std::move(*record);
  }

  static void CheckImage(const Result<std::string>& bytes, Findings findings) {
    if (!bytes && bytes.error().code == ENOENT) return;
    const auto image =
        bytes ? DecodeImage(AsBytes(*bytes))
              : Result<CommitImage>(std::unexpected(bytes.error()));
    if (!image) findings.Add("commit.image", image.error());
  }

  /// The vault of `record`; none, and a problem or a note, when it is not there
  /// or not to be opened.
  Result<std::optional<Vault>> OpenVault(const CommitRecord& record,
                                         Findings findings) {
    std::optional<Vault> none;
    referenced_.insert(record.vault);
    if (!vaults_) return none;
    if (std::ranges::count(TRY(vaults_->Ids()), record.vault) == 0) {
      findings.Add("commit.vault", "its vault " + record.vault + " is missing");
      return none;
    }
    auto opened = vaults_->Open(record.vault);
    if (opened) return std::optional(std::move(*opened));
    findings.Note("vault " + record.vault + ": " + opened.error().message);
    return none;
  }

  Status CheckVault(const std::string& id, const CommitRecord& record,
                    const Files& files) {
    Findings place = findings_.Below("history").Below(id + ".plan");
    const auto vault = TRY(OpenVault(record, place));
    if (!files.contains(kManifest)) return {};
    Findings findings = findings_.Below("history").Below(id + ".vault");
    const auto bytes = history_.ReadManifest(id);
    if (!bytes && bytes.error().code == ENOENT) return {};
    const auto manifest =
        bytes ? DecodeManifest(AsBytes(*bytes))
              : Result<VaultManifest>(std::unexpected(bytes.error()));
    if (!manifest) {
      findings.Add("commit.vault", manifest.error());
      return {};
    }
    // An undo that somebody died in has changed it.
    if (!vault || unfinished_.contains(id)) return {};
    const auto differences = CompareManifest(*vault, *manifest);
    if (!differences) {
      findings.Note("vault " + record.vault + ": " +
                    differences.error().ToString());
      return {};
    }
    if (differences->is_copy) {
      findings.Note("transaction " + id +
                    " cannot be undone here: the store was copied or restored, "
                    "so its inode numbers changed");
    }
    if (!differences->doubts.empty()) {
      findings.Note("the content of " +
                    std::to_string(differences->doubts.size()) +
                    " files in vault " + record.vault + ", for example " +
                    differences->doubts.front() +
                    ", cannot be verified: they were touched before they had "
                    "a checksum");
    }
    const SumsByFile sums = MatchSums(*manifest, SumsOf(*vault, findings));
    // What was touched gets none any more, nor what is in a copy.
    if (!differences->is_copy) {
      unsummed_ += sums.missing.size() -
                   std::min(sums.missing.size(), differences->doubts.size());
    }
    std::vector<std::string> all =
        FindOthers(*vault, sums.found, differences->is_copy, findings);
    std::ranges::copy(differences->list, std::back_inserter(all));
    for (const std::string& one : std::set(all.begin(), all.end())) {
      findings.Add("commit.vault", "in its vault " + record.vault + ": " + one);
    }
    return {};
  }

  Status NoteUnreferenced() {
    if (!vaults_) return {};
    for (const std::string& id : TRY(vaults_->Ids())) {
      if (referenced_.contains(id)) continue;
      findings_.Note("vault " + id +
                     " belongs to no commit that can be undone; it is freed "
                     "when the next transaction ends");
    }
    return {};
  }

  const int store_;
  const BaseDirectory* const base_;
  const TransactionHistory history_;
  Findings findings_;
  std::optional<Vaults> vaults_;
  std::map<std::string, Files> files_;  ///< by id
  std::set<std::string> unfinished_;    ///< ids that the intent is about
  std::set<std::string> referenced_;    ///< vaults
  std::optional<std::string> ending_;   ///< transaction that the intent ends
  size_t unsummed_ = 0;                 ///< files in vaults
};

}  // namespace

Result<std::optional<std::string>> CheckCommits(int store,
                                                const BaseDirectory* base,
                                                Findings findings) {
  return CommitsCheck(store, base, std::move(findings)).Run();
}

}  // namespace txfs
