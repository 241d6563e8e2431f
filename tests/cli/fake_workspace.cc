#include "fake_workspace.h"

#include <algorithm>

namespace txfs::cli {
namespace {

size_t CopyFrom(const std::string& content, uint64_t offset,
                MutableByteSpan out) {
  if (offset >= content.size()) return 0;
  const ByteSpan rest = AsBytes(content).subspan(offset);
  const size_t size = std::min(rest.size(), out.size());
  std::copy_n(rest.begin(), size, out.begin());
  return size;
}

}  // namespace

Result<size_t> FakeFilesystem::Read(Ino ino, uint64_t offset,
                                    MutableByteSpan out) {
  const auto found = files.find(ino);
  if (found == files.end()) return Fail(ENOENT, "fake file");
  return CopyFrom(found->second, offset, out);
}

Result<WorkspaceStatus> FakeWorkspace::GetStatus() {
  return WorkspaceStatus{.id = id,
                         .name = "n",
                         .workspace = path_,
                         .store = path_ + "/.txfs",
                         .state = TransactionState::kActive,
                         .created = {.sec = -5, .nsec = 7},
                         .changes = changes.size(),
                         .operations = log.size(),
                         .store_bytes = 1ULL << 40,
                         .savepoints = {{"s\xFF", Lsn{3}, {.sec = 4}}}};
}

Status FakeWorkspace::VisitChanges(bool, const std::vector<std::string>& below,
                                   const ChangeVisitor& visit) {
  asked_below = below;
  for (const NetChange& change : changes) TRY(visit(change));
  return {};
}

Result<std::vector<NetChange>> FakeWorkspace::ChangesSince(
    const std::string& savepoint, const std::string& until,
    const std::vector<std::string>& below) {
  asked_since = savepoint;
  asked_until = until;
  asked_below = below;
  return changes;
}

Result<size_t> FakeWorkspace::ReadPast(const std::string&, Ino ino,
                                       uint64_t offset, MutableByteSpan out) {
  const auto found = past.find(ino);
  if (found == past.end()) return Fail(ENOENT, "fake past");
  return CopyFrom(found->second, offset, out);
}

Result<size_t> FakeWorkspace::ReadBase(const std::string& base_path,
                                       uint64_t offset, MutableByteSpan out) {
  const auto found = base.find(base_path);
  if (found == base.end()) return Fail(ENOENT, "fake base " + base_path);
  return CopyFrom(found->second, offset, out);
}

Result<size_t> FakeWorkspace::ReadVault(const std::string& path,
                                        uint64_t offset, MutableByteSpan out) {
  const auto found = vault.find(path);
  if (found == vault.end()) return Fail(ENOENT, "fake vault " + path);
  return CopyFrom(found->second, offset, out);
}

Result<CommitReport> FakeWorkspace::Commit(const CommitOptions& options,
                                           const CommitProgress& progress) {
  commit_options = options;
  progress(1, 2);
  progress(2, 2);
  CommitReport report{.id = id,
                      .partial = !options.paths.empty(),
                      .nothing = nothing,
                      .changes = changes.size(),
                      .conflicts = conflicts,
                      .limits = limits,
                      .held = held,
                      .resolved = resolved,
                      .withheld = {},
                      .savepoints = {}};
  if (report.partial) report.savepoints.emplace_back("sp\xFF");
  if (conflicts.empty()) id = "000000000002";
  return report;
}

Result<DiscardReport> FakeWorkspace::Discard() {
  return DiscardReport{.id = std::exchange(id, "000000000002"),
                       .changes = changes.size()};
}

Result<Savepoint> FakeWorkspace::MakeSavepoint(const std::string& name) {
  return Savepoint{.name = name, .lsn = Lsn{7}, .time = {.sec = 8, .nsec = 9}};
}

Result<RollbackReport> FakeWorkspace::Rollback(const std::string& name) {
  return RollbackReport{.savepoint = TRY(MakeSavepoint(name)), .undone = 11};
}

Status FakeWorkspace::ReadLog(
    Lsn first, const std::function<bool(const LogEntry&)>& visit) {
  for (const LogEntry& entry : log) {
    if (entry.lsn >= first && !visit(entry)) break;
  }
  return {};
}

}  // namespace txfs::cli
