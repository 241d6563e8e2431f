#pragma once

#include <fcntl.h>

#include <map>
#include <string>
#include <vector>

#include "fs/workspace/workspace.h"
#include "journal/support/file.h"

namespace txfs::cli {

/// A filesystem in which files can only be read.
class FakeFilesystem : public Filesystem {
 public:
  std::map<Ino, std::string> files;

  Result<size_t> Read(Ino ino, uint64_t offset, MutableByteSpan out) override;

  Result<Node> Lookup(Ino, std::string_view) override { return No(); }
  void Forget(Ino, uint64_t) override {}
  Result<Node> Create(const Caller&, Ino, std::string_view, uint32_t) override {
    return No();
  }
  Result<Node> MakeNode(const Caller&, Ino, std::string_view, uint32_t,
                        uint64_t) override {
    return No();
  }
  Result<Node> MakeDirectory(const Caller&, Ino, std::string_view,
                             uint32_t) override {
    return No();
  }
  Result<Node> MakeSymlink(const Caller&, Ino, std::string_view,
                           std::string_view) override {
    return No();
  }
  Result<Node> Link(const Caller&, Ino, Ino, std::string_view) override {
    return No();
  }
  Status Unlink(const Caller&, Ino, std::string_view) override { return No(); }
  Status RemoveDirectory(const Caller&, Ino, std::string_view) override {
    return No();
  }
  Status Rename(const Caller&, Ino, std::string_view, Ino, std::string_view,
                RenameMode) override {
    return No();
  }
  Status ReadDirectory(Ino, uint64_t,
                       const std::function<bool(const DirEntry&)>&) override {
    return No();
  }
  Result<struct stat> GetAttr(Ino) override { return No(); }
  Result<struct stat> SetAttr(const Caller&, Ino, const AttrRequest&) override {
    return No();
  }
  Result<std::string> ReadLink(Ino) override { return No(); }
  Result<std::string> GetXattr(Ino, std::string_view) override { return No(); }
  Result<std::vector<std::string>> ListXattrs(Ino) override { return No(); }
  Status SetXattr(const Caller&, Ino, std::string_view, std::string_view,
                  XattrMode) override {
    return No();
  }
  Status RemoveXattr(const Caller&, Ino, std::string_view) override {
    return No();
  }
  Result<size_t> Write(const Caller&, Ino, uint64_t, ByteSpan,
                       WriteMode) override {
    return No();
  }
  Status Allocate(const Caller&, Ino, uint64_t, uint64_t,
                  AllocateMode) override {
    return No();
  }
  Result<size_t> CopyRange(const Caller&, Ino, uint64_t, Ino, uint64_t,
                           uint64_t) override {
    return No();
  }
  Result<uint64_t> Seek(Ino, uint64_t, int) override { return No(); }
  Status Sync() override { return {}; }
  Result<struct statvfs> StatFs() override { return No(); }

 private:
  static std::unexpected<Error> No() { return Fail(ENOSYS, "fake"); }
};

/// A workspace that says what it was told to say.
class FakeWorkspace : public Workspace {
 public:
  explicit FakeWorkspace(std::unique_ptr<Store> store)
      : store_(std::move(store)) {}

  FakeFilesystem files;
  std::map<std::string, std::string> base, vault;
  std::string base_directory;  ///< that OpenBase opens; "": it fails
  CommitView view;
  PlanReport plan;
  Retention kept;
  Result<std::string> recovery = "";  ///< what Recover says
  int recoveries = 0;
  std::vector<NetChange> changes;
  std::vector<LogEntry> log;
  std::vector<RunRecord> runs;
  Denials denials;
  std::vector<Conflict> conflicts;
  std::vector<BuiltOn> built_on;
  Status looking;                   ///< how looking for them goes
  std::vector<Conflict> resolved;   ///< by every commit
  std::vector<LimitExcess> limits;  ///< that every commit exceeds
  HeldReport held;                  ///< by every commit
  bool nothing = false;             ///< there is nothing to commit
  CommitOptions commit_options;     ///< of the last commit
  PlanRequest plan_request;         ///< of the last plan
  std::string id = "000000000001";
  int refreshes = 0;
  std::shared_ptr<const policy::Policy> used_policy;
  std::string asked_since, asked_until;  ///< of the last ChangesSince
  CallMark marked;                       ///< by the last MarkCall
  std::vector<Call> calls;
  std::vector<Savepoint> call_marks;
  std::map<Ino, std::string> past;       ///< content at every savepoint
  std::vector<std::string> asked_below;  ///< of the last Changes

  Filesystem& filesystem() override { return files; }
  Store& store() override { return *store_; }
  [[nodiscard]] Timestamp created() const override { return {}; }
  [[nodiscard]] std::string transaction_id() const override { return id; }
  [[nodiscard]] const std::string& path() const override { return path_; }
  Result<WorkspaceStatus> GetStatus() override;
  Status VisitChanges(bool expand, const std::vector<std::string>& below,
                      const ChangeVisitor& visit) override;
  Result<std::vector<NetChange>> ChangesSince(
      const std::string& savepoint, const std::string& until,
      const std::vector<std::string>& below) override;
  Result<size_t> ReadPast(const std::string& savepoint, Ino ino,
                          uint64_t offset, MutableByteSpan out) override;
  Result<size_t> ReadBase(const std::string& base_path, uint64_t offset,
                          MutableByteSpan out) override;
  Result<CommitReport> Commit(const CommitOptions& options,
                              const CommitProgress& progress) override;
  Result<PlanReport> PlanOnly(const PlanRequest& request) override {
    plan_request = request;
    return plan;
  }
  Result<PartDiscard> DiscardPart(
      const std::vector<std::string>& paths) override {
    asked_below = paths;
    return PartDiscard{.changes = paths.size(), .savepoints = {"sp1"}};
  }
  Result<std::vector<Conflict>> FindConflicts() override {
    if (!looking) return std::unexpected(looking.error());
    return conflicts;
  }
  Result<DiscardReport> Discard() override;
  Result<UndoReport> Undo(const std::string& commit) override {
    return UndoReport{.id = "000000000009",
                      .undone = commit,
                      .changes = 4,
                      .conflicts = conflicts};
  }
  Result<CommitView> Show(const std::string&) override { return view; }
  Result<size_t> ReadVault(const std::string& path, uint64_t offset,
                           MutableByteSpan out) override;
  Result<GcReport> CollectGarbage(const Retention& keep) override {
    kept = keep;
    return GcReport{.commits = 3, .bytes = 1ULL << 41, .forgotten = 5};
  }
  [[nodiscard]] const Retention& retention() const override { return kept; }
  Result<std::string> Recover() override {
    ++recoveries;
    return std::exchange(recovery, "");
  }
  Result<Savepoint> MakeSavepoint(const std::string& name) override;
  Result<RollbackReport> Rollback(const std::string& name) override;
  Result<uint64_t> MarkCall(const CallMark& mark) override {
    marked = mark;
    return uint64_t{7};
  }
  Result<std::vector<Call>> Calls() override { return calls; }
  Result<CallSpan> FindSpan(const std::string& wanted) override {
    return CallSpan{.number = 7,
                    .since = {.name = "since " + wanted},
                    .until = Savepoint{.name = "until\xFF"}};
  }
  std::vector<Savepoint> CallMarks() override { return call_marks; }
  Result<RevertReport> RevertCall(const std::string&) override {
    return RevertReport{
        .number = 7, .as = 8, .changes = 9, .built_on = built_on};
  }
  void BeginRun(const RunRecord& run) override { runs.push_back(run); }
  void SettleRun(const RunRecord&) override {}
  void EndRun(const RunRecord&) override {}
  std::vector<RunRecord> Runs() override { return runs; }
  void LimitRun(const RunLimits&, std::function<void(RunLimit)>) override {}
  Status ReadLog(Lsn first,
                 const std::function<bool(const LogEntry&)>& visit) override;
  Result<Denials> ReadDenials() override { return denials; }
  std::string DenialsVersion() override {
    return std::to_string(denials.entries.size());
  }
  std::vector<std::string> TakeMoved() override { return {"moved"}; }
  void OnStaleCaches(std::function<void(const StaleCaches&)>) override {}
  void OnPathEvents(
      std::function<void(const std::vector<PathEvent>&)>) override {}
  Status Refresh() override {
    ++refreshes;
    return {};
  }
  Status CatchUp() override { return {}; }
  void UsePolicy(std::shared_ptr<const policy::Policy> policy) override {
    used_policy = std::move(policy);
  }
  Result<UniqueFd> OpenBase() override {
    if (base_directory.empty()) return Fail(ENOSYS, "fake");
    return OpenAt(AT_FDCWD, base_directory, O_RDONLY | O_DIRECTORY);
  }
  Status KeepFollowed() override { return {}; }
  Status Close() override { return {}; }

 private:
  std::unique_ptr<Store> store_;
  std::string path_ = "/work\xFF";
};

}  // namespace txfs::cli
