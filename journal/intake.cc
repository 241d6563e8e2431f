#include "journal/intake.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <tuple>

#include "journal/journal.h"
#include "journal/support/checksum.h"
#include "journal/support/file.h"
#include "journal/support/stored.h"

namespace txfs {
namespace {

constexpr uint64_t kPage = 4096;
constexpr std::string_view kIntakeMagic = "TXFSRING";
constexpr uint32_t kIntakeVersion = 1;
/// A larger ring is not opened, bytes.
constexpr uint64_t kMaxCapacity = 1 << 30;
constexpr uint64_t kAlignment = 8;
constexpr uint32_t kTurnMark = 0xFFFFFFFF;
constexpr std::string_view kFile = "intake";
constexpr std::string_view kDamagedIntakeHint =
    "the transaction cannot be recovered; move its directory out of the store "
    "to begin a new one";

/// As in docs/format.md.
struct RecordHeader {
  uint64_t checksum = 0;  ///< of the bytes after it, seeded with salt ^ lsn
  uint32_t size = 0;      ///< with header, without padding; or kTurnMark
  uint32_t change_size = 0;
  uint64_t lsn = 0;
  uint32_t segment = 0;
  uint32_t content_length = 0;
  uint64_t content_position = 0;
  uint64_t content_checksum = 0;
};
static_assert(sizeof(RecordHeader) == 48);
constexpr uint64_t kIntakeHeaderSize = sizeof(RecordHeader);

uint64_t Align(uint64_t size) {
  return (size + kAlignment - 1) & ~(kAlignment - 1);
}

uint64_t RecordChecksum(const std::byte* record, uint64_t size, uint64_t lsn,
                        uint64_t salt) {
  return Checksum({record + sizeof(uint64_t), size - sizeof(uint64_t)},
                  salt ^ lsn);
}

Bytes FileHeader(uint64_t capacity) {
  Bytes page;
  Encoder encoder(page);
  encoder.PutRaw(AsBytes(kIntakeMagic));
  encoder.Put(kIntakeVersion);
  encoder.Put(uint32_t{0});
  encoder.Put(capacity);
  encoder.Put(Checksum(page));
  page.resize(kPage);
  return page;
}

// Overwriting must not need space; where data is copied on write it would.
void ForbidCopyOnWrite(int fd) {
  int flags = FS_NOCOW_FL;
  [[maybe_unused]] const int ignored = ::ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

std::unexpected<Error> Damaged(int dir, std::string_view what) {
  return Fail(EBADMSG,
              PathOfFd(dir) + "/intake is damaged: " + std::string(what),
              kDamagedIntakeHint);
}

Result<UniqueFd> OpenFile(int dir, int flags) {
  auto fd = OpenOwnFileBelow(dir, std::string(kFile), flags);
  if (!fd && fd.error().code == ENOENT) return Damaged(dir, "it is missing");
  return fd;
}

Result<uint64_t> ReadFileHeader(int dir, int fd) {
  struct stat st{};
  if (::fstat(fd, &st) != 0) return Fail(errno, "stat intake");
  Bytes page(kPage);
  const size_t size = TRY(ReadFully(fd, 0, page));
  Decoder decoder(page);
  const std::string_view magic = AsText(decoder.GetRaw(kIntakeMagic.size()));
  const auto version = decoder.Get<uint32_t>();
  decoder.Get<uint32_t>();
  const auto capacity = decoder.Get<uint64_t>();
  if (size != kPage || magic != kIntakeMagic)
    return Damaged(dir, "it has no header");
  if (version > kIntakeVersion) {
    return Fail(EPROTONOSUPPORT,
                PathOfFd(dir) + "/intake has version " +
                    std::to_string(version) + ", this program knows " +
                    std::to_string(kIntakeVersion),
                "use the newer txfs that wrote it");
  }
  if (page != FileHeader(capacity))
    return Damaged(dir, "its header has a wrong checksum");
  if (capacity < Intake::kMinCapacity || capacity > kMaxCapacity ||
      capacity % kPage != 0 ||
      static_cast<uint64_t>(st.st_size) < kPage + capacity) {
    return Damaged(dir, "its size is wrong");
  }
  return capacity;
}

uint64_t UsableCapacity(uint64_t capacity) {
  return std::max(Intake::kMinCapacity, (capacity + kPage - 1) & ~(kPage - 1));
}

}  // namespace

Result<std::unique_ptr<Intake>> Intake::Create(int dir, uint64_t capacity,
                                               Io& io, uint64_t most) {
  capacity = UsableCapacity(capacity);
  UniqueFd fd = TRY(
      OpenFileBelow(dir, std::string(kFile), O_RDWR | O_CREAT | O_EXCL, 0600));
  ForbidCopyOnWrite(fd.get());
  TRY(Preallocate(io, fd.get(), kPage + capacity));
  TRY(WritePartsFully(io, fd.get(), 0, {FileHeader(capacity)}));
  if (io.Sync(fd.get()) != 0) return Fail(errno, "sync intake");
  return Map(std::move(fd), capacity, most, io);
}

Result<std::unique_ptr<Intake>> Intake::Open(int dir, Io& io, uint64_t most) {
  UniqueFd fd = TRY(OpenFile(dir, O_RDWR));
  const uint64_t capacity = TRY(ReadFileHeader(dir, fd.get()));
  return Map(std::move(fd), capacity, most, io);
}

Result<std::unique_ptr<Intake>> Intake::Copy(int dir) {
  UniqueFd fd = TRY(OpenFile(dir, O_RDONLY));
  const uint64_t capacity = TRY(ReadFileHeader(dir, fd.get()));
  void* map = ::mmap(nullptr, kPage + capacity, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return Fail(errno, "copy intake");
  const MutableByteSpan bytes(static_cast<std::byte*>(map), kPage + capacity);
  std::unique_ptr<Intake> copy(new Intake(
      std::move(fd), bytes.data(), bytes.size(), capacity, Io::System()));
  TRY(ReadFully(copy->fd_.get(), 0, bytes));
  return copy;
}

// Beyond the end of the file the mapping is not touched before Grow.
Result<std::unique_ptr<Intake>> Intake::Map(UniqueFd fd, uint64_t capacity,
                                            uint64_t most, Io& io) {
  const uint64_t size = kPage + std::max(capacity, UsableCapacity(most));
  // Read-ahead would bring in large folios.
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_RANDOM);
  void* map =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (map == MAP_FAILED) return Fail(errno, "map intake");
  ::madvise(map, size, MADV_RANDOM);
  return std::unique_ptr<Intake>(new Intake(
      std::move(fd), static_cast<std::byte*>(map), size, capacity, io));
}

Intake::~Intake() { ::munmap(map_, map_size_); }

std::byte* Intake::At(uint64_t position) const {
  return map_ + kPage + position % capacity_;
}

uint64_t Intake::ToTurn(uint64_t position) const {
  return capacity_ - position % capacity_;
}

std::optional<IntakeRecord> Intake::ReadRecord(uint64_t position, Lsn lsn,
                                               uint64_t salt) const {
  RecordHeader header;
  uint64_t rest = ToTurn(position);
  if (rest >= kIntakeHeaderSize) {
    std::memcpy(&header, At(position), kIntakeHeaderSize);
    if (header.size == kTurnMark && header.lsn == Raw(lsn) &&
        header.checksum ==
            RecordChecksum(At(position), kIntakeHeaderSize, Raw(lsn), salt)) {
      position += rest;
    }
  } else {
    position += rest;
  }
  const std::byte* bytes = At(position);
  rest = ToTurn(position);
  std::memcpy(&header, bytes, kIntakeHeaderSize);
  if (header.lsn != Raw(lsn) || header.size < kIntakeHeaderSize ||
      header.size > rest ||
      header.change_size > header.size - kIntakeHeaderSize) {
    return std::nullopt;
  }
  const uint64_t inline_size =
      header.size - kIntakeHeaderSize - header.change_size;
  if (inline_size != 0 &&
      (inline_size != header.content_length || header.segment == 0)) {
    return std::nullopt;
  }
  if (header.content_length > kRecordContentMax ||
      !IsRangeOfFile(header.content_position, header.content_length)) {
    return std::nullopt;
  }
  if (header.checksum != RecordChecksum(bytes, header.size, Raw(lsn), salt)) {
    return std::nullopt;
  }
  IntakeRecord record;
  record.lsn = lsn;
  record.change = {bytes + kIntakeHeaderSize, header.change_size};
  record.content = {header.segment, header.content_length,
                    header.content_position, header.content_checksum, 0};
  record.inline_bytes = {bytes + kIntakeHeaderSize + header.change_size,
                         inline_size};
  record.end = position + Align(header.size);
  return record;
}

void Intake::Recover(const IntakeCursor& cursor,
                     const std::function<bool(const IntakeRecord&)>& accept) {
  MutexLock lock(mutex_);
  salt_ = cursor.salt;
  drained_ = cursor;
  tail_ = cursor.position;
  head_ = cursor.position;
  next_lsn_ = cursor.next_lsn;
  // Nothing is appended before the next epoch.
  warm_ = capacity_;
  const uint64_t limit = cursor.position + capacity_;
  while (head_ < limit) {
    const auto record = ReadRecord(head_, next_lsn_, salt_);
    if (!record || record->end > limit || !accept(*record)) return;
    head_ = record->end;
    next_lsn_ = Next(next_lsn_);
  }
}

void Intake::BeginEpoch(const IntakeCursor& cursor) {
  MutexLock lock(mutex_);
  assert(head_ == drained_.position);
  salt_ = cursor.salt;
  drained_ = cursor;
  tail_ = head_ = cursor.position;
  next_lsn_ = cursor.next_lsn;
  warm_ = 0;
}

Status Intake::WriteHeader(uint64_t capacity) {
  TRY(WritePartsFully(io_, fd_.get(), 0, {FileHeader(capacity)}));
  if (io_.Sync(fd_.get()) != 0) return Fail(errno, "sync intake");
  return {};
}

// Recovery finds an empty ring with either header, and no record is appended
// before the new one is durable. Its blocks are durable before it.
Status Intake::Grow(uint64_t capacity) {
  capacity = UsableCapacity(capacity);
  const MutexLock lock(mutex_);
  assert(tail_ == head_ && kPage + capacity <= map_size_);
  Status grown =
      Preallocate(io_, fd_.get(), kPage + capacity, kPage + capacity_);
  if (grown && io_.Sync(fd_.get()) != 0) grown = Fail(errno, "sync intake");
  if (!grown) {
    std::ignore =
        ::ftruncate(fd_.get(), static_cast<off_t>(kPage + capacity_.load()));
    return grown;
  }
  grown = WriteHeader(capacity);
  if (grown) {
    capacity_ = capacity;
    return {};
  }
  // The next sync has to write the old header again.
  suspect_ = true;
  const Bytes header = FileHeader(capacity_);
  if (!WritePartsFully(io_, fd_.get(), 0, {header})) {
    std::ranges::copy(header, map_);
  }
  return grown;
}

uint64_t Intake::RecordSize(uint64_t change_size, uint64_t inline_size) {
  return Align(kIntakeHeaderSize + change_size + inline_size);
}

bool Intake::HasRoom(uint64_t size) const {
  MutexLock lock(mutex_);
  const uint64_t rest = ToTurn(head_);
  const uint64_t needed = rest < size ? rest + size : size;
  return head_ - tail_ + needed <= capacity_;
}

// The first time round each page is written whole before it is stored into:
// that makes it a small folio, and spares the fault that would read it.
Status Intake::Warm(uint64_t place, uint64_t size) {
  if (place + size <= warm_) return {};
  const uint64_t to = (place + size + kPage - 1) & ~(kPage - 1);
  TRY(WriteZeros(io_, fd_.get(), kPage + warm_, kPage + to));
  warm_ = to;
  return {};
}

void Intake::WriteTurnMark() {
  RecordHeader mark;
  mark.size = kTurnMark;
  mark.lsn = Raw(next_lsn_);
  std::byte* at = At(head_);
  std::memcpy(at, &mark, kIntakeHeaderSize);
  mark.checksum = RecordChecksum(at, kIntakeHeaderSize, mark.lsn, salt_);
  std::memcpy(at, &mark.checksum, sizeof mark.checksum);
}

IntakeRecord Intake::WriteRecord(ByteSpan change, const ContentRef& content,
                                 ByteSpan inline_bytes) {
  RecordHeader header;
  header.size = static_cast<uint32_t>(kIntakeHeaderSize + change.size() +
                                      inline_bytes.size());
  header.change_size = static_cast<uint32_t>(change.size());
  header.lsn = Raw(next_lsn_);
  header.segment = content.segment;
  header.content_length = content.record_length;
  header.content_position = content.record_position;
  header.content_checksum = content.checksum;
  std::byte* at = At(head_);
  std::byte* payload = at + kIntakeHeaderSize;
  std::ranges::copy(change, payload);
  std::ranges::copy(inline_bytes, payload + change.size());
  std::memcpy(at, &header, kIntakeHeaderSize);
  // Last: until it is there, the record is not.
  header.checksum = RecordChecksum(at, header.size, header.lsn, salt_);
  std::memcpy(at, &header.checksum, sizeof header.checksum);
  return {next_lsn_,
          {payload, change.size()},
          content,
          {payload + change.size(), inline_bytes.size()},
          head_ + Align(header.size)};
}

Result<Intake::Appended> Intake::Append(
    ByteSpan change, const ContentRef& content, ByteSpan inline_bytes,
    const std::function<void(const IntakeRecord&)>& placed) {
  const uint64_t size = RecordSize(change.size(), inline_bytes.size());
  MutexLock lock(mutex_);
  const uint64_t rest = ToTurn(head_);
  TRY(Warm(head_ % capacity_, std::min(rest, size)));
  const uint64_t waiting_before = head_ - drained_.position;
  if (rest < size) {
    if (rest >= kIntakeHeaderSize) WriteTurnMark();
    head_ += rest;
  }
  const IntakeRecord record = WriteRecord(change, content, inline_bytes);
  if (placed) placed(record);
  head_ = record.end;
  next_lsn_ = Next(next_lsn_);
  return Appended{record.lsn, waiting_before, head_ - drained_.position};
}

void Intake::SkipLsn() {
  MutexLock lock(mutex_);
  assert(head_ == drained_.position);
  next_lsn_ = Next(next_lsn_);
  drained_.next_lsn = next_lsn_;
}

Result<std::vector<IntakeRecord>> Intake::Waiting(size_t max_records,
                                                  uint64_t max_bytes) const {
  IntakeCursor at;
  uint64_t head = 0;
  {
    MutexLock lock(mutex_);
    at = drained_;
    head = head_;
  }
  std::vector<IntakeRecord> records;
  const uint64_t limit = at.position + max_bytes;
  while (at.position < std::min(head, limit) && records.size() < max_records) {
    const auto record = ReadRecord(at.position, at.next_lsn, at.salt);
    if (!record || record->end > head) {
      return Fail(EBADMSG, "the intake was damaged while in use",
                  kDamagedIntakeHint);
    }
    records.push_back(*record);
    at.position = record->end;
    at.next_lsn = Next(at.next_lsn);
  }
  return records;
}

IntakeCursor Intake::CursorAfter(const IntakeRecord& last) const {
  MutexLock lock(mutex_);
  return {salt_, last.end, Next(last.lsn)};
}

IntakeCursor Intake::DrainedCursor() const {
  MutexLock lock(mutex_);
  return drained_;
}

void Intake::Drained(const IntakeCursor& cursor) {
  MutexLock lock(mutex_);
  drained_ = cursor;
}

void Intake::Durable(const IntakeCursor& cursor) {
  MutexLock lock(mutex_);
  if (cursor.salt == salt_) tail_ = std::max(tail_, cursor.position);
}

Lsn Intake::next_lsn() const {
  MutexLock lock(mutex_);
  return next_lsn_;
}

uint64_t Intake::waiting_bytes() const {
  MutexLock lock(mutex_);
  return head_ - drained_.position;
}

// The kernel takes pages that it failed to write for clean: syncing them again
// would succeed and mean nothing.
Status Intake::Sync() {
  {
    MutexLock lock(mutex_);
    if (suspect_) TRY(Rewrite());
  }
  if (io_.Sync(fd_.get()) == 0) return {};
  const int error = errno;
  MutexLock lock(mutex_);
  suspect_ = true;
  // At once, while the pages are still in memory.
  [[maybe_unused]] const Status rewritten = Rewrite();
  return Fail(error, "sync intake");
}

Status Intake::Rewrite() {
  TRY(WritePartsFully(io_, fd_.get(), 0, {FileHeader(capacity_)}));
  for (uint64_t at = tail_ & ~(kPage - 1); at < head_; at += kPage) {
    const Bytes page(At(at), At(at) + kPage);
    TRY(WritePartsFully(io_, fd_.get(), kPage + at % capacity_, {page}));
  }
  uint64_t position = drained_.position;
  for (Lsn lsn = drained_.next_lsn; lsn != next_lsn_; lsn = Next(lsn)) {
    const auto record = ReadRecord(position, lsn, salt_);
    if (!record) return Fail(EIO, "the disk lost records of the intake");
    position = record->end;
  }
  suspect_ = false;
  return {};
}

}  // namespace txfs
