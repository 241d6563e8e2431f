#include "journal/check_store.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "journal/history.h"
#include "journal/store.h"
#include "journal/support/file.h"

namespace txfs {
namespace {

enum class Presence { kRequired, kOptional };

struct Entry {
  std::string_view name;
  mode_t type;
  Presence presence;
};

constexpr Entry kStoreEntries[] = {
    {"FORMAT", S_IFREG, Presence::kRequired},
    {".gitignore", S_IFREG, Presence::kOptional},
    {"workspace", S_IFREG, Presence::kRequired},
    {"lock", S_IFREG, Presence::kOptional},
    {"txn", S_IFDIR, Presence::kRequired},
    {"history", S_IFDIR, Presence::kRequired},
    {"trash", S_IFDIR, Presence::kRequired},
    {"commit.lock", S_IFREG, Presence::kOptional},
    {"intent", S_IFREG, Presence::kOptional},
    {"reserved", S_IFREG, Presence::kOptional},
    {"vault", S_IFDIR, Presence::kOptional},
    {"vault-place", S_IFREG, Presence::kOptional},
    {"adopt", S_IFDIR, Presence::kOptional},
    {"blank", S_IFDIR, Presence::kOptional},
    {"blank.part", S_IFDIR, Presence::kOptional},
    {"blank.lock", S_IFREG, Presence::kOptional},
    {"policy.toml", S_IFREG, Presence::kOptional},
};

constexpr Entry kTransactionEntries[] = {
    {"lock", S_IFREG, Presence::kRequired},
    {"summary", S_IFREG, Presence::kRequired},
    {"daemon.json", S_IFREG, Presence::kOptional},
    {"runs", S_IFREG, Presence::kOptional},
    {"db", S_IFDIR, Presence::kRequired},
    {"db/data.mdb", S_IFREG, Presence::kRequired},
    {"db/lock.mdb", S_IFREG, Presence::kOptional},
    {"intake", S_IFREG, Presence::kRequired},
    {"reserve", S_IFREG, Presence::kOptional},
    {"promised", S_IFREG, Presence::kOptional},
    {"spool", S_IFDIR, Presence::kRequired},
    {"preimages", S_IFREG, Presence::kOptional},
};

/// The file that was about to be replaced when a crash left this.
std::string_view WithoutNew(std::string_view name) {
  if (name.ends_with(kTemporarySuffix)) {
    name.remove_suffix(kTemporarySuffix.size());
  }
  return name;
}

/// The S_IF* bits of what is at `path`; 0 for nothing.
Result<mode_t> TypeAt(int dir, const std::string& path) {
  struct stat st{};
  if (::fstatat(dir, path.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0) {
    return st.st_mode & S_IFMT;
  }
  if (errno == ENOENT || errno == ENOTDIR) return mode_t{0};
  return Fail(errno, "stat " + path);
}

/// Looks for what has to be in `dir`, and for what has not. Whether all is
/// there.
template <size_t kCount>
Result<bool> CheckEntries(int dir, const Entry (&entries)[kCount],
                          std::string_view kind, Findings& findings) {
  bool complete = true;
  for (const Entry& entry : entries) {
    const mode_t type = TRY(TypeAt(dir, std::string(entry.name)));
    if (type == entry.type) continue;
    if (type == 0 && entry.presence == Presence::kOptional) continue;
    complete = false;
    findings.Add(kind,
                 std::string(entry.name) + (type == 0 ? " is missing"
                                            : entry.type == S_IFDIR
                                                ? " is not a directory"
                                                : " is not a regular file"));
  }
  for (const std::string& name : TRY(ListNames(dir, "."))) {
    if (std::ranges::count(entries, WithoutNew(name), &Entry::name) == 0) {
      findings.Add("store.entry", Quote(name) + " does not belong there");
    }
  }
  return complete;
}

/// Whether the version is known.
Result<bool> CheckFormat(int store, Findings findings) {
  const auto text = ReadWholeFile(store, "FORMAT", 4096);
  if (text && *text == "txfs store 1\n") return true;
  const bool is_store = text && text->starts_with("txfs store ");
  findings.Add(is_store ? "version" : "store.format",
               is_store ? "unknown store version " + Quote(text->substr(11))
                        : std::string("it is damaged"));
  return !is_store;
}

void CheckWorkspace(int store, Findings findings) {
  const auto path = ReadWholeFile(store, "workspace", 1 << 16);
  if (!path || !path->starts_with('/') || path->find('\0') != path->npos) {
    findings.Add("store.workspace", "it does not name a workspace");
  }
}

/// What a new transaction may not be called.
void CheckReserved(int store, Findings findings) {
  const auto id = ReadWholeFile(store, "reserved");
  if (!id) return findings.Add("store.reserved", id.error());
  if (!IsTransactionId(*id)) {
    findings.Add("store.reserved", Quote(*id) + " is not a transaction id");
  }
}

/// `path` is that of a summary of transaction `id`.
void CheckSummary(int store, const std::string& path, const std::string& id,
                  bool ended, Findings findings) {
  const auto bytes = ReadWholeFile(store, path);
  if (!bytes) return findings.Add("store.summary", bytes.error());
  const auto summary = DecodeSummary(AsBytes(*bytes));
  if (!summary) return findings.Add("store.summary", summary.error());
  if (summary->id != id) {
    findings.Add("store.summary", "it belongs to transaction " + summary->id);
  }
  const bool says_ended = summary->state == TransactionState::kCommitted ||
                          summary->state == TransactionState::kDiscarded;
  if (says_ended != ended || (summary->ended == Timestamp{}) == ended) {
    findings.Add("store.summary", ended ? "it says that the transaction is open"
                                        : "it says that the transaction ended");
  }
}

/// Whether a file in the history is a summary, or what undo needs.
bool IsHistoryKind(std::string_view kind) {
  return std::ranges::count(
             std::array<std::string_view, 4>{"", ".plan", ".image", ".vault"},
             WithoutNew(kind)) != 0;
}

/// Summaries of transactions that have ended. Returns their ids.
Result<std::vector<std::string>> CheckHistory(int store, Findings findings) {
  std::vector<std::string> ids;
  const std::vector<std::string> names = TRY(ListNames(store, "history"));
  for (const std::string& name : names) {
    const std::string path = "history/" + name;
    const auto [part, kind] = SplitHistoryName(name);
    const std::string id(part);
    const mode_t type = TRY(TypeAt(store, path));
    if (type == 0) continue;  // it went since its name was read
    if (!IsTransactionId(id) || !IsHistoryKind(kind) || type != S_IFREG) {
      findings.Add("store.entry", Quote(name) + " does not belong there");
    } else if (id == name) {
      ids.push_back(id);
      CheckSummary(store, path, id, true, findings.Below(id));
    }
  }
  return ids;
}

Result<bool> CheckTransaction(int store, const std::string& id,
                              Findings findings) {
  auto dir = OpenDirectoryBelow(store, "txn/" + id);
  // It may have ended since its name was read.
  if (!dir && dir.error().code == ENOENT) return false;
  if (!dir) return std::unexpected(std::move(dir).error());
  const bool complete = TRY(CheckEntries(dir->get(), kTransactionEntries,
                                         "store.transaction", findings));
  if (TRY(TypeAt(dir->get(), "summary")) == S_IFREG) {
    CheckSummary(dir->get(), "summary", id, false, findings.Below("summary"));
  }
  return complete;
}

}  // namespace

Result<StoreLayout> CheckLayout(int store, Findings findings) {
  StoreLayout layout;
  const bool complete =
      TRY(CheckEntries(store, kStoreEntries, "store.entry", findings));
  if (TRY(TypeAt(store, "FORMAT")) == S_IFREG &&
      !TRY(CheckFormat(store, findings.Below("FORMAT")))) {
    return layout;
  }
  if (TRY(TypeAt(store, "workspace")) == S_IFREG) {
    CheckWorkspace(store, findings.Below("workspace"));
  }
  if (TRY(TypeAt(store, "reserved")) == S_IFREG) {
    CheckReserved(store, findings.Below("reserved"));
  }
  if (!complete) {
    findings.Note(
        "the store is incomplete: its transactions were not "
        "checked");
    return layout;
  }
  layout.complete = true;
  const auto ended = TRY(CheckHistory(store, findings.Below("history")));
  Findings txn = findings.Below("txn");
  for (const std::string& name : TRY(ListNames(store, "txn"))) {
    const std::string id(WithoutNew(name));
    if (!IsTransactionId(id) || TRY(TypeAt(store, "txn/" + name)) != S_IFDIR) {
      txn.Add("store.entry", Quote(name) + " does not belong there");
      continue;
    }
    // What never began, or has ended, is on its way to the trash.
    if (id != name || std::ranges::count(ended, id) != 0) continue;
    ++findings.report().transactions;
    if (TRY(CheckTransaction(store, id, txn.Below(id))))
      layout.open.push_back(id);
  }
  return layout;
}

}  // namespace txfs
