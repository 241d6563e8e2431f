#include "fs/origin/preimages.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "journal/support/file.h"

namespace txfs {
namespace {

constexpr const char* kFileName = "preimages";
constexpr std::string_view kMagic = "TXFSPRE\n";
constexpr uint32_t kVersion = 1;
constexpr size_t kFileHeaderSize = 16;
constexpr size_t kHeaderSize = 72;

Bytes FileHeader() {
  Bytes bytes;
  Encoder out(bytes);
  out.PutRaw(AsBytes(kMagic));
  out.Put(kVersion);
  out.Put(uint32_t{0});
  return bytes;
}

struct Header {
  Fingerprint state;
  ContentHash hash;
};

Bytes EncodeHeader(const Header& header) {
  Bytes rest;
  Encoder out(rest);
  out.Put(header.state.dev);
  out.Put(header.state.ino);
  out.Put(header.state.size);
  EncodeTime(header.state.mtime, out);
  EncodeTime(header.state.ctime, out);
  out.Put(header.hash.low);
  out.Put(header.hash.high);
  Bytes bytes;
  Encoder(bytes).Put(Checksum(rest));
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  return bytes;
}

std::optional<Header> DecodeHeader(ByteSpan in) {
  Decoder decoder(in);
  const auto checksum = decoder.Get<uint64_t>();
  if (checksum != Checksum(in.subspan(sizeof checksum))) return std::nullopt;
  Header header;
  header.state.dev = decoder.Get<uint64_t>();
  header.state.ino = decoder.Get<uint64_t>();
  header.state.size = decoder.Get<uint64_t>();
  header.state.mtime = DecodeTime(decoder);
  header.state.ctime = DecodeTime(decoder);
  header.hash.low = decoder.Get<uint64_t>();
  header.hash.high = decoder.Get<uint64_t>();
  if (!decoder.ok()) return std::nullopt;
  return header;
}

/// Size of the content after the header, bytes.
uint64_t ContentSize(const Fingerprint& state) {
  return state.size <= Preimages::kMaxSize ? state.size : 0;
}

/// Up to `length` bytes.
Bytes ReadPart(int fd, uint64_t position, size_t length) {
  Bytes bytes(length);
  bytes.resize(ReadFully(fd, position, bytes).value_or(0));
  return bytes;
}

uint64_t SizeOf(int fd) {
  struct stat st{};
  return ::fstat(fd, &st) == 0 ? static_cast<uint64_t>(st.st_size) : 0;
}

/// The header of the record at `position`; none if the record is incomplete.
std::optional<Header> ReadHeader(int fd, uint64_t position) {
  const Bytes bytes = ReadPart(fd, position, kHeaderSize);
  if (bytes.size() != kHeaderSize) return std::nullopt;
  std::optional<Header> header = DecodeHeader(bytes);
  if (!header) return std::nullopt;
  const uint64_t end = position + kHeaderSize + ContentSize(header->state);
  return end <= SizeOf(fd) ? header : std::nullopt;
}

bool IsIn(int fd, const Fingerprint& state) {
  struct stat st{};
  return ::fstat(fd, &st) == 0 && IsUnchanged(st, state);
}

/// Birth time, if known. On an overlay a copy-up sets it, so it is unknown.
std::optional<Timestamp> BirthOf(int fd) {
  if (IsOverlay(fd)) return {};
  constexpr unsigned kTimes = STATX_BTIME | STATX_CTIME;
  struct statx stx{};
  if (::statx(fd, "", AT_EMPTY_PATH, kTimes, &stx) != 0) return {};
  if ((stx.stx_mask & kTimes) != kTimes) return {};
  const Timestamp born{stx.stx_btime.tv_sec, stx.stx_btime.tv_nsec};
  const Timestamp changed{stx.stx_ctime.tv_sec, stx.stx_ctime.tv_nsec};
  // A birth time after ctime is not reliable.
  if (born > changed) return {};
  return born;
}

}  // namespace

size_t FingerprintHash::operator()(const Fingerprint& state) const {
  constexpr uint64_t kSpread = 0x9E3779B97F4A7C15ULL;
  const auto ticks = static_cast<uint64_t>(state.mtime.nsec);
  return ((state.ino * kSpread) ^ state.dev ^ ticks) * kSpread;
}

bool IsUnchanged(const struct stat& st, const Fingerprint& state) {
  return st.st_ino == state.ino &&
         static_cast<uint64_t>(st.st_size) == state.size &&
         Timestamp::From(st.st_mtim) == state.mtime &&
         Timestamp::From(st.st_ctim) == state.ctime;
}

bool IsBornBefore(int fd, const Timestamp& time) {
  const auto born = BirthOf(fd);
  return born && *born <= time;
}

bool IsInState(const BaseDirectory& base, int fd, const Fingerprint& state) {
  struct stat st{};
  return ::fstat(fd, &st) == 0 &&
         static_cast<uint64_t>(st.st_size) == state.size &&
         Timestamp::From(st.st_mtim) == state.mtime &&
         IsSameFile(base, fd, state);
}

bool IsSameFile(const BaseDirectory& base, int fd, const Fingerprint& state) {
  struct stat st{};
  if (::fstat(fd, &st) != 0) return false;
  const auto born = BirthOf(fd);
  const bool is_same = born ? *born <= state.ctime
                            : static_cast<uint64_t>(st.st_size) == state.size &&
                                  Timestamp::From(st.st_mtim) == state.mtime;
  return is_same && st.st_ino == state.ino &&
         base.RelativeDevice(st.st_dev) == state.dev;
}

Fingerprint Fingerprint::Of(const BaseOrigin& origin) {
  return {.dev = origin.dev,
          .ino = origin.ino,
          .size = origin.size,
          .mtime = origin.mtime,
          .ctime = origin.ctime};
}

// --- reading ---------------------------------------------------------------

namespace {

/// Reads records from front to back, with few system calls where they are
/// small.
class RecordReader {
 public:
  struct Record {
    Header header;
    uint64_t position = 0;  ///< of the content
    uint64_t checksum = 0;  ///< of the content; 0: not known
  };

  /// `begin`: position of the first record.
  RecordReader(int fd, uint64_t begin)
      : fd_(fd), end_(begin), size_(SizeOf(fd)) {}

  /// None: the end, or a record that is damaged or incomplete.
  std::optional<Record> Next() {
    const ByteSpan bytes = Peek(end_, kHeaderSize);
    if (bytes.size() != kHeaderSize) return std::nullopt;
    const std::optional<Header> header = DecodeHeader(bytes);
    if (!header) return std::nullopt;
    const uint64_t begin = end_ + kHeaderSize;
    const uint64_t length = ContentSize(header->state);
    if (begin + length > size_) return std::nullopt;
    Record record{.header = *header, .position = begin};
    is_small_ = length <= kSmall;
    if (is_small_ && length != 0) {
      const ByteSpan content = Peek(begin, length);
      // That of damaged content tells nothing.
      const bool is_sound =
          content.size() == length && ContentHash::Of(content) == header->hash;
      if (is_sound) record.checksum = Checksum(content);
    }
    end_ = begin + length;
    return record;
  }

  /// The end of the last record.
  [[nodiscard]] uint64_t end() const { return end_; }

 private:
  static constexpr size_t kSmall = 4096;
  static constexpr size_t kAtOnce = 64 << 10;

  /// Up to `length` bytes; valid until the next call.
  ByteSpan Peek(uint64_t position, size_t length) {
    const bool is_there =
        position >= position_ && position + length <= position_ + piece_.size();
    if (!is_there) {
      // Behind large content most of what is read ahead would be of the next.
      piece_ = ReadPart(fd_, position, is_small_ ? kAtOnce : length);
      position_ = position;
    }
    const ByteSpan rest = ByteSpan(piece_).subspan(position - position_);
    return rest.first(std::min(rest.size(), length));
  }

  const int fd_;
  uint64_t end_;
  const uint64_t size_;
  Bytes piece_;
  uint64_t position_ = 0;  ///< of `piece_`
  bool is_small_ = true;   ///< the content of the last record
};

}  // namespace

void Preimages::Load() {
  if (loaded_) return;
  loaded_ = true;
  auto file = OpenOwnFileBelow(dir_.get(), kFileName, O_RDWR);
  // Empty: SIGKILL interrupted its creation.
  if (!file || SizeOf(file->get()) == 0) return;
  foreign_ = ReadPart(file->get(), 0, kFileHeaderSize) != FileHeader();
  if (foreign_) return;
  file_ = std::move(*file);
  RecordReader records(file_.get(), kFileHeaderSize);
  while (const auto record = records.Next()) {
    index_[record->header.state] = {record->position, record->header.hash,
                                    record->checksum};
  }
  end_ = records.end();
  // Cuts off an incomplete record, or records behind damage.
  std::ignore = ::ftruncate(file_.get(), static_cast<off_t>(end_));
}

std::optional<Bytes> Preimages::Find(const Fingerprint& state) {
  if (state.size == 0) return Bytes();
  if (state.size > kMaxSize) return std::nullopt;
  const MutexLock lock(mutex_);
  Load();
  const auto found = index_.find(state);
  if (found == index_.end()) return std::nullopt;
  Bytes content = ReadPart(file_.get(), found->second.position, state.size);
  if (content.size() != state.size) return std::nullopt;
  if (ContentHash::Of(content) != found->second.hash) return std::nullopt;
  return content;
}

std::optional<ContentHash> Preimages::FindHash(const Fingerprint& state) {
  if (state.size == 0) return ContentHash::Of({});
  const MutexLock lock(mutex_);
  Load();
  const auto found = index_.find(state);
  if (found == index_.end()) return std::nullopt;
  return found->second.hash;
}

std::optional<uint64_t> Preimages::FindChecksum(const Fingerprint& state) {
  const MutexLock lock(mutex_);
  Load();
  const auto found = index_.find(state);
  if (found == index_.end() || found->second.checksum == 0) return std::nullopt;
  return found->second.checksum;
}

void Preimages::Prepare() {
  const MutexLock lock(mutex_);
  Load();
}

uint64_t Preimages::bytes() {
  const MutexLock lock(mutex_);
  if (loaded_) return end_;
  // The index of many files takes time and memory.
  struct stat st{};
  const bool exists =
      ::fstatat(dir_.get(), kFileName, &st, AT_SYMLINK_NOFOLLOW) == 0;
  return exists ? static_cast<uint64_t>(st.st_size) : 0;
}

// --- saving ----------------------------------------------------------------

bool Preimages::Wants(const Fingerprint& state) {
  if (state.size == 0 || state.size > kMaxSize) return false;
  const MutexLock lock(mutex_);
  Load();
  return !index_.contains(state);
}

bool Preimages::Start() {
  if (file_.get() >= 0) return true;
  if (foreign_) return false;
  auto file = OpenOwnFileBelow(dir_.get(), kFileName, O_RDWR | O_CREAT, 0600);
  if (!file) return false;
  const Bytes header = FileHeader();
  if (!WriteFully(file->get(), 0, header)) {
    std::ignore = ::unlinkat(dir_.get(), kFileName, 0);
    return false;
  }
  file_ = std::move(*file);
  end_ = header.size();
  return true;
}

void Preimages::Save(const Fingerprint& state, int fd) {
  Bytes record(kHeaderSize + state.size);
  const MutableByteSpan content = MutableByteSpan(record).subspan(kHeaderSize);
  const auto n = ReadFully(fd, 0, content);
  // Checked after the read, so that all of the content is in `state`.
  if (!n || *n != content.size() || !IsIn(fd, state)) return;
  const ContentHash hash = ContentHash::Of(content);
  const uint64_t checksum = Checksum(content);
  record.resize(kHeaderSize + ContentSize(state));
  const MutexLock lock(mutex_);
  Append(state, hash, checksum, std::move(record));
}

void Preimages::Append(const Fingerprint& state, const ContentHash& hash,
                       uint64_t checksum, Bytes record) {
  std::ranges::copy(EncodeHeader({state, hash}), record.begin());
  Load();
  if (index_.contains(state) || !Start()) return;
  if (!WriteFully(file_.get(), end_, record)) {
    std::ignore = ::ftruncate(file_.get(), static_cast<off_t>(end_));
    return;
  }
  index_[state] = {end_ + kHeaderSize, hash, checksum};
  end_ += record.size();
}

void Preimages::ReadAlong(const Fingerprint& state, int fd, uint64_t offset,
                          ByteSpan bytes) {
  if (state.size <= kMaxSize) return;
  const MutexLock lock(mutex_);
  Load();
  if (index_.contains(state)) return;
  if (offset == 0) reading_ = {state, 0, std::make_unique<ContentHasher>()};
  if (!reading_.hasher || reading_.state != state || reading_.next != offset) {
    return;
  }
  reading_.hasher->Add(bytes);
  reading_.next += bytes.size();
  if (reading_.next != state.size) return;
  const ContentHash hash = reading_.hasher->Finish();
  reading_.hasher.reset();
  if (IsIn(fd, state)) Append(state, hash, 0, Bytes(kHeaderSize));
}

// --- checking --------------------------------------------------------------

namespace {

void CheckFileHeader(const Bytes& header, Findings& findings) {
  const ByteSpan magic = AsBytes(kMagic);
  const bool is_ours =
      header.size() == kFileHeaderSize &&
      std::ranges::equal(ByteSpan(header).first(magic.size()), magic);
  findings.Add(is_ours ? "version" : "preimages.header",
               is_ours ? "unknown format version"
                       : "the header is damaged: no pre-image can be read");
}

/// Returns the position of the next record; none: unknown.
std::optional<uint64_t> CheckRecord(int fd, uint64_t position,
                                    Findings& findings) {
  const std::string place = "the record at " + std::to_string(position);
  const std::optional<Header> header = ReadHeader(fd, position);
  if (!header) {
    const Bytes bytes = ReadPart(fd, position, kHeaderSize);
    // SIGKILL left it incomplete; Load cuts it off.
    if (bytes.size() < kHeaderSize || DecodeHeader(bytes)) return std::nullopt;
    findings.Add(
        "preimages.record",
        place + " is damaged: it and all later records cannot be read");
    return std::nullopt;
  }
  const uint64_t begin = position + kHeaderSize;
  const Bytes content = ReadPart(fd, begin, ContentSize(header->state));
  findings.report().content_bytes += content.size();
  if (!content.empty() && ContentHash::Of(content) != header->hash) {
    findings.Add(
        "preimages.record",
        "the content of " + place + " does not match its hash: it is not used");
  }
  return begin + ContentSize(header->state);
}

}  // namespace

Status CheckPreimages(int dir, const Findings& findings) {
  const auto file = OpenFileBelow(dir, kFileName, O_RDONLY);
  if (!file && file.error().code == ENOENT) return {};
  if (!file) return std::unexpected(file.error());
  const int fd = file->get();
  if (SizeOf(fd) == 0) return {};
  Findings place = findings.Below(kFileName);
  const Bytes header = ReadPart(fd, 0, kFileHeaderSize);
  if (header != FileHeader()) {
    CheckFileHeader(header, place);
    return {};
  }
  std::optional<uint64_t> position = kFileHeaderSize;
  while (position && *position < SizeOf(fd)) {
    position = CheckRecord(fd, *position, place);
  }
  return {};
}

}  // namespace txfs
