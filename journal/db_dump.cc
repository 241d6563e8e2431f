#include "journal/db_dump.h"

#include <fcntl.h>
#include <lmdb.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <csignal>
#include <cstring>
#include <optional>
#include <string>

#include "journal/support/file.h"

namespace txfs {
namespace {

constexpr int kCopyTries = 20;
constexpr int kSilenceMs = 30'000;
constexpr size_t kChunk = 1 << 20;
constexpr size_t kBuffer = 64 << 10;
constexpr size_t kMaxKey = 511;

constexpr std::array kDumpedTables = {
    "meta",  "inode",     "origin", "dentry", "extent",
    "xattr", "savepoint", "rule",   "denial", "log",
};
/// An older version has none of these.
constexpr std::array kNewTables = {"rule", "denial"};
// What the child tells, before its two sizes: a table's index, or one of these.
constexpr uint8_t kTableName = 0xFD;
constexpr uint8_t kError = 0xFE;
constexpr uint8_t kEnd = 0xFF;

std::unexpected<Error> Damaged(const std::string& what) {
  return Fail(EBADMSG, what);
}

// --- the copy --------------------------------------------------------------

/// One of the two first pages: as LMDB lays it out on 64 bits.
struct MetaPage {
  uint64_t page_number;
  uint16_t pad, flags;
  uint32_t bounds;
  uint32_t magic, version;
  uint64_t address, map_size;
  uint32_t page_size;  ///< the first word of the free table's record
  std::byte tables[92];
  uint64_t last_page, txn;

  static constexpr uint32_t kMagic = 0xBEEFC0DE;
  static constexpr uint16_t kFlag = 0x08;
  [[nodiscard]] bool IsSound() const {
    return magic == kMagic && (flags & kFlag) != 0 &&
           std::has_single_bit(page_size) && page_size >= 512 &&
           page_size <= 65536 && txn != 0;
  }
};
static_assert(sizeof(MetaPage) == 152);

struct Metas {
  std::array<MetaPage, 2> pages;

  [[nodiscard]] uint64_t BytesInUse() const {
    return (std::max(pages[0].last_page, pages[1].last_page) + 1) *
           pages[0].page_size;
  }
  bool operator==(const Metas& other) const {
    return std::memcmp(&pages, &other.pages, sizeof pages) == 0;
  }
};

Result<MetaPage> ReadMetaPage(int fd, uint64_t at) {
  MetaPage page{};
  const size_t size = TRY(
      ReadFully(fd, at, std::as_writable_bytes(std::span(&page, size_t{1}))));
  if (size != sizeof page) return Damaged("it is cut short");
  return page;
}

Result<Metas> ReadMetas(int fd, uint64_t file_size) {
  Metas metas{};
  metas.pages[0] = TRY(ReadMetaPage(fd, 0));
  if (!metas.pages[0].IsSound()) return Damaged("its first page is not valid");
  metas.pages[1] = TRY(ReadMetaPage(fd, metas.pages[0].page_size));
  if (!metas.pages[1].IsSound() ||
      metas.pages[1].page_size != metas.pages[0].page_size) {
    return Damaged("its second page is not valid");
  }
  const uint64_t page = metas.pages[0].page_size;
  const uint64_t pages = file_size / page;
  for (const MetaPage& meta : metas.pages) {
    // One more than what it may be short of: no sum can run over.
    if (meta.last_page > pages + kMaxUnwrittenPages - 1) {
      return Damaged("it is cut short, or its first pages are damaged");
    }
  }
  return metas;
}

/// Copies what is no hole of [0, size).
Status CopyData(int from, int to, uint64_t size) {
  Bytes buffer(kChunk);
  uint64_t at = 0;
  while (at < size) {
    const off_t data = ::lseek(from, static_cast<off_t>(at), SEEK_DATA);
    if (data < 0 && errno == ENXIO) return {};
    if (data < 0) return Fail(errno, "seek");
    const off_t hole = ::lseek(from, data, SEEK_HOLE);
    if (hole < 0) return Fail(errno, "seek");
    at = static_cast<uint64_t>(data);
    const uint64_t end = std::min(size, static_cast<uint64_t>(hole));
    while (at < end) {
      const auto chunk = MutableByteSpan(buffer).first(
          std::min<uint64_t>(buffer.size(), end - at));
      const size_t n = TRY(ReadFully(from, at, chunk));
      if (n == 0) return {};
      TRY(WriteFully(to, at, chunk.first(n)));
      at += n;
    }
  }
  return {};
}

/// An invalid one when a batch came in between.
Result<UniqueFd> TryCopy(int from) {
  struct stat st{};
  if (::fstat(from, &st) != 0) return Fail(errno, "stat");
  if (!S_ISREG(st.st_mode)) return Damaged("it is not a regular file");
  const Metas before = TRY(ReadMetas(from, static_cast<uint64_t>(st.st_size)));
  UniqueFd copy(::memfd_create("tables", MFD_CLOEXEC));
  if (!copy.valid()) return Fail(errno, "memfd_create");
  const uint64_t size = before.BytesInUse();
  if (::ftruncate(copy.get(), static_cast<off_t>(size)) != 0) {
    return Fail(errno, "ftruncate");
  }
  TRY(CopyData(from, copy.get(), size));
  if (::fstat(from, &st) != 0) return Fail(errno, "stat");
  const Metas after = TRY(ReadMetas(from, static_cast<uint64_t>(st.st_size)));
  if (!(before == after)) return UniqueFd();
  return copy;
}

// --- the child -------------------------------------------------------------

/// Writes frames to the parent; ends the process when that is gone.
class FrameWriter {
 public:
  explicit FrameWriter(int fd) : fd_(fd) { buffer_.reserve(kBuffer); }

  void Put(uint8_t kind, ByteSpan key, ByteSpan value) {
    Encoder encoder(buffer_);
    encoder.Put(kind);
    encoder.Put(static_cast<uint32_t>(key.size()));
    encoder.Put(static_cast<uint32_t>(value.size()));
    encoder.PutRaw(key);
    encoder.PutRaw(value);
    if (buffer_.size() >= kBuffer) Flush();
  }
  void Flush() {
    ByteSpan rest = buffer_;
    while (!rest.empty()) {
      const ssize_t n = ::write(fd_, rest.data(), rest.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) ::_exit(1);
      rest = rest.subspan(static_cast<size_t>(n));
    }
    buffer_.clear();
  }
  [[noreturn]] void End(uint8_t kind, std::string_view text) {
    Put(kind, AsBytes(text), {});
    Flush();
    ::_exit(0);
  }

 private:
  int fd_;
  Bytes buffer_;
};

class Child {
 public:
  Child(int copy, int pipe, uint64_t size)
      : copy_(copy), size_(size), out_(pipe) {}

  [[noreturn]] void Run() {
    MDB_env* env = nullptr;
    Demand(mdb_env_create(&env));
    Demand(mdb_env_set_maxdbs(env, kDumpedTables.size()));
    const std::string path = "/proc/self/fd/" + std::to_string(copy_);
    Demand(mdb_env_open(env, path.c_str(),
                        MDB_RDONLY | MDB_NOLOCK | MDB_NOSUBDIR, 0));
    // Not before: it takes /proc/self/fd away.
    ::prctl(PR_SET_DUMPABLE, 0);
    MDB_txn* txn = nullptr;
    Demand(mdb_txn_begin(env, nullptr, MDB_RDONLY, &txn));
    MDB_dbi names = 0;
    Demand(mdb_dbi_open(txn, nullptr, 0, &names));
    Dump(txn, names, kTableName);
    for (size_t i = 0; i < kDumpedTables.size(); ++i) {
      MDB_dbi table = 0;
      const int code = mdb_dbi_open(txn, kDumpedTables[i], 0, &table);
      if (code == MDB_NOTFOUND && IsNew(kDumpedTables[i])) continue;
      if (code == MDB_NOTFOUND) {
        out_.End(kError, std::string("there is no table ") + kDumpedTables[i]);
      }
      Demand(code);
      Dump(txn, table, static_cast<uint8_t>(i));
    }
    out_.End(kEnd, "");
  }

 private:
  static bool IsNew(std::string_view table) {
    return std::ranges::count(kNewTables, table) != 0;
  }
  void Demand(int code) {
    if (code != 0) out_.End(kError, mdb_strerror(code));
  }

  void Dump(MDB_txn* txn, MDB_dbi table, uint8_t kind) {
    MDB_cursor* cursor = nullptr;
    Demand(mdb_cursor_open(txn, table, &cursor));
    MDB_val key{};
    MDB_val value{};
    int code = 0;
    while ((code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
      if (key.mv_size > kMaxKey || value.mv_size > size_) {
        out_.End(kError, "a row has an impossible size");
      }
      out_.Put(kind, {static_cast<const std::byte*>(key.mv_data), key.mv_size},
               {static_cast<const std::byte*>(value.mv_data), value.mv_size});
    }
    if (code != MDB_NOTFOUND) Demand(code);
  }

  int copy_;
  uint64_t size_;
  FrameWriter out_;
};

/// Nothing of the parent's stays open (a lock, a mount): it may die first.
void Seclude(int copy, int pipe, int null) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGPIPE}) {
    ::signal(signal, SIG_DFL);
  }
  for (int fd = 0; fd <= 2; ++fd) ::dup2(null, fd);
  const auto low = static_cast<unsigned>(std::min(copy, pipe));
  const auto high = static_cast<unsigned>(std::max(copy, pipe));
  if (low > 3) ::close_range(3, low - 1, 0);
  if (high > low + 1) ::close_range(low + 1, high - 1, 0);
  ::close_range(high + 1, ~0U, 0);
}

// --- the parent ------------------------------------------------------------

/// A child process; gone at the latest when this is destroyed.
class Process {
 public:
  explicit Process(pid_t pid) : pid_(pid) {}
  ~Process() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    Wait();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// The status of waitpid(2).
  int Wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return status;
  }

 private:
  pid_t pid_;
};

class FrameReader {
 public:
  explicit FrameReader(int fd) : fd_(fd) {}

  /// Up to `size` bytes; fewer when the child is gone.
  Result<ByteSpan> Take(size_t size) {
    if (buffer_.size() - begin_ < size) {
      buffer_.erase(buffer_.begin(),
                    buffer_.begin() + static_cast<ptrdiff_t>(begin_));
      begin_ = 0;
    }
    while (buffer_.size() - begin_ < size) {
      if (TRY(ReadMore()) == 0) break;
    }
    const size_t got = std::min(size, buffer_.size() - begin_);
    begin_ += got;
    return ByteSpan(buffer_).subspan(begin_ - got, got);
  }

 private:
  Result<size_t> ReadMore() {
    pollfd poll_fd{.fd = fd_, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&poll_fd, 1, kSilenceMs);
    if (ready == 0) return Damaged("LMDB does not finish reading them");
    if (ready < 0 && errno != EINTR) return Fail(errno, "poll");
    const size_t old = buffer_.size();
    buffer_.resize(old + kBuffer);
    ssize_t n = -1;
    do {
      n = ::read(fd_, buffer_.data() + old, kBuffer);
    } while (n < 0 && errno == EINTR);
    buffer_.resize(old + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (n < 0) return Fail(errno, "read");
    return static_cast<size_t>(n);
  }

  int fd_;
  Bytes buffer_;
  size_t begin_ = 0;
};

std::unexpected<Error> Died(int status) {
  if (WIFSIGNALED(status)) {
    return Damaged("signal " + std::to_string(WTERMSIG(status)) +
                   " killed LMDB while it read them");
  }
  return Damaged("LMDB cannot read them");
}

Status ReadRows(FrameReader& in, Process& child, const RowVisitor& visit) {
  std::optional<uint8_t> table;
  Bytes last;
  for (;;) {
    const ByteSpan head = TRY(in.Take(9));
    Decoder decoder(head);
    const auto kind = decoder.Get<uint8_t>();
    const auto key_size = decoder.Get<uint32_t>();
    const auto value_size = decoder.Get<uint32_t>();
    if (!decoder.ok()) return Died(child.Wait());
    const size_t size = size_t{key_size} + value_size;
    const ByteSpan body = TRY(in.Take(size));
    if (body.size() != size) return Died(child.Wait());
    const ByteSpan key = body.first(key_size);
    if (kind == kEnd) return {};
    if (kind == kError) return Damaged(std::string(AsText(key)));
    if (kind != kTableName && kind >= kDumpedTables.size()) {
      return Damaged("LMDB cannot read them");
    }
    // Rows in order are different rows, so they come to an end.
    if (table == kind && !std::ranges::lexicographical_compare(last, key)) {
      return Damaged("the rows of a table are not in order");
    }
    table = kind;
    last.assign(key.begin(), key.end());
    visit(kind == kTableName ? "" : kDumpedTables[kind], key,
          body.subspan(key_size));
  }
}

}  // namespace

Result<UniqueFd> CopyTables(int dir) {
  const auto data = OpenFileBelow(dir, "db/data.mdb", O_RDONLY);
  if (!data && data.error().code == ENOENT) return Damaged("it is missing");
  if (!data) return std::unexpected(data.error());
  for (int i = 0; i < kCopyTries; ++i) {
    UniqueFd copy = TRY(TryCopy(data->get()));
    if (copy.valid()) return copy;
  }
  return Fail(
      ErrorKind::kBusy, EBUSY, "the tables change faster than they can be read",
      "try again when the workspace is less busy, or after `txfs umount`");
}

Status DumpTables(int copy, const RowVisitor& visit) {
  struct stat st{};
  if (::fstat(copy, &st) != 0) return Fail(errno, "stat");
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Fail(errno, "pipe");
  UniqueFd in(ends[0]);
  UniqueFd out(ends[1]);
  const UniqueFd null = TRY(OpenAt(AT_FDCWD, "/dev/null", O_RDWR));
  const pid_t pid = ::fork();
  if (pid < 0) return Fail(errno, "fork");
  if (pid == 0) {
    Seclude(copy, out.get(), null.get());
    Child(copy, out.get(), static_cast<uint64_t>(st.st_size)).Run();
  }
  Process child(pid);
  out.Reset();
  FrameReader reader(in.get());
  return ReadRows(reader, child, visit);
}

}  // namespace txfs
