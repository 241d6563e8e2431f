#include "journal/journal.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "journal/db.h"
#include "journal/intake.h"
#include "journal/merge_changes.h"
#include "journal/spool.h"
#include "journal/support/file.h"
#include "journal/support/io.h"
#include "journal/support/mutex.h"
#include "journal/support/reserve.h"

namespace txfs {
namespace {

constexpr size_t kBatchRecords = 8192;
constexpr size_t kMaxChangeBytes = 1 << 30;
constexpr std::chrono::milliseconds kRetryInterval{1000};

Result<uint64_t> NewSalt() {
  uint64_t salt = 0;
  if (::getrandom(&salt, sizeof salt, 0) != sizeof salt) {
    return Fail(errno, "getrandom");
  }
  return salt;
}

/// In a deep tree the log would take more than all else; for people the
/// beginning is enough.
constexpr size_t kMaxLoggedPath = 4096;

bool HasLongPath(const Change& change) {
  return change.path.size() > kMaxLoggedPath ||
         change.new_path.size() > kMaxLoggedPath ||
         change.because.size() > kMaxLoggedPath;
}

Change WithPathsCut(Change change) {
  for (std::string* path : {&change.path, &change.new_path, &change.because}) {
    if (path->size() > kMaxLoggedPath) path->resize(kMaxLoggedPath);
  }
  return change;
}

std::vector<PendingContent> InlineContents(
    const std::vector<IntakeRecord>& records) {
  std::vector<PendingContent> contents;
  for (const IntakeRecord& record : records) {
    if (!record.inline_bytes.empty()) {
      contents.push_back({record.content, record.inline_bytes});
    }
  }
  return contents;
}

/// Tells the spool what the tables point at.
class LiveContent final : public State {
 public:
  explicit LiveContent(Spool& spool) : spool_(spool) {}
  void SetInode(Ino ino, const std::optional<InodeRecord>& record) override {
    SetAttr(ino, record->attr);
  }
  void SetAttr(Ino, const Attr& attr) override {
    spool_.AddOwn(attr.own_segment);
  }
  void PutExtent(Ino, const Extent& extent) override { spool_.AddLive(extent); }
  void SetDentry(Ino, const std::string&, const DentryValue&) override {}
  void EraseExtent(Ino, const Extent&) override {}
  void SetXattr(Ino, const std::string&,
                const std::optional<std::string>&) override {}

 private:
  Spool& spool_;
};

/// The last row of the log, which waits for changes that it can stand for, too:
/// what a program writes again and again would fill the disk.
class LogRow {
 public:
  explicit LogRow(Tables& tables) : tables_(tables) {}

  /// `encoded` is `change`, and outlives this.
  void Add(Lsn lsn, Change change, ByteSpan encoded) {
    const bool follows = change_ && Next(lsn_) == lsn;
    if (!follows || !MergeChanges(*change_, change)) {
      Put();
      change_ = std::move(change);
      encoded_ = encoded;
    }
    lsn_ = lsn;
  }

  void Put() {
    if (!change_) return;
    Apply(*change_, tables_);
    if (change_->repeats == 1) {
      tables_.PutLog(lsn_, encoded_);
    } else {
      Bytes merged;
      EncodeChange(*change_, merged);
      tables_.PutLog(lsn_, merged);
    }
    change_.reset();
  }

 private:
  Tables& tables_;
  Lsn lsn_ = kNoLsn;
  std::optional<Change> change_;
  ByteSpan encoded_;
};

/// Puts what `records` say into `tables`. `denials` are those of before; where
/// there are new ones, `new_denials` become those with them.
Status PutRecords(const std::vector<IntakeRecord>& records,
                  const DenialTable& denials,
                  std::optional<DenialTable>& new_denials, Tables& tables) {
  LogRow row(tables);
  for (const IntakeRecord& record : records) {
    Change change = TRY(DecodeChange(record.change));
    if (IsDenial(change)) {
      if (!new_denials) new_denials = denials;
      new_denials->Add(record.lsn, std::move(change));
      continue;
    }
    if (change.op == Op::kSavepoint) {
      tables.PutSavepoint({change.path, record.lsn, change.time});
    }
    row.Add(record.lsn, std::move(change), record.change);
  }
  row.Put();
  if (new_denials) new_denials->SaveTo(tables, denials);
  return {};
}

constexpr const char* kReserveFile = "reserve";
constexpr const char* kPromisedFile = "promised";

/// Room for a whole ring, or for the one of the next transaction, and its
/// tables.
uint64_t ReserveFor(uint64_t ring) { return ring + ring / 2 + (256 << 10); }

uint64_t FirstRing(const JournalOptions& options) {
  return std::min(options.first_intake_bytes, options.intake_bytes);
}

class TransactionJournal final : public Journal {
 public:
  TransactionJournal(UniqueFd dir, const JournalOptions& options, Io& io)
      : dir_(std::move(dir)),
        options_(options),
        io_(io),
        reserve_(dir_.get(), kReserveFile, io_),
        promised_(dir_.get(), kPromisedFile, io_) {}
  ~TransactionJournal() override;

  Status CreateFiles();
  Status OpenFiles();
  Status OpenUnusedFiles();
  void StartDrainThread();

  Status Load(State& state) override;
  Result<StagedContent> Stage(ByteSpan bytes, uint32_t own_segment,
                              uint64_t own_position, bool promised) override {
    if (!promised) TRY(RequireReserve());
    return spool_->Stage(bytes, own_segment, own_position, promised);
  }
  Result<uint32_t> NewSegment() override { return spool_->NewSegment(); }
  Status LinkSegment(uint32_t segment, int directory,
                     const std::string& name) override {
    return spool_->LinkSegment(segment, directory, name);
  }
  Status SetAside(uint64_t bytes) override {
    return promised_.Set(bytes + bytes / 16);
  }
  void Abandon(const StagedContent& content) override {
    spool_->Abandon(content.ref);
  }
  Result<Lsn> Append(const Change& change,
                     const StagedContent* content) override;
  void Release(const Extent& extent, Lsn lsn) override {
    spool_->Release(extent, lsn);
  }
  Status Read(const ContentRef& ref, uint64_t offset,
              MutableByteSpan out) override {
    return spool_->Read(ref, offset, out);
  }
  Status Sync() override;
  Status Drain() override;
  Status DrainUnsynced() override;
  [[nodiscard]] Lsn last_lsn() const override {
    return Lsn{Raw(intake_->next_lsn()) - 1};
  }
  Status ReadLog(Lsn first,
                 const std::function<bool(const LogEntry&)>& visit) override;
  [[nodiscard]] uint64_t denied() const override { return denied_; }
  Result<Denials> ReadDenials() override;
  Status PutMeta(const std::string& key, std::string_view value) override;
  Result<std::string> GetMeta(const std::string& key) override {
    return db_->GetMeta(key);
  }
  [[nodiscard]] std::vector<Savepoint> Savepoints() override {
    const MutexLock lock(savepoint_mutex_);
    return savepoints_;
  }
  Result<Rewind> PlanRewind(Lsn savepoint, Lsn until) override;
  Result<Rewind> Rollback(const Change& change) override;
  void SettleRewind(const Rewind& rewind) override;
  Result<Lsn> Settle(const Change& change) override;
  [[nodiscard]] Ino highest_ino() const override { return highest_ino_; }
  void Forget() override { forgotten_ = true; }
  bool GiveUpReserve() override { return reserve_.GiveUp(); }
  Result<uint64_t> StoreBytes() override;

 private:
  Status RecoverIntake();
  Status BeginEpoch(Lsn next_lsn);
  Status OpenTables();
  Result<Lsn> AppendDenial(const Change& denial);
  /// WakeDrainThread is to follow.
  Result<Intake::Appended> AppendToRing(ByteSpan encoded,
                                        const StagedContent* content)
      REQUIRES(append_mutex_);
  Status MakeRoom(uint64_t size) REQUIRES(append_mutex_);
  [[nodiscard]] bool MayGrow() const {
    return !cannot_grow_ && intake_->capacity() < options_.intake_bytes;
  }
  /// Makes the ring as large as it may be, if there is room on the disk.
  void GrowRing() REQUIRES(append_mutex_, drain_mutex_);
  Result<Lsn> AppendToTables(const Change& change, ByteSpan encoded,
                             const StagedContent* content)
      REQUIRES(append_mutex_);
  /// One batch beside the ring, which must be drained: `fill`, and `encoded`
  /// in the log.
  Result<Lsn> WriteBesideRing(ByteSpan encoded,
                              const std::function<void(Tables&, Lsn)>& fill)
      REQUIRES(append_mutex_, drain_mutex_);
  Status RecoverSavepoints();
  Result<Rewind> Undone(Lsn savepoint, Lsn until = kNoLsn);
  void AddSavepoint(const Change& change, Lsn lsn);
  void SetSavepoints(std::vector<Savepoint> savepoints);
  void WakeDrainThread(const Intake::Appended& appended);
  void RunDrainThread();
  Status DrainAll() REQUIRES(drain_mutex_);
  Status DrainBatch() REQUIRES(drain_mutex_);
  Status WriteBatch(const std::vector<IntakeRecord>& records)
      REQUIRES(drain_mutex_);
  Status SyncTables() REQUIRES(drain_mutex_);
  /// Content is taken only while there is a reserve, so that what makes room
  /// finds some.
  Status RequireReserve() {
    return reserve_.Require(ReserveFor(intake_->capacity()));
  }
  void MadeDurable(const IntakeCursor& cursor);

  const UniqueFd dir_;
  const JournalOptions options_;
  Io& io_;
  Reserve reserve_, promised_;
  std::unique_ptr<Db> db_;
  std::unique_ptr<Intake> intake_;
  std::unique_ptr<Spool> spool_;
  Mutex append_mutex_;                               ///< one append at a time
  Mutex drain_mutex_ ACQUIRED_AFTER(append_mutex_);  ///< one drain at a time
  std::atomic<bool> drain_failed_ = false;
  DenialTable denials_ GUARDED_BY(drain_mutex_);  ///< as in the tables
  /// Rules whose texts are in the ring or the tables.
  std::set<DenialTable::RuleKey> known_rules_ GUARDED_BY(append_mutex_);
  /// Without any, whoever asks for them need not wait for a batch.
  std::atomic<bool> has_denials_ = false;
  std::atomic<uint64_t> denied_ = 0;
  /// The tables have what is neither in the intake nor durable.
  std::atomic<bool> tables_ahead_ = false;
  std::atomic<bool> forgotten_ = false;
  std::atomic<bool> cannot_grow_ = false;  ///< the ring: the disk has no room

  Mutex savepoint_mutex_;
  std::vector<Savepoint> savepoints_ GUARDED_BY(savepoint_mutex_);
  Ino highest_ino_ = kNoIno;  ///< set when the journal is opened

  Mutex sync_mutex_;
  CondVar sync_done_;
  bool syncing_ GUARDED_BY(sync_mutex_) = false;
  Lsn synced_ GUARDED_BY(sync_mutex_) = kNoLsn;

  Mutex wake_mutex_;
  CondVar wake_;
  bool waiting_ GUARDED_BY(wake_mutex_) = false;  ///< a record waits
  bool urgent_ GUARDED_BY(wake_mutex_) = false;   ///< a quarter is full
  bool stop_ GUARDED_BY(wake_mutex_) = false;
  std::thread drain_thread_;
};

Status TransactionJournal::CreateFiles() {
  db_ = TRY(Db::Create(dir_.get(), options_.map_bytes, io_));
  intake_ = TRY(Intake::Create(dir_.get(), FirstRing(options_), io_,
                               options_.intake_bytes));
  spool_ = TRY(Spool::Open(dir_.get(), options_.segment_bytes, io_));
  TRY(BeginEpoch(Lsn{1}));
  // Without one, content is refused until there is room for it.
  std::ignore = RequireReserve();
  return SyncDirectory(dir_.get(), ".");
}

Status TransactionJournal::OpenTables() {
  db_ = TRY(Db::Open(dir_.get(), options_.map_bytes, io_));
  return WithReserve(*this, [&] { return db_->Upgrade(); });
}

Status TransactionJournal::OpenFiles() {
  promised_.GiveUp();  // of a daemon that was killed
  TRY(OpenTables());
  intake_ = TRY(Intake::Open(dir_.get(), io_, options_.intake_bytes));
  spool_ = TRY(Spool::Open(dir_.get(), options_.segment_bytes, io_));
  TRY(RecoverIntake());
  LiveContent live(*spool_);
  TRY(db_->LoadContent(live));
  TRY(RecoverSavepoints());
  return spool_->FinishLoad();
}

/// The epoch that was begun then is as good as a new one.
Status TransactionJournal::OpenUnusedFiles() {
  TRY(OpenTables());
  intake_ = TRY(Intake::Open(dir_.get(), io_, options_.intake_bytes));
  spool_ = TRY(Spool::Open(dir_.get(), options_.segment_bytes, io_));
  const IntakeCursor cursor = TRY(db_->GetCursor());
  if (cursor.position != 0 || cursor.next_lsn != Lsn{1} ||
      intake_->capacity() < FirstRing(options_)) {
    return Fail(EINVAL, PathOfFd(dir_.get()) + " is not an unused journal");
  }
  intake_->BeginEpoch(cursor);
  std::ignore = RequireReserve();  // as in CreateFiles
  return {};
}

/// What savepoints need follows from the log since the oldest of them.
Status TransactionJournal::RecoverSavepoints() {
  std::vector<Savepoint> savepoints = TRY(db_->ReadSavepoints());
  if (savepoints.empty()) return {};
  const Rewind since = TRY(Undone(savepoints.front().lsn));
  for (const auto& past : since.inodes) {
    highest_ino_ = std::max(highest_ino_, past.ino);
    // The number of a segment must not go to another file.
    if (past.has == Rewind::PastInode::Record::kReturns) {
      spool_->AddOwn(past.record->attr.own_segment);
    }
    if (past.attr) spool_->AddOwn(past.attr->own_segment);
  }
  spool_->AddRetained(savepoints, since);
  SetSavepoints(std::move(savepoints));
  return {};
}

Status TransactionJournal::RecoverIntake() {
  bool decodes = true;
  intake_->Recover(TRY(db_->GetCursor()), [&](const IntakeRecord& record) {
    decodes = DecodeChange(record.change).has_value();
    // After power loss the intake may be ahead of the spool: the operation
    // that lost its content did not happen, and none after it.
    return decodes &&
           (record.content.segment == 0 || !record.inline_bytes.empty() ||
            spool_->Verify(record.content));
  });
  if (!decodes) {
    return Fail(EBADMSG,
                PathOfFd(dir_.get()) +
                    "/intake has an intact record that cannot be decoded",
                "use the txfs that wrote it");
  }
  {
    MutexLock lock(append_mutex_);
    MutexLock drain_lock(drain_mutex_);
    denials_ = TRY(db_->ReadDenials());
    TRY(DrainAll());
    for (const auto& [key, rule] : denials_.rules()) known_rules_.insert(key);
    has_denials_ = !known_rules_.empty();
  }
  return WithReserve(*this, [&] { return BeginEpoch(intake_->next_lsn()); });
}

// Records of a lost future have another salt than the new epoch, which
// therefore must be durable before the first record is appended.
Status TransactionJournal::BeginEpoch(Lsn next_lsn) {
  const IntakeCursor cursor{TRY(NewSalt()), 0, next_lsn};
  TRY(db_->Write([&](Tables& tables) -> Status {
    tables.PutCursor(cursor);
    return {};
  }));
  TRY(db_->Sync());
  intake_->BeginEpoch(cursor);
  return {};
}

void TransactionJournal::StartDrainThread() {
  if (!options_.background_drain) return;
  // Signals are for the threads that know what to do with them.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  drain_thread_ = std::thread([this] { RunDrainThread(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TransactionJournal::~TransactionJournal() {
  if (drain_thread_.joinable()) {
    {
      MutexLock lock(wake_mutex_);
      stop_ = true;
      wake_.NotifyAll();
    }
    drain_thread_.join();
  }
  promised_.GiveUp();
  if (forgotten_ || !db_ || !intake_ || !spool_) return;
  // What cannot be drained stays in the intake.
  [[maybe_unused]] const Status drained = Drain();
}

// On a full disk the tables cannot take what waits in the ring: that comes on
// top of what they have.
Status TransactionJournal::Load(State& state) {
  MutexLock lock(drain_mutex_);
  const bool drained = DrainAll().has_value();
  TRY(db_->Load(state));
  db_->GiveBackPages();
  if (drained) return {};
  for (const IntakeRecord& record :
       TRY(intake_->Waiting(SIZE_MAX, intake_->capacity()))) {
    Apply(TRY(DecodeChange(record.change)), state);
  }
  return {};
}

Result<Lsn> TransactionJournal::Append(const Change& change,
                                       const StagedContent* content) {
  if (IsDenial(change)) return AppendDenial(change);
  // What the tables cannot take must not be acknowledged.
  TRY(CheckNames(change));
  thread_local Bytes encoded;
  encoded.clear();
  if (HasLongPath(change)) {
    EncodeChange(WithPathsCut(change), encoded);
  } else {
    EncodeChange(change, encoded);
  }
  if (encoded.size() > kMaxChangeBytes) return Fail(EFBIG, "append change");
  const ByteSpan inline_bytes = content ? content->inline_bytes : ByteSpan();
  const uint64_t size = Intake::RecordSize(encoded.size(), inline_bytes.size());

  MutexLock lock(append_mutex_);
  if (drain_failed_ && content != nullptr) {
    MutexLock drain_lock(drain_mutex_);
    TRY(DrainAll());
  }
  if (!intake_->CanHold(size) && size <= options_.intake_bytes / 2) {
    MutexLock drain_lock(drain_mutex_);
    GrowRing();
  }
  if (!intake_->CanHold(size)) return AppendToTables(change, encoded, content);
  const Intake::Appended appended = TRY(AppendToRing(encoded, content));
  if (change.op == Op::kSavepoint) AddSavepoint(change, appended.lsn);
  WakeDrainThread(appended);
  return appended.lsn;
}

/// Always fits, so that it never costs more than a record in the ring.
Result<Lsn> TransactionJournal::AppendDenial(const Change& denial) {
  Change brief = denial;
  CutDenial(brief);
  const DenialTable::RuleKey rule{brief.policy, brief.rule};
  MutexLock lock(append_mutex_);
  if (known_rules_.contains(rule)) {
    brief.reason.clear();
    brief.suggest.clear();
  }
  thread_local Bytes encoded;
  encoded.clear();
  EncodeChange(brief, encoded);
  const Intake::Appended appended = TRY(AppendToRing(encoded, nullptr));
  known_rules_.insert(rule);
  has_denials_ = true;
  ++denied_;
  WakeDrainThread(appended);
  return appended.lsn;
}

Result<Intake::Appended> TransactionJournal::AppendToRing(
    ByteSpan encoded, const StagedContent* content) {
  const ByteSpan inline_bytes = content ? content->inline_bytes : ByteSpan();
  TRY(MakeRoom(Intake::RecordSize(encoded.size(), inline_bytes.size())));
  // Content must be found from the moment the drain may take it away.
  const auto make_readable = [&](const IntakeRecord& record) {
    if (record.inline_bytes.empty()) return;
    spool_->AddPending(record.content, record.inline_bytes);
  };
  return intake_->Append(encoded, content ? content->ref : ContentRef{},
                         inline_bytes, make_readable);
}

Status TransactionJournal::MakeRoom(uint64_t size) {
  if (intake_->HasRoom(size)) return {};
  MutexLock lock(drain_mutex_);
  GrowRing();
  while (!intake_->HasRoom(size)) {
    // Without a further batch only a sync frees what was drained last.
    TRY(intake_->waiting_bytes() > 0 ? DrainBatch() : SyncTables());
  }
  return {};
}

void TransactionJournal::GrowRing() {
  if (!MayGrow() || !DrainAll() || !SyncTables()) return;
  const uint64_t most = options_.intake_bytes;
  cannot_grow_ = !reserve_.Require(ReserveFor(most)) || !intake_->Grow(most);
}

Result<Lsn> TransactionJournal::AppendToTables(const Change& change,
                                               ByteSpan encoded,
                                               const StagedContent* content) {
  MutexLock lock(drain_mutex_);
  TRY(DrainAll());
  if (content != nullptr && !content->inline_bytes.empty()) {
    TRY(spool_->Write({{content->ref, content->inline_bytes}}, kNoLsn));
  }
  TRY(spool_->SyncDirty());
  const Lsn lsn = TRY(WriteBesideRing(
      encoded, [&](Tables& tables, Lsn) { Apply(change, tables); }));
  [[maybe_unused]] const Status synced = SyncTables();
  return lsn;
}

Result<Lsn> TransactionJournal::WriteBesideRing(
    ByteSpan encoded, const std::function<void(Tables&, Lsn)>& fill) {
  const Lsn lsn = intake_->next_lsn();
  IntakeCursor cursor = intake_->DrainedCursor();
  cursor.next_lsn = Next(lsn);
  TRY(db_->Write([&](Tables& tables) -> Status {
    fill(tables, lsn);
    tables.PutLog(lsn, encoded);
    tables.PutCursor(cursor);
    return {};
  }));
  intake_->SkipLsn();
  // The batch is written, so this cannot fail any more; if it is not durable
  // yet, the next Sync sees to it.
  tables_ahead_ = true;
  return lsn;
}

void TransactionJournal::WakeDrainThread(const Intake::Appended& appended) {
  const uint64_t quarter = intake_->capacity() / 4;
  const bool first = appended.waiting_before == 0;
  const bool urgent =
      appended.waiting_before < quarter && appended.waiting >= quarter;
  if (!first && !urgent) return;
  MutexLock lock(wake_mutex_);
  waiting_ = true;
  urgent_ = urgent_ || urgent;
  wake_.NotifyAll();
}

void TransactionJournal::RunDrainThread() {
  using Clock = std::chrono::steady_clock;
  const std::chrono::milliseconds interval(options_.drain_interval_ms);
  for (;;) {
    bool pressed = false;
    {
      MutexLock lock(wake_mutex_);
      while (!stop_ && !waiting_) wake_.Wait(wake_mutex_);
      const auto until =
          Clock::now() +
          (drain_failed_ ? std::max(interval, kRetryInterval) : interval);
      while (!stop_ && !urgent_ && Clock::now() < until) {
        wake_.WaitFor(wake_mutex_, until - Clock::now());
      }
      if (stop_) return;
      waiting_ = false;
      pressed = std::exchange(urgent_, false);
    }
    if (pressed && MayGrow()) {
      MutexLock append_lock(append_mutex_);
      MutexLock drain_lock(drain_mutex_);
      GrowRing();
    }
    MutexLock drain_lock(drain_mutex_);
    if (DrainAll() && intake_->waiting_bytes() == 0) {
      // Space that was given up in the last batch is free only now.
      std::ignore = SyncTables();
      db_->GiveBackPages();
      continue;
    }
    MutexLock lock(wake_mutex_);
    waiting_ = true;
  }
}

Status TransactionJournal::DrainAll() {
  // Not until the intake is empty: appends go on meanwhile.
  const Lsn last = last_lsn();
  while (intake_->DrainedCursor().next_lsn <= last) TRY(DrainBatch());
  drain_failed_ = false;
  return {};
}

Status TransactionJournal::DrainBatch() {
  const auto most = std::max(intake_->capacity(), Intake::kMinCapacity) / 4;
  const auto records = intake_->Waiting(kBatchRecords, most);
  const auto write = [&] {
    drain_mutex_.AssertHeld();
    return WriteBatch(*records);
  };
  const Status written = records ? WithReserve(*this, write)
                                 : Status(std::unexpected(records.error()));
  drain_failed_ = !written.has_value();
  return written;
}

Status TransactionJournal::WriteBatch(
    const std::vector<IntakeRecord>& records) {
  if (records.empty()) return {};
  const IntakeCursor before = intake_->DrainedCursor();
  const IntakeCursor after = intake_->CursorAfter(records.back());
  const std::vector<PendingContent> contents = InlineContents(records);
  TRY(spool_->Write(contents, records.back().lsn));
  TRY(spool_->SyncDirty());
  const DenialTable* const denials = &denials_;
  std::optional<DenialTable> new_denials;
  TRY(db_->Write([&](Tables& tables) -> Status {
    // It may be called again.
    new_denials.reset();
    tables.PutCursor(after);
    return PutRecords(records, *denials, new_denials, tables);
  }));
  if (new_denials) denials_ = *std::move(new_denials);
  spool_->DropPending(contents);
  intake_->Drained(after);
  // Writing this batch made the one before durable.
  MadeDurable(before);
  db_->CheckReaders();
  return {};
}

Status TransactionJournal::SyncTables() {
  const IntakeCursor cursor = intake_->DrainedCursor();
  TRY(db_->Sync());
  tables_ahead_ = false;
  MadeDurable(cursor);
  return {};
}

void TransactionJournal::MadeDurable(const IntakeCursor& cursor) {
  intake_->Durable(cursor);
  spool_->MadeDurable(Lsn{Raw(cursor.next_lsn) - 1});
}

Status TransactionJournal::Drain() {
  MutexLock lock(drain_mutex_);
  TRY(DrainAll());
  return SyncTables();
}

Status TransactionJournal::DrainUnsynced() {
  MutexLock lock(drain_mutex_);
  return DrainAll();
}

Status TransactionJournal::Sync() {
  const Lsn wanted = last_lsn();
  MutexLock lock(sync_mutex_);
  while (synced_ < wanted) {
    if (syncing_) {
      sync_done_.Wait(sync_mutex_);
      continue;
    }
    syncing_ = true;
    sync_mutex_.Unlock();
    const Lsn covered = last_lsn();
    Status status = spool_->SyncDirty();
    if (status) status = intake_->Sync();
    if (status && tables_ahead_) status = db_->Sync();
    sync_mutex_.Lock();
    syncing_ = false;
    if (status) synced_ = std::max(synced_, covered);
    sync_done_.NotifyAll();
    if (!status) return status;
  }
  return {};
}

Status TransactionJournal::ReadLog(
    Lsn first, const std::function<bool(const LogEntry&)>& visit) {
  // A page of a long log needs no drain: only its end may be in the ring.
  const Lsn last = last_lsn();
  while (first <= last) {
    std::vector<LogEntry> denials;
    Lsn end = kNoLsn;
    {
      MutexLock lock(drain_mutex_);
      if (first >= intake_->DrainedCursor().next_lsn) TRY(DrainAll());
      denials = denials_.Report().entries;
      end = intake_->DrainedCursor().next_lsn;
    }
    if (!TRY(db_->VisitLog(first, end, denials, visit))) return {};
    first = end;
  }
  return {};
}

Result<Denials> TransactionJournal::ReadDenials() {
  if (!has_denials_) return Denials();
  MutexLock lock(drain_mutex_);
  DenialTable denials = denials_;
  // Whether or not the disk has room for them.
  for (const IntakeRecord& record :
       TRY(intake_->Waiting(SIZE_MAX, intake_->capacity()))) {
    Change change = TRY(DecodeChange(record.change));
    if (IsDenial(change)) denials.Add(record.lsn, std::move(change));
  }
  return denials.Report();
}

// --- savepoints ------------------------------------------------------------

void TransactionJournal::AddSavepoint(const Change& change, Lsn lsn) {
  const MutexLock lock(savepoint_mutex_);
  savepoints_.push_back({change.path, lsn, change.time});
  spool_->MarkSavepoint(lsn);
}

void TransactionJournal::SetSavepoints(std::vector<Savepoint> savepoints) {
  const MutexLock lock(savepoint_mutex_);
  savepoints_ = std::move(savepoints);
}

/// Changes that a rollback undid do not count: the walk leaps over them.
Result<Rewind> TransactionJournal::Undone(Lsn savepoint, Lsn until) {
  Rewind rewind;
  const auto undo = [&](Lsn lsn, ByteSpan bytes) -> Result<Lsn> {
    Change change = TRY(DecodeChange(bytes));
    if (change.op == Op::kRollback) return Lsn{change.offset};
    if (until == kNoLsn || lsn <= until) rewind.Undo(lsn, std::move(change));
    return Lsn{Raw(lsn) - 1};
  };
  TRY(db_->ReadLogBack(savepoint, undo));
  return rewind;
}

Result<Rewind> TransactionJournal::PlanRewind(Lsn savepoint, Lsn until) {
  MutexLock lock(drain_mutex_);
  TRY(DrainAll());
  return Undone(savepoint, until);
}

Result<Rewind> TransactionJournal::Rollback(const Change& change) {
  const Lsn target{change.offset};
  std::vector<Savepoint> kept = Savepoints();
  std::vector<Savepoint> dropped;
  while (!kept.empty() && kept.back().lsn > target) {
    dropped.push_back(std::move(kept.back()));
    kept.pop_back();
  }
  if (kept.empty() || kept.back().lsn != target) {
    return Fail(ENOENT, "there is no savepoint " + change.path);
  }
  Bytes encoded;
  EncodeChange(change, encoded);
  MutexLock lock(append_mutex_);
  MutexLock drain_lock(drain_mutex_);
  TRY(DrainAll());
  Rewind rewind = TRY(Undone(target));
  const auto undo = [&](Tables& tables, Lsn) {
    rewind.ApplyTo(tables);
    for (const Savepoint& savepoint : dropped) {
      tables.EraseSavepoint(savepoint.lsn);
    }
  };
  // As in a drain: what makes room must find some.
  TRY(WithReserve(*this, [&]() {
    append_mutex_.AssertHeld();
    drain_mutex_.AssertHeld();
    return WriteBesideRing(encoded, undo);
  }));
  SetSavepoints(std::move(kept));
  return rewind;
}

void TransactionJournal::SettleRewind(const Rewind& rewind) {
  const MutexLock lock(savepoint_mutex_);
  spool_->GoBack(savepoints_.back().lsn, rewind.content, last_lsn());
}

Result<Lsn> TransactionJournal::Settle(const Change& change) {
  Bytes encoded;
  EncodeChange(change, encoded);
  MutexLock lock(append_mutex_);
  MutexLock drain_lock(drain_mutex_);
  TRY(DrainAll());
  const std::vector<Savepoint> savepoints = Savepoints();
  const auto settle = [&](Tables& tables, Lsn) {
    Apply(change, tables);
    for (const Savepoint& savepoint : savepoints) {
      tables.EraseSavepoint(savepoint.lsn);
    }
  };
  const Lsn lsn = TRY(WithReserve(*this, [&]() {
    append_mutex_.AssertHeld();
    drain_mutex_.AssertHeld();
    return WriteBesideRing(encoded, settle);
  }));
  SetSavepoints({});
  spool_->DropSavepoints(lsn);
  return lsn;
}

Status TransactionJournal::PutMeta(const std::string& key,
                                   std::string_view value) {
  MutexLock lock(drain_mutex_);
  TRY(db_->Write([&](Tables& tables) -> Status {
    tables.PutMeta(key, value);
    return {};
  }));
  return SyncTables();
}

Result<uint64_t> TransactionJournal::StoreBytes() {
  uint64_t bytes = TRY(spool_->StoreBytes());
  for (const char* path :
       {"intake", kReserveFile, kPromisedFile, "db/data.mdb", "db/lock.mdb"}) {
    struct stat st{};
    if (::fstatat(dir_.get(), path, &st, AT_SYMLINK_NOFOLLOW) == 0) {
      bytes += static_cast<uint64_t>(st.st_blocks) * 512;
    }
  }
  return bytes;
}

}  // namespace

Result<std::unique_ptr<Journal>> Journal::Create(
    UniqueFd dir, const JournalOptions& options) {
  auto journal = std::make_unique<TransactionJournal>(
      std::move(dir), options, options.io ? *options.io : Io::System());
  TRY(journal->CreateFiles());
  journal->StartDrainThread();
  return journal;
}

Status Journal::GiveUpLinked(int dir) { return Spool::GiveUpLinked(dir); }

Result<std::unique_ptr<Journal>> Journal::OpenUnused(
    UniqueFd dir, const JournalOptions& options) {
  auto journal = std::make_unique<TransactionJournal>(
      std::move(dir), options, options.io ? *options.io : Io::System());
  TRY(journal->OpenUnusedFiles());
  journal->StartDrainThread();
  return journal;
}

Result<std::unique_ptr<Journal>> Journal::Open(UniqueFd dir,
                                               const JournalOptions& options) {
  auto journal = std::make_unique<TransactionJournal>(
      std::move(dir), options, options.io ? *options.io : Io::System());
  TRY(journal->OpenFiles());
  journal->StartDrainThread();
  return journal;
}

}  // namespace txfs
