#include "fs/check_commits.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>

#include "fs/commit_image.h"
#include "fs/committer.h"
#include "fs/vaults.h"
#include "journal/base/file.h"
#include "journal/history.h"

namespace txfs {
namespace {

constexpr std::string_view kPlan = ".plan";
constexpr std::string_view kImage = ".image";

/// A plan that can be read; nothing, and a problem, for one that cannot.
std::optional<CommitRecord> CheckPlan(Result<std::string> bytes,
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
    findings.Add("commit.plan", "it is that of " + record->summary.id);
  }
  return std::move(*record);
}

void CheckImage(Result<std::string> bytes, Findings findings) {
  if (!bytes && bytes.error().code == ENOENT) return;
  const auto image = bytes
                         ? DecodeImage(AsBytes(*bytes))
                         : Result<CommitImage>(std::unexpected(bytes.error()));
  if (!image) findings.Add("commit.image", image.error());
}

Status CheckVault(const CommitRecord& record, const Vaults& vaults,
                  Findings findings) {
  if (std::ranges::count(TRY(vaults.Ids()), record.vault) == 0) {
    findings.Add("commit.vault", "its vault " + record.vault + " is missing");
    return {};
  }
  const auto opened = vaults.Open(record.vault);
  if (!opened) {
    findings.Note("vault " + record.vault + ": " + opened.error().message);
  }
  return {};
}

}  // namespace

Status CheckCommits(int store, const BaseDirectory* base, Findings findings) {
  const TransactionHistory history(store);
  std::optional<Vaults> vaults;
  if (base != nullptr) vaults.emplace(*base, store);
  if (history.HasIntent()) {
    const Findings intent = findings.Below("intent");
    const auto record = CheckPlan(history.ReadIntent(), "", intent);
    if (record && vaults) TRY(CheckVault(*record, *vaults, intent));
    findings.Note(
        "a commit is past its point of no return and not finished; the next "
        "command that opens the store goes on with it");
  }
  for (const std::string& name : TRY(ListNames(store, "history"))) {
    const Findings entry = findings.Below("history").Below(name);
    struct stat st{};
    const std::string path = "history/" + name;
    const bool is_file =
        ::fstatat(store, path.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(st.st_mode);
    if (!is_file) continue;
    if (name.ends_with(kPlan)) {
      const std::string id = name.substr(0, name.size() - kPlan.size());
      const auto record = CheckPlan(history.ReadPlan(id), id, entry);
      if (record && vaults) TRY(CheckVault(*record, *vaults, entry));
    } else if (name.ends_with(kImage)) {
      const std::string id = name.substr(0, name.size() - kImage.size());
      CheckImage(history.ReadImage(id), entry);
    }
  }
  return {};
}

}  // namespace txfs
