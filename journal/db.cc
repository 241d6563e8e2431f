#include "journal/db.h"

#include <fcntl.h>
#include <lmdb.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <sstream>

#include "journal/db_dump.h"
#include "journal/db_pages.h"
#include "journal/db_val.h"
#include "journal/rows.h"
#include "journal/support/crash_point.h"
#include "journal/support/file.h"

namespace txfs {
namespace {

constexpr uint64_t kMinMapBytes = 512 << 10;
constexpr size_t kFirstBytes = 256 << 10;
constexpr uint64_t kSlackBytes = 512 << 10;
constexpr std::string_view kReserveKey = "reserve";
constexpr size_t kLogRowsPerRead = 1000;
constexpr const char* kDataFile = "data.mdb";
constexpr const char* kLockFile = "lock.mdb";
/// What LMDB's table of readers takes for the number of them that it allows
/// unless told otherwise, bytes.
constexpr uint64_t kLockFileBytes = 8192;

constexpr std::string_view kDamagedHint =
    "the transaction cannot be recovered; move its directory out of the store "
    "to begin a new one";

/// Where the file `fd` is mapped, which LMDB does not tell; empty: not found.
std::span<std::byte> MapOf(int fd) {
  struct stat st{};
  if (::fstat(fd, &st) != 0) return {};
  // "start-end rights offset device inode path". The device is another one than
  // that of stat(2) on some filesystems.
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    if (!line.ends_with(std::string("/") + kDataFile)) continue;
    std::istringstream fields(line);
    uintptr_t start = 0;
    uintptr_t end = 0;
    uint64_t ino = 0;
    std::string word;
    fields >> std::hex >> start;
    fields.ignore(1, '-');
    fields >> end >> word >> word >> word >> std::dec >> ino;
    if (!fields || ino != st.st_ino) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return {reinterpret_cast<std::byte*>(start), end - start};
  }
  return {};
}

struct TableName {
  const char* name;
  unsigned int TableHandles::* handle;
  uint32_t since = 1;  ///< version of the tables that it came with
};
constexpr std::array kTables = {
    TableName{"inode", &TableHandles::inode},
    TableName{"origin", &TableHandles::origin},
    TableName{"dentry", &TableHandles::dentry},
    TableName{"extent", &TableHandles::extent},
    TableName{"xattr", &TableHandles::xattr},
    TableName{"log", &TableHandles::log},
    TableName{"savepoint", &TableHandles::savepoint},
    TableName{"meta", &TableHandles::meta},
    TableName{"denial", &TableHandles::denial, kVersionWithDenials},
    TableName{"rule", &TableHandles::rule, kVersionWithDenials},
};

struct AbortTxn {
  void operator()(MDB_txn* txn) const { mdb_txn_abort(txn); }
};
using TxnPtr = std::unique_ptr<MDB_txn, AbortTxn>;

struct CloseCursor {
  void operator()(MDB_cursor* cursor) const { mdb_cursor_close(cursor); }
};

int ErrnoOf(int code) {
  if (code > 0) return code;
  switch (code) {
    case MDB_MAP_FULL:
      return ENOSPC;
    case MDB_NOTFOUND:
      return ENOENT;
    case MDB_READERS_FULL:
      return EAGAIN;
    case MDB_VERSION_MISMATCH:
      return EPROTONOSUPPORT;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
    case MDB_INCOMPATIBLE:
      return EBADMSG;
    default:
      return EIO;
  }
}

}  // namespace

/// A read transaction. Short, because pages freed meanwhile are not reused.
class Db::Reading {
 public:
  static Result<Reading> Begin(Db& db) {
    Reading reading(db);
    if (const int code = reading.Start(); code != 0) {
      return db.FailWith(code, "read");
    }
    return reading;
  }

  /// ENOENT when there is no such row.
  Result<ByteSpan> Get(unsigned int table, ByteSpan key) {
    MDB_val k = ToVal(key);
    MDB_val v{};
    const int code = mdb_get(txn_.get(), table, &k, &v);
    if (code != 0) return db_->FailWith(code, "read");
    return ToSpan(v);
  }

  /// The rows of one table, for keys in ascending order: cheaper than Get for
  /// each.
  class Ascent {
   public:
    /// The value at `key`, which is above all keys before; none: no such row.
    Result<std::optional<ByteSpan>> At(ByteSpan key) {
      while (code_ == 0 && IsBelow(ToSpan(key_), key)) Move(MDB_NEXT);
      if (code_ == MDB_NOTFOUND) return std::nullopt;
      if (code_ != 0) return db_->FailWith(code_, "read");
      if (!std::ranges::equal(ToSpan(key_), key)) return std::nullopt;
      return ToSpan(value_);
    }

   private:
    friend class Reading;
    Ascent(Db& db, MDB_cursor* cursor) : db_(&db), cursor_(cursor) {
      Move(MDB_FIRST);
    }
    static bool IsBelow(ByteSpan a, ByteSpan b) {
      return std::ranges::lexicographical_compare(a, b);
    }
    void Move(MDB_cursor_op op) {
      code_ = mdb_cursor_get(cursor_.get(), &key_, &value_, op);
    }

    Db* db_;
    std::unique_ptr<MDB_cursor, CloseCursor> cursor_;
    MDB_val key_{}, value_{};
    int code_ = 0;
  };

  /// From the first row on. This outlives it.
  Result<Ascent> Ascend(unsigned int table) {
    MDB_cursor* cursor = nullptr;
    const int code = mdb_cursor_open(txn_.get(), table, &cursor);
    if (code != 0) return db_->FailWith(code, "read");
    return Ascent(*db_, cursor);
  }

  /// Visits rows from the last on back to those with keys above `after`.
  /// `visit` returns the highest key at which to go on.
  template <class Visit>
  Status ForEachBack(unsigned int table, uint64_t after, const Visit& visit) {
    MDB_cursor* raw = nullptr;
    int code = mdb_cursor_open(txn_.get(), table, &raw);
    if (code != 0) return db_->FailWith(code, "read");
    const std::unique_ptr<MDB_cursor, CloseCursor> cursor(raw);
    MDB_val key{};
    MDB_val value{};
    code = mdb_cursor_get(raw, &key, &value, MDB_LAST);
    while (code == 0) {
      const auto lsn = DecodeLogKey(ToSpan(key));
      if (!lsn) return db_->Damaged("a log record");
      const uint64_t at = Raw(*lsn);
      if (at <= after) return {};
      const uint64_t next = TRY(visit(at, ToSpan(value)));
      if (next >= at) return db_->Damaged("the order of the log");
      if (next + 1 < at) {
        Bytes above;
        AppendKey(above, next + 1);
        key = ToVal(above);
        code = mdb_cursor_get(raw, &key, &value, MDB_SET_RANGE);
        if (code != 0) break;
      }
      code = mdb_cursor_get(raw, &key, &value, MDB_PREV);
    }
    if (code != MDB_NOTFOUND) return db_->FailWith(code, "read");
    return {};
  }

  /// Visits up to `limit` rows in order from `first` on, until `visit` fails.
  template <class Visit>
  Status ForEach(unsigned int table, ByteSpan first, const Visit& visit,
                 size_t limit = SIZE_MAX) {
    MDB_cursor* raw = nullptr;
    int code = mdb_cursor_open(txn_.get(), table, &raw);
    if (code != 0) return db_->FailWith(code, "read");
    const std::unique_ptr<MDB_cursor, CloseCursor> cursor(raw);
    MDB_val key = ToVal(first);
    MDB_val value{};
    MDB_cursor_op op = first.empty() ? MDB_FIRST : MDB_SET_RANGE;
    while ((code = mdb_cursor_get(raw, &key, &value, op)) == 0) {
      if (limit-- == 0) return {};
      TRY(visit(ToSpan(key), ToSpan(value)));
      op = MDB_NEXT;
    }
    if (code != MDB_NOTFOUND) return db_->FailWith(code, "read");
    return {};
  }

 private:
  explicit Reading(Db& db) : db_(&db), lock_(db.map_mutex_) {}
  int Start() {
    db_->map_mutex_.AssertHeldShared();  // by lock_
    if (db_->env_ == nullptr) return MDB_PANIC;
    MDB_txn* txn = nullptr;
    const int code = mdb_txn_begin(db_->env_, nullptr, MDB_RDONLY, &txn);
    txn_.reset(txn);
    return code;
  }

  // Movable, which the annotated lock is not.
  class SharedHold {
   public:
    explicit SharedHold(SharedMutex& mutex) NO_THREAD_SAFETY_ANALYSIS
        : mutex_(&mutex) {
      mutex_->LockShared();
    }
    SharedHold(SharedHold&& other) noexcept
        : mutex_(std::exchange(other.mutex_, nullptr)) {}
    SharedHold& operator=(SharedHold&&) = delete;
    SharedHold(const SharedHold&) = delete;
    SharedHold& operator=(const SharedHold&) = delete;
    ~SharedHold() NO_THREAD_SAFETY_ANALYSIS {
      if (mutex_ != nullptr) mutex_->UnlockShared();
    }

   private:
    SharedMutex* mutex_;
  };

  Db* db_;
  SharedHold lock_;  ///< outlives the transaction
  TxnPtr txn_;
};

std::unexpected<Error> Db::Damaged(std::string_view what) const {
  return Fail(EBADMSG,
              "the tables in " + PathOfFd(dir_.get()) +
                  " are damaged: " + std::string(what),
              kDamagedHint);
}

std::unexpected<Error> Db::FailWith(int code, std::string_view what) const {
  const int error = ErrnoOf(code);
  if (error == EBADMSG) return Damaged(mdb_strerror(code));
  std::string message = std::string(what) + " " + PathOfFd(dir_.get());
  if (code < 0) message += std::string(" (") + mdb_strerror(code) + ")";
  if (error == EPROTONOSUPPORT) {
    return Fail(error, message, "use the newer txfs that wrote it");
  }
  return Fail(error, message);
}

Result<std::unique_ptr<Db>> Db::OpenEnvironment(int dir, uint64_t map_bytes,
                                                Io& io) {
  UniqueFd fd = TRY(OpenDirectoryBelow(dir, "db", O_PATH));
  // LMDB opens them by their names.
  for (const char* name : {kDataFile, "lock.mdb"}) {
    const auto file = OpenOwnFileBelow(fd.get(), name, O_RDONLY);
    if (!file && file.error().code != ENOENT) {
      return std::unexpected(file.error());
    }
  }
  std::unique_ptr<Db> db(
      new Db(std::move(fd), std::max(map_bytes, kMinMapBytes), io));
  WriterLock lock(db->map_mutex_);
  TRY(db->Connect());
  return db;
}

Result<std::unique_ptr<Db>> Db::Create(int dir, uint64_t map_bytes, Io& io) {
  TRY(MakeDirectoryAt(dir, "db", 0700));
  std::unique_ptr<Db> db = TRY(OpenEnvironment(dir, map_bytes, io));
  TRY(db->OpenTables(true));
  // Pages freed here are what the first batches write to, so that small ones
  // do not make the file grow.
  TRY(db->Write([](Tables& tables) -> Status {
    tables.PutMeta(std::string(kReserveKey), std::string(kFirstBytes, '\0'));
    return {};
  }));
  TRY(db->Write([](Tables& tables) -> Status {
    tables.EraseMeta(std::string(kReserveKey));
    tables.PutFormat(kTablesVersion);
    return {};
  }));
  TRY(SyncDirectory(dir, "db"));
  return db;
}

// LMDB makes a new environment where it finds no file, or an empty one; and it
// trusts what it reads.
Status Db::CheckFile(int dir) {
  const std::string path = std::string("db/") + kDataFile;
  const auto fd = OpenFileBelow(dir, path, O_RDONLY);
  const Status checked =
      fd ? CheckPages(fd->get()) : Status(std::unexpected(fd.error()));
  if (checked) return {};
  const Error& error = checked.error();
  if (error.code != ENOENT && error.code != EBADMSG) return checked;
  return Fail(EBADMSG,
              "the tables in " + PathOfFd(dir) + "/" + path +
                  " are missing or damaged: " + error.message,
              kDamagedHint);
}

Result<std::unique_ptr<Db>> Db::Open(int dir, uint64_t map_bytes, Io& io) {
  TRY(CheckFile(dir));
  std::unique_ptr<Db> db = TRY(OpenEnvironment(dir, map_bytes, io));
  TRY(db->OpenTables(false));
  TRY(db->CheckVersion());
  return db;
}

Db::~Db() {
  WriterLock lock(map_mutex_);
  if (env_ != nullptr) mdb_env_close(env_);
}

// LMDB stores into a mapping of this file: where the disk has no block for a
// page of it, that is a SIGBUS.
Status Db::AllocateLockFile() {
  const UniqueFd fd =
      TRY(OpenAt(dir_.get(), kLockFile, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0) return Fail(errno, "stat lock.mdb");
  if (st.st_size == 0) return Preallocate(io_, fd.get(), kLockFileBytes);
  const auto size = std::max(static_cast<uint64_t>(st.st_size), kLockFileBytes);
  const bool is_whole = static_cast<uint64_t>(st.st_blocks) * 512 >= size;
  if (is_whole || io_.Allocate(fd.get(), 0, 0, static_cast<off_t>(size)) == 0) {
    return {};
  }
  // Somebody else may have stored into it: no zeros are written over that.
  return errno == EOPNOTSUPP ? Status() : Fail(errno, "preallocate lock.mdb");
}

Status Db::Connect() {
  Disconnect();
  TRY(AllocateLockFile());
  MDB_env* env = nullptr;
  int code = mdb_env_create(&env);
  if (code != 0) return FailWith(code, "open");
  const std::string path = "/proc/self/fd/" + std::to_string(dir_.get());
  if (code == 0) code = mdb_env_set_maxdbs(env, kTables.size());
  if (code == 0) code = mdb_env_set_mapsize(env, map_bytes_);
  if (code == 0) {
    const unsigned sync = StoresAreVolatile() ? MDB_NOSYNC : MDB_NOMETASYNC;
    code = mdb_env_open(env, path.c_str(), sync | MDB_NOTLS, 0600);
  }
  if (code != 0) {
    mdb_env_close(env);
    return FailWith(WhyNotWritten(code), "open");
  }
  env_ = env;
  return CheckFileSize();
}

// LMDB reads through a mapping: a page that is not in the file would be a
// SIGBUS. The last pages may be missing without harm, when the batch that got
// them gave them back unwritten.
Status Db::CheckFileSize() {
  MDB_envinfo info{};
  MDB_stat stat{};
  mdb_env_info(env_, &info);
  mdb_env_stat(env_, &stat);
  const uint64_t needed = (info.me_last_pgno + 1) * stat.ms_psize;
  struct stat st{};
  if (::fstatat(dir_.get(), kDataFile, &st, AT_SYMLINK_NOFOLLOW) != 0) {
    return Fail(errno, "stat " + PathOfFd(dir_.get()) + "/" + kDataFile);
  }
  const auto size = static_cast<uint64_t>(st.st_size);
  if (size >= needed) return {};
  if (needed - size > kMaxUnwrittenPages * stat.ms_psize) {
    return Damaged("data.mdb was cut short");
  }
  mdb_filehandle_t fd{};
  mdb_env_get_fd(env_, &fd);
  if (::ftruncate(fd, static_cast<off_t>(needed)) != 0) {
    return Fail(errno, "extend " + PathOfFd(dir_.get()) + "/" + kDataFile);
  }
  return {};
}

// A sparse tail keeps the file longer than what is in use, pages included that
// a batch got and gave back unwritten: being shorter then means damage.
void Db::KeepSlack() {
  MDB_envinfo info{};
  MDB_stat stat{};
  mdb_env_info(env_, &info);
  mdb_env_stat(env_, &stat);
  const uint64_t used = (info.me_last_pgno + 1) * stat.ms_psize;
  if (used <= slack_end_.load()) return;
  mdb_filehandle_t fd{};
  mdb_env_get_fd(env_, &fd);
  struct stat st{};
  if (::fstat(fd, &st) != 0) return;
  const uint64_t size =
      std::max(static_cast<uint64_t>(st.st_size), used + 2 * kSlackBytes);
  // Not having the tail harms nobody but the check; the batch is committed.
  if (::ftruncate(fd, static_cast<off_t>(size)) != 0) return;
  slack_end_ = size - kSlackBytes;
}

Status Db::OpenTables(bool create) {
  ReaderLock lock(map_mutex_);
  MDB_txn* raw = nullptr;
  int code = mdb_txn_begin(env_, nullptr, create ? 0 : MDB_RDONLY, &raw);
  if (code != 0) return FailWith(code, "open tables of");
  TxnPtr txn(raw);
  for (const TableName& table : kTables) {
    code = mdb_dbi_open(raw, table.name, create ? MDB_CREATE : 0,
                        &(handles_.*table.handle));
    // Upgrade makes them.
    if (code == MDB_NOTFOUND && table.since > 1) continue;
    if (code == MDB_NOTFOUND) {
      return Damaged(std::string("there is no table ") + table.name);
    }
    if (code != 0) return FailWith(code, "open tables of");
  }
  code = mdb_txn_commit(txn.release());
  if (code != 0) return FailWith(WhyNotWritten(code), "open tables of");
  return {};
}

Result<uint32_t> Db::ReadVersion() {
  Reading reading = TRY(Reading::Begin(*this));
  auto value = reading.Get(handles_.meta, AsBytes(kFormatKey));
  if (!value && value.error().code == ENOENT)
    return Damaged("they have no version");
  if (!value) return std::unexpected(std::move(value).error());
  Decoder decoder(*value);
  const auto version = decoder.Get<uint32_t>();
  if (!decoder.ok()) return Damaged("they have no version");
  return version;
}

Status Db::Upgrade() {
  if (TRY(ReadVersion()) == kTablesVersion) return {};
  TRY(OpenTables(true));
  return Write([](Tables& tables) -> Status {
    tables.PutFormat(kTablesVersion);
    return {};
  });
}

Status Db::CheckVersion() {
  const uint32_t version = TRY(ReadVersion());
  if (version <= kTablesVersion) return {};
  return Fail(EPROTONOSUPPORT,
              PathOfFd(dir_.get()) + " has format version " +
                  std::to_string(version) + ", this program knows " +
                  std::to_string(kTablesVersion),
              "use the newer txfs that wrote it");
}

Status Db::Write(const std::function<Status(Tables&)>& fill) {
  MutexLock lock(write_mutex_);
  bool reconnected = false;
  for (;;) {
    int code = 0;
    Status status = TryWrite(fill, code);
    if (code == MDB_MAP_FULL || code == MDB_MAP_RESIZED) {
      const Status resized = Resize(code == MDB_MAP_FULL);
      if (resized) continue;
      // The old map is gone; without a new one the environment is of no use.
      TRY(Reconnect());
      return resized;
    } else if (code == MDB_PANIC && !reconnected) {
      reconnected = true;
      TRY(Reconnect());
    } else {
      if (code != 0 && HasGivenUp()) {
        // Reads would go on to fail; a write tries again.
        [[maybe_unused]] const Status again = Reconnect();
      }
      return status;
    }
  }
}

bool Db::HasGivenUp() {
  ReaderLock lock(map_mutex_);
  if (env_ == nullptr) return true;
  MDB_txn* raw = nullptr;
  const int code = mdb_txn_begin(env_, nullptr, MDB_RDONLY, &raw);
  if (code == 0) mdb_txn_abort(raw);
  return code == MDB_PANIC;
}

Status Db::TryWrite(const std::function<Status(Tables&)>& fill, int& code) {
  ReaderLock lock(map_mutex_);
  MDB_txn* raw = nullptr;
  if (suspect_ && env_ != nullptr) TRY(RewriteFirstPages());
  code = env_ == nullptr ? MDB_PANIC : mdb_txn_begin(env_, nullptr, 0, &raw);
  if (code != 0) return FailWith(code, "begin a batch in");
  TxnPtr txn(raw);
  Tables tables(raw, handles_);
  const Status filled = fill(tables);
  code = tables.code();
  if (!filled && code == 0) return filled;
  if (code == 0) code = io_.CommitError();
  CrashPoint();
  if (code == 0) {
    code = mdb_txn_commit(txn.release());
    if (code != 0) {
      code = WhyNotWritten(code);
      Distrust();
    }
  }
  if (code != 0) return FailWith(code, "write");
  last_batch_ = LastBatch();
  KeepSlack();
  return {};
}

// The rest of such a write would have met the error: so does asking for room.
int Db::WhyNotWritten(int code) const {
  if (code != EIO && code != ENOSPC) return code;
  const auto fd = OpenFileBelow(dir_.get(), kDataFile, O_RDWR);
  struct stat st{};
  if (!fd || ::fstat(fd->get(), &st) != 0) return code;
  const int asked = io_.Allocate(fd->get(), FALLOC_FL_KEEP_SIZE, st.st_size,
                                 static_cast<off_t>(kFirstBytes));
  return asked != 0 && errno != EOPNOTSUPP ? errno : code;
}

uint64_t Db::LastBatch() {
  MDB_envinfo info{};
  mdb_env_info(env_, &info);
  return info.me_last_txnid;
}

// A batch's own pages are synced before the page that names it is written, so
// the first pages are all that a failed sync can have left in memory only. The
// kernel takes what it failed to write for clean: it must be written again, or
// the next sync would succeed and mean nothing.
void Db::Distrust() {
  suspect_ = true;
  [[maybe_unused]] const Status rewritten = RewriteFirstPages();
}

Status Db::RewriteFirstPages() {
  if (LastBatch() < last_batch_) {
    return Fail(
        EIO, "the disk lost a batch of the tables in " + PathOfFd(dir_.get()),
        "unmount, and check the disk");
  }
  MDB_stat stat{};
  mdb_env_stat(env_, &stat);
  mdb_filehandle_t fd{};
  mdb_env_get_fd(env_, &fd);
  Bytes pages(size_t{2} * stat.ms_psize);
  const size_t size = TRY(ReadFully(fd, 0, pages));
  if (size != pages.size()) return Damaged("data.mdb was cut short");
  TRY(WritePartsFully(io_, fd, 0, {pages}));
  suspect_ = false;
  return {};
}

Status Db::Resize(bool grow) {
  WriterLock lock(map_mutex_);
  if (env_ == nullptr) return {};
  if (grow) map_bytes_ *= 2;
  // Zero takes over the size that another process has set.
  const int code = mdb_env_set_mapsize(env_, grow ? map_bytes_ : 0);
  if (code == 0) return {};
  if (grow) map_bytes_ /= 2;
  return FailWith(code, "enlarge the map of");
}

// LMDB gives an environment up when it could not write its first pages.
Status Db::Reconnect() {
  {
    WriterLock lock(map_mutex_);
    auto connected = Connect();
    if (!connected) {
      Disconnect();
      return connected;
    }
  }
  auto opened = OpenTables(false);
  if (!opened) {
    WriterLock lock(map_mutex_);
    Disconnect();
  }
  return opened;
}

void Db::Disconnect() {
  if (env_ != nullptr) mdb_env_close(std::exchange(env_, nullptr));
}

Status Db::Sync() {
  // No batch meanwhile: its sync would not tell of a failure that ours was
  // told of.
  MutexLock batch(write_mutex_);
  // Or else why not: the disk says it.
  if (HasGivenUp()) TRY(Reconnect());
  ReaderLock lock(map_mutex_);
  if (env_ == nullptr) return FailWith(MDB_PANIC, "sync");
  if (suspect_) TRY(RewriteFirstPages());
  const int code = StoresAreVolatile() ? 0 : mdb_env_sync(env_, 1);
  if (code == 0) return {};
  Distrust();
  return FailWith(code, "sync");
}

void Db::CheckReaders() {
  ReaderLock lock(map_mutex_);
  if (env_ == nullptr) return;
  int dead = 0;
  // Failing means that dead readers stay for one more batch.
  [[maybe_unused]] const int ignored = mdb_reader_check(env_, &dead);
}

void Db::GiveBackPages() {
  ReaderLock lock(map_mutex_);
  if (env_ == nullptr) return;
  mdb_filehandle_t fd{};
  mdb_env_get_fd(env_, &fd);
  const auto map = MapOf(fd);
  // Not having done it costs only memory.
  if (!map.empty()) (void)::madvise(map.data(), map.size(), MADV_DONTNEED);
}

Status Db::Load(State& state) {
  Reading reading = TRY(Reading::Begin(*this));
  TRY(LoadInodes(reading, state));
  TRY(reading.ForEach(handles_.dentry, {},
                      [&](ByteSpan key, ByteSpan value) -> Status {
                        const auto row = DecodeDentryRow(key, value);
                        if (!row) return Damaged("a dentry");
                        state.SetDentry(row->parent, row->name, row->value);
                        return {};
                      }));
  TRY(LoadExtents(reading, state));
  return reading.ForEach(
      handles_.xattr, {}, [&](ByteSpan key, ByteSpan value) -> Status {
        const auto row = DecodeXattrKey(key);
        if (!row) return Damaged("an xattr");
        state.SetXattr(row->ino, row->name, std::string(AsText(value)));
        return {};
      });
}

Status Db::LoadInodes(Reading& reading, State& state) {
  auto origins = TRY(reading.Ascend(handles_.origin));
  return reading.ForEach(handles_.inode, {},
                         [&](ByteSpan key, ByteSpan value) -> Status {
                           const auto row = DecodeInodeRow(key, value);
                           if (!row) return Damaged("an inode");
                           InodeRecord record;
                           record.attr = row->attr;
                           const auto origin = TRY(origins.At(key));
                           if (origin && !DecodeOriginRow(*origin, record)) {
                             return Damaged("an origin");
                           }
                           state.SetInode(row->ino, record);
                           return {};
                         });
}

Status Db::LoadExtents(Reading& reading, State& state) {
  return reading.ForEach(handles_.extent, {},
                         [&](ByteSpan key, ByteSpan value) -> Status {
                           const auto row = DecodeExtentRow(key, value);
                           if (!row) return Damaged("an extent");
                           state.PutExtent(row->ino, row->extent);
                           return {};
                         });
}

Status Db::LoadContent(State& state) {
  Reading reading = TRY(Reading::Begin(*this));
  TRY(reading.ForEach(handles_.inode, {},
                      [&](ByteSpan key, ByteSpan value) -> Status {
                        const auto row = DecodeInodeRow(key, value);
                        if (!row) return Damaged("an inode");
                        state.SetAttr(row->ino, row->attr);
                        return {};
                      }));
  return LoadExtents(reading, state);
}

Result<std::vector<std::pair<Lsn, Bytes>>> Db::ReadLog(Lsn first,
                                                       size_t limit) {
  std::vector<std::pair<Lsn, Bytes>> rows;
  Reading reading = TRY(Reading::Begin(*this));
  Bytes key;
  AppendKey(key, Raw(first));
  TRY(reading.ForEach(
      handles_.log, key,
      [&](ByteSpan row_key, ByteSpan value) -> Status {
        const auto lsn = DecodeLogKey(row_key);
        if (!lsn) return Damaged("a log record");
        rows.emplace_back(*lsn, Bytes(value.begin(), value.end()));
        return {};
      },
      limit));
  return rows;
}

Result<bool> Db::VisitLog(Lsn first, Lsn end,
                          const std::vector<LogEntry>& denials,
                          const std::function<bool(const LogEntry&)>& visit) {
  auto denial = std::ranges::lower_bound(denials, first, {}, &LogEntry::lsn);
  const auto visit_until = [&](Lsn lsn) {
    while (denial != denials.end() && denial->lsn < lsn) {
      if (!visit(*denial++)) return false;
    }
    return true;
  };
  while (first < end) {
    const auto rows = TRY(ReadLog(first, kLogRowsPerRead));
    for (const auto& [lsn, bytes] : rows) {
      if (lsn >= end) break;
      if (!visit_until(lsn)) return false;
      LogEntry entry{.lsn = lsn, .change = TRY(DecodeChange(bytes))};
      entry.count = entry.change.repeats;
      entry.first = entry.change.first;
      if (!visit(entry)) return false;
    }
    first = rows.empty() ? end : Next(rows.back().first);
  }
  return visit_until(end);
}

Status Db::ReadLogBack(Lsn after,
                       const std::function<Result<Lsn>(Lsn, ByteSpan)>& visit) {
  Reading reading = TRY(Reading::Begin(*this));
  return reading.ForEachBack(
      handles_.log, Raw(after),
      [&](uint64_t lsn, ByteSpan value) -> Result<uint64_t> {
        return Raw(TRY(visit(Lsn{lsn}, value)));
      });
}

Result<std::vector<Savepoint>> Db::ReadSavepoints() {
  std::vector<Savepoint> savepoints;
  Reading reading = TRY(Reading::Begin(*this));
  TRY(reading.ForEach(handles_.savepoint, {},
                      [&](ByteSpan key, ByteSpan value) -> Status {
                        auto savepoint = DecodeSavepointRow(key, value);
                        if (!savepoint) return Damaged("a savepoint");
                        savepoints.push_back(*std::move(savepoint));
                        return {};
                      }));
  return savepoints;
}

Result<DenialTable> Db::ReadDenials() {
  DenialTable denials;
  Reading reading = TRY(Reading::Begin(*this));
  TRY(reading.ForEach(handles_.rule, {},
                      [&](ByteSpan key, ByteSpan value) -> Status {
                        auto rule = DecodeRuleRow(key, value);
                        if (!rule) return Damaged("a rule");
                        denials.Load(*std::move(rule));
                        return {};
                      }));
  TRY(reading.ForEach(handles_.denial, {},
                      [&](ByteSpan key, ByteSpan value) -> Status {
                        auto denial = DecodeDenialRow(key, value);
                        if (!denial) return Damaged("a denial");
                        denials.Load(*std::move(denial));
                        return {};
                      }));
  return denials;
}

Result<IntakeCursor> Db::GetCursor() {
  Reading reading = TRY(Reading::Begin(*this));
  auto value = reading.Get(handles_.meta, AsBytes(kCursorKey));
  if (!value && value.error().code == ENOENT)
    return Damaged("they have no cursor");
  if (!value) return std::unexpected(std::move(value).error());
  const auto cursor = DecodeCursor(*value);
  if (!cursor) return Damaged("the cursor");
  return *cursor;
}

Result<std::string> Db::GetMeta(const std::string& key) {
  Reading reading = TRY(Reading::Begin(*this));
  const ByteSpan value =
      TRY(reading.Get(handles_.meta, AsBytes(std::string(kFactPrefix) + key)));
  return std::string(AsText(value));
}

}  // namespace txfs
