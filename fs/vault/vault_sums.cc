#include "fs/vault/vault_sums.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "fs/base/base_directory.h"
#include "journal/frame.h"
#include "journal/summary.h"
#include "journal/support/checksum.h"
#include "journal/support/file.h"
#include "journal/support/pieces.h"
#include "journal/support/stored.h"

namespace txfs {
namespace {

constexpr FileFrame kSumsFrame = {
    .magic = "TXFSSUM\n", .version = 1, .what = "content sums"};

/// The largest that is read, bytes.
constexpr size_t kSumsMax = size_t{1} << 30;

/// Data of an open file: the first run of it in `range`, empty when all of that
/// is a hole.
Range NextData(int file, Range range) {
  const off_t from = ::lseek(file, static_cast<off_t>(range.from), SEEK_DATA);
  if (from < 0 && errno == ENXIO) return {range.to, range.to};
  if (from < 0) return range;  // this filesystem does not know
  const off_t to = ::lseek(file, from, SEEK_HOLE);
  const uint64_t end = to < 0 ? range.to : static_cast<uint64_t>(to);
  return {std::min(static_cast<uint64_t>(from), range.to),
          std::min(end, range.to)};
}

Status ForEachData(int file, Range range,
                   const std::function<Status(uint64_t, ByteSpan)>& take) {
  while (range.from < range.to) {
    const Range data = NextData(file, range);
    TRY(ForEachPiece(data.from, data.to, file, take));
    range.from = data.to;
  }
  return {};
}

Result<bool> IsZero(int file, Range range) {
  bool is_zero = true;
  TRY(ForEachData(file, range, [&](uint64_t, ByteSpan piece) {
    is_zero = is_zero && std::ranges::all_of(piece, [](std::byte b) {
                return b == std::byte{};
              });
    return Status();
  }));
  return is_zero;
}

/// A vault's directories, to find files by what a sum says.
class SummedFiles {
 public:
  explicit SummedFiles(const Vault& vault) : vault_(vault) {}

  /// None where there is no regular file.
  Result<std::optional<struct stat>> Stat(const std::string& mount,
                                          const std::string& path) {
    const auto st = TRY(RootOf(mount))->Stat(path);
    if (!st || !S_ISREG(st->st_mode)) return std::nullopt;
    return *st;
  }

  /// Null when it is closed to us.
  Result<SharedFd> Open(const std::string& mount, const std::string& path) {
    auto file = TRY(RootOf(mount))->OpenFile(path);
    if (!file && (file.error().code == EACCES || file.error().code == EPERM)) {
      return SharedFd();
    }
    if (!file) return file;
    // To look at a file is not to use it. Only its owner may say so.
    std::ignore = ::fcntl((*file)->get(), F_SETFL, O_NOATIME);
    return file;
  }

 private:
  Result<const BaseDirectory*> RootOf(const std::string& mount) {
    const auto known = roots_.find(mount);
    if (known != roots_.end()) return &known->second;
    const int root = TRY(DirectoryOf(vault_, Spot::Vault("", mount)));
    UniqueFd own = TRY(OpenAt(root, ".", O_RDONLY | O_DIRECTORY));
    return &roots_.try_emplace(mount, std::move(own)).first->second;
  }

  const Vault& vault_;
  std::map<std::string, BaseDirectory> roots_;
};

Result<struct stat> StatFd(int file) {
  struct stat st{};
  if (::fstat(file, &st) == 0) return st;
  return Fail(errno, "stat a file of a vault");
}

bool IsOf(const VaultEntry& entry, const struct stat& st) {
  return entry.ino == st.st_ino &&
         entry.size == static_cast<uint64_t>(st.st_size) &&
         entry.mtime == Timestamp::From(st.st_mtim) &&
         // Of a manifest of version 1 it is not known.
         (entry.ctime == Timestamp() ||
          entry.ctime == Timestamp::From(st.st_ctim));
}

/// The sum of what is at `entry` as it was when the manifest was made. None
/// when it is not that any more.
Result<std::optional<ContentSum>> SumOf(SummedFiles& files,
                                        const VaultEntry& entry,
                                        const std::function<bool()>& stop) {
  const auto st = TRY(files.Stat(entry.mount, entry.path));
  if (!st || !IsOf(entry, *st)) return std::nullopt;
  ContentSum sum{.whole = false};
  if (const SharedFd file = TRY(files.Open(entry.mount, entry.path))) {
    sum = TRY(SumContent(file->get(), entry.size, stop));
    if (!IsOf(entry, TRY(StatFd(file->get())))) return std::nullopt;
    // Nobody is likely to read it soon.
    ::posix_fadvise(file->get(), 0, 0, POSIX_FADV_DONTNEED);
  }
  sum.mount = entry.mount;
  sum.path = entry.path;
  sum.ino = entry.ino;
  sum.size = entry.size;
  sum.mtime = entry.mtime;
  return sum;
}

/// What a sum and an entry of a manifest have in common when they are of one
/// file in one state.
auto KeyOf(const auto& of) {
  return std::tuple(std::string_view(of.mount), std::string_view(of.path),
                    of.ino, of.size, of.mtime.sec, of.mtime.nsec);
}

ContentSum DecodeSum(Decoder& in) {
  ContentSum sum;
  sum.mount = in.GetString();
  sum.path = in.GetString();
  sum.ino = in.Get<uint64_t>();
  sum.size = in.Get<uint64_t>();
  sum.mtime = DecodeTime(in);
  sum.whole = in.GetBool();
  if (!IsPathBelow(sum.mount) || sum.path.empty() || !IsPathBelow(sum.path)) {
    in.SetBad();
  }
  const auto count = in.Get<uint32_t>();
  uint64_t at = 0;
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    SumPiece& piece = sum.pieces.emplace_back();
    piece.offset = in.Get<uint64_t>();
    piece.length = in.Get<uint64_t>();
    piece.checksum = in.Get<uint64_t>();
    const bool fits = piece.offset >= at && piece.offset <= sum.size &&
                      piece.length <= sum.size - piece.offset &&
                      piece.length <= kMaxSumPiece;
    if (!fits) in.SetBad();
    at = piece.offset + piece.length;
  }
  return sum;
}

}  // namespace

Result<ContentSum> SumContent(int file, uint64_t size,
                              const std::function<bool()>& stop) {
  ContentSum sum{.size = size};
  TRY(ForEachData(file, {0, size}, [&](uint64_t offset, ByteSpan piece) {
    if (stop()) return Status(Fail(ECANCELED, "sum a file"));
    sum.pieces.push_back({offset, piece.size(), Checksum(piece)});
    return Status();
  }));
  return sum;
}

Result<bool> HasContent(int file, const ContentSum& sum) {
  if (static_cast<uint64_t>(TRY(StatFd(file)).st_size) != sum.size) {
    return false;
  }
  uint64_t at = 0;
  Bytes bytes;
  for (const SumPiece& piece : sum.pieces) {
    if (sum.whole && !TRY(IsZero(file, {at, piece.offset}))) return false;
    bytes.resize(piece.length);
    const size_t n = TRY(ReadFully(file, piece.offset, bytes));
    if (n != piece.length || Checksum(bytes) != piece.checksum) return false;
    at = piece.offset + piece.length;
  }
  if (!sum.whole) return true;
  return IsZero(file, {at, sum.size});
}

Result<VaultSums> ReadSums(const Vault& vault) {
  const auto text = ReadWholeFile(vault.at("").get(), kSumsFile, kSumsMax);
  if (!text && text.error().code == ENOENT) return VaultSums();
  if (!text) return std::unexpected(text.error());
  return DecodeSums(AsBytes(*text));
}

bool HasCompleteSums(const Vault& vault, const std::string& id) {
  const auto file = OpenFileBelow(vault.at("").get(), kSumsFile, O_RDONLY);
  if (!file) return false;
  Bytes head(kSumsFrame.magic.size() + 2 * sizeof(uint32_t) + id.size());
  const auto n = ReadFully(file->get(), 0, head);
  if (!n || *n != head.size()) return false;
  Decoder in(head);
  in.GetRaw(kSumsFrame.magic.size());
  return in.Get<uint32_t>() == kSumsFrame.version && in.GetString() == id;
}

Status MakeSums(const Vault& vault, const VaultSums& sums) {
  const UniqueFd file = TRY(OpenFileBelow(vault.at("").get(), kSumsFile,
                                          O_WRONLY | O_CREAT | O_EXCL, 0600));
  return WriteFully(file.get(), 0, EncodeSums(sums));
}

Status ReplaceSums(const Vault& vault, const VaultSums& sums) {
  return ReplaceFile(vault.at("").get(), kSumsFile, AsText(EncodeSums(sums)));
}

Result<std::vector<OtherContent>> FindOtherContent(
    const Vault& vault, const std::vector<ContentSum>& sums, bool is_copy,
    uint64_t* checked) {
  SummedFiles files(vault);
  std::vector<OtherContent> others;
  for (const ContentSum& sum : sums) {
    const auto st = TRY(files.Stat(sum.mount, sum.path));
    if (!st || (!is_copy && st->st_ino != sum.ino)) continue;
    const auto file = files.Open(sum.mount, sum.path);
    if (file && *file == nullptr) continue;
    if (checked != nullptr) *checked += sum.size;
    const auto has = file ? HasContent((*file)->get(), sum)
                          : Result<bool>(std::unexpected(file.error()));
    if (has && *has) continue;
    others.push_back({sum.mount, sum.path,
                      has ? "has different content" : has.error().ToString()});
  }
  return others;
}

SumsByFile MatchSums(const VaultManifest& manifest, const VaultSums& sums) {
  std::map<decltype(KeyOf(ContentSum())), const ContentSum*> known;
  for (const ContentSum& sum : sums.sums) known.emplace(KeyOf(sum), &sum);
  SumsByFile matched;
  for (const VaultEntry& entry : manifest) {
    if (!S_ISREG(entry.mode) || entry.shared) continue;
    const auto sum = known.find(KeyOf(entry));
    if (sum == known.end()) {
      matched.missing.push_back(&entry);
    } else {
      matched.found.push_back(*sum->second);
    }
  }
  return matched;
}

NewSums SumFiles(const Vault& vault,
                 const std::vector<const VaultEntry*>& files,
                 const std::function<bool()>& stop) {
  SummedFiles summed(vault);
  NewSums made;
  for (const VaultEntry* entry : files) {
    auto sum = SumOf(summed, *entry, stop);
    if (sum && *sum) {
      made.sums.push_back(std::move(**sum));
    } else {
      made.complete = false;
    }
    if (!stop()) continue;
    made.complete = made.complete && entry == files.back();
    break;
  }
  return made;
}

void AddSums(VaultSums& sums, std::vector<ContentSum> more) {
  std::set<decltype(KeyOf(ContentSum()))> known;
  for (const ContentSum& sum : sums.sums) known.insert(KeyOf(sum));
  std::erase_if(
      more, [&](const ContentSum& sum) { return known.contains(KeyOf(sum)); });
  std::ranges::move(more, std::back_inserter(sums.sums));
}

Bytes EncodeSums(const VaultSums& sums) {
  Bytes bytes;
  Encoder out(bytes);
  out.PutString(sums.complete_for);
  out.Put(static_cast<uint32_t>(sums.sums.size()));
  for (const ContentSum& sum : sums.sums) {
    out.PutString(sum.mount);
    out.PutString(sum.path);
    out.Put(sum.ino);
    out.Put(sum.size);
    EncodeTime(sum.mtime, out);
    out.Put(static_cast<uint8_t>(sum.whole));
    out.Put(static_cast<uint32_t>(sum.pieces.size()));
    for (const SumPiece& piece : sum.pieces) {
      out.Put(piece.offset);
      out.Put(piece.length);
      out.Put(piece.checksum);
    }
  }
  return PutInFrame(kSumsFrame, bytes);
}

Result<VaultSums> DecodeSums(ByteSpan in) {
  Decoder decoder(TRY(TakeFromFrame(kSumsFrame, in)));
  VaultSums sums;
  sums.complete_for = decoder.GetString();
  if (!sums.complete_for.empty() && !IsTransactionId(sums.complete_for)) {
    decoder.SetBad();
  }
  const auto count = decoder.Get<uint32_t>();
  for (uint32_t i = 0; i < count && decoder.ok(); ++i) {
    sums.sums.push_back(DecodeSum(decoder));
  }
  if (!decoder.ok() || decoder.remaining() != 0) return Damaged(kSumsFrame);
  return sums;
}

}  // namespace txfs
