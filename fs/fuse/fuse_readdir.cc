#include "fs/fuse/fuse_readdir.h"

#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "fs/fuse/fuse_ops.h"
#include "fs/fuse/fuse_reply.h"

namespace txfs {
namespace {

struct stat StatOf(const DirEntry& entry) {
  struct stat st{};
  st.st_ino = entry.st_ino;
  st.st_mode = ModeBits(entry.type);
  return st;
}

bool IsDot(const std::string& name) { return name == "." || name == ".."; }

/// Entries in the kernel's format, and the lookups that go to it with them.
class EntryBuffer {
 public:
  EntryBuffer(fuse_req_t req, size_t size) : req_(req), bytes_(size, '\0') {}

  bool Add(const DirEntry& entry) {
    const struct stat st = StatOf(entry);
    const size_t room = bytes_.size() - used_;
    const size_t need =
        fuse_add_direntry(req_, bytes_.data() + used_, room, entry.name.c_str(),
                          &st, static_cast<off_t>(entry.cookie));
    if (need > room) return false;
    used_ += need;
    return true;
  }

  /// Whether `taken` bytes leave room for `entry` with attributes.
  bool Reserve(const DirEntry& entry, size_t& taken) const {
    const size_t need = fuse_add_direntry_plus(req_, nullptr, 0,
                                               entry.name.c_str(), nullptr, 0);
    if (need > bytes_.size() - taken) return false;
    taken += need;
    return true;
  }

  /// For entries that were reserved.
  void AddPlus(const DirEntry& entry, const fuse_entry_param& param) {
    used_ += fuse_add_direntry_plus(req_, bytes_.data() + used_,
                                    bytes_.size() - used_, entry.name.c_str(),
                                    &param, static_cast<off_t>(entry.cookie));
    if (param.ino != 0) lookups_.push_back(Ino{param.ino});
  }

  [[nodiscard]] bool empty() const { return used_ == 0; }
  void ReserveLookups(size_t count) { lookups_.reserve(count); }

  void Send(Filesystem& fs) const noexcept {
    if (fuse_reply_buf(req_, bytes_.data(), used_) != 0) GiveBack(fs);
  }
  void GiveBack(Filesystem& fs) const noexcept {
    for (const Ino ino : lookups_) fs.Forget(ino, 1);
  }

 private:
  fuse_req_t req_;
  std::string bytes_;
  size_t used_ = 0;
  std::vector<Ino> lookups_;
};

/// As many entries as fit with attributes. They are looked up afterwards: the
/// visitor may run under the directory's lock.
Result<std::vector<DirEntry>> Collect(Filesystem& fs, Ino ino, uint64_t cookie,
                                      const EntryBuffer& buffer) {
  std::vector<DirEntry> entries;
  size_t taken = 0;
  TRY(fs.ReadDirectory(ino, cookie, [&](const DirEntry& entry) {
    if (!buffer.Reserve(entry, taken)) return false;
    entries.push_back(entry);
    return true;
  }));
  return entries;
}

/// An entry without an inode: the kernel caches nothing about it.
fuse_entry_param BareEntry(const DirEntry& entry) {
  fuse_entry_param param{};
  param.attr = StatOf(entry);
  return param;
}

/// Which entries go with attributes.
enum class Wanted : bool { kDirectories, kAll };

/// "." and ".." have no attributes.
bool IsWanted(const DirEntry& entry, Wanted wanted) {
  return !IsDot(entry.name) &&
         (wanted == Wanted::kAll || entry.type == FileType::kDirectory);
}

void AddEntries(Filesystem& fs, Ino parent,
                const std::vector<DirEntry>& entries, Wanted wanted,
                EntryBuffer& buffer) {
  std::vector<std::string_view> names;
  names.reserve(entries.size());
  for (const DirEntry& entry : entries) {
    if (IsWanted(entry, wanted)) names.emplace_back(entry.name);
  }
  // From here on nothing allocates while lookups are in the air.
  buffer.ReserveLookups(names.size());
  const auto nodes =
      names.empty() ? std::vector<Result<Node>>() : fs.LookupAll(parent, names);
  auto node = nodes.begin();
  for (const DirEntry& entry : entries) {
    if (!IsWanted(entry, wanted)) {
      buffer.AddPlus(entry, BareEntry(entry));
      continue;
    }
    if (*node) {
      buffer.AddPlus(entry, EntryOf(**node));
    } else if (node->error().code != ENOENT) {
      // Gone since it was listed: left out. Any other error shows at its use.
      buffer.AddPlus(entry, BareEntry(entry));
    }
    ++node;
  }
}

/// What a reply had.
struct Filled {
  size_t entries = 0;
  uint64_t cookie = 0;  ///< of the last one
  Wanted wanted = Wanted::kAll;
};

/// Fills `buffer`; leaves it empty only at the end of the directory.
Result<Filled> Fill(FuseContext& context, Ino ino, uint64_t cookie,
                    EntryBuffer& buffer) {
  Filled filled;
  Filesystem& fs = context.fs;
  while (buffer.empty()) {
    const auto entries = TRY(Collect(fs, ino, cookie, buffer));
    if (entries.empty()) break;
    const bool all =
        context.scans.WantsAttributes(ino, cookie, Clock::System().Steady());
    cookie = entries.back().cookie;
    filled = {.entries = entries.size(),
              .cookie = cookie,
              .wanted = all ? Wanted::kAll : Wanted::kDirectories};
    AddEntries(fs, ino, entries, filled.wanted, buffer);
  }
  return filled;
}

/// Prepares the reply that follows one with `filled`, while the program takes
/// its entries. There is none after a short reply.
void Prepare(FuseContext& context, Ino ino, const Filled& filled) {
  constexpr size_t kLeast = 64;
  if (filled.entries < kLeast || filled.wanted != Wanted::kAll) return;
  if (!context.scans.IsScanned(Clock::System().Steady())) return;
  std::vector<std::string> names;
  const Status listed =
      context.fs.ReadDirectory(ino, filled.cookie, [&](const DirEntry& entry) {
        names.push_back(entry.name);
        return names.size() < filled.entries;
      });
  if (!listed || names.empty()) return;
  const std::vector<std::string_view> views(names.begin(), names.end());
  context.fs.ExpectLookups(ino, views);
}

}  // namespace

void ReplyEntries(fuse_req_t req, Filesystem& fs, Ino ino, uint64_t cookie,
                  size_t size) noexcept {
  auto read = Guard([&]() -> Result<EntryBuffer> {
    EntryBuffer buffer(req, size);
    TRY(fs.ReadDirectory(
        ino, cookie, [&](const DirEntry& entry) { return buffer.Add(entry); }));
    return buffer;
  });
  if (!read) return ReplyStatus(req, std::unexpected(read.error()));
  read->Send(fs);
}

void ReplyEntriesPlus(fuse_req_t req, FuseContext& context, Ino ino,
                      uint64_t cookie, size_t size) noexcept {
  auto made =
      Guard([&]() -> Result<EntryBuffer> { return EntryBuffer(req, size); });
  if (!made) return ReplyStatus(req, std::unexpected(made.error()));
  EntryBuffer& buffer = *made;
  const auto filled = Guard([&] { return Fill(context, ino, cookie, buffer); });
  if (!filled && buffer.empty()) {
    return ReplyStatus(req, std::unexpected(filled.error()));
  }
  buffer.Send(context.fs);
  if (!filled) return;
  static_cast<void>(Guard([&]() -> Status {
    Prepare(context, ino, *filled);
    return {};
  }));
}

}  // namespace txfs
