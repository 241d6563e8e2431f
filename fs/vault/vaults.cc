#include "fs/vault/vaults.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <tuple>

#include "fs/base/base_mounts.h"
#include "journal/summary.h"
#include "journal/support/crash_point.h"
#include "journal/support/directory_id.h"
#include "journal/support/file.h"
#include "journal/support/stored.h"

namespace txfs {
namespace {

constexpr const char* kParent = "vault";
/// In the store: key and name of the directory in the workspace's root.
constexpr const char* kPlaceFile = "vault-place";
constexpr size_t kPlaceMax = 1024;
/// In a vault: the mounts on which it has parts, each ended by a zero.
constexpr const char* kPartsFile = "parts";
/// File times do not tell changes apart that are closer together, seconds.
constexpr int64_t kTick = 2;

/// Renames do not cross from one mount to another, though both be of one
/// filesystem.
bool SameMount(int a, int b) {
  struct stat of_a{};
  struct stat of_b{};
  return ::fstat(a, &of_a) == 0 && ::fstat(b, &of_b) == 0 &&
         of_a.st_dev == of_b.st_dev && MountIdOf(a) == MountIdOf(b);
}

/// Opens a directory that nobody else has written to. ENOENT for any other.
Result<UniqueFd> OpenPrivate(int dir, const std::string& name) {
  auto fd = OpenAt(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  struct stat st{};
  if (!fd) {
    const int code = fd.error().code;
    return Fail(code == ENOTDIR || code == ELOOP ? ENOENT : code, name);
  }
  if (::fstat(fd->get(), &st) != 0) return Fail(errno, name);
  if (st.st_uid != ::geteuid() || (st.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Fail(ENOENT, name + " of this user");
  }
  return fd;
}

/// Runs `work`, which returns whether it changed names in `directory`, without
/// a trace in its times.
template <class Work>
Status Unseen(int directory, Work work) {
  struct stat st{};
  if (::fstat(directory, &st) != 0) return Fail(errno, "stat a directory");
  if (!TRY(work())) return {};
  const timespec times[2] = {st.st_atim, st.st_mtim};
  // Not ours to change when somebody else owns it.
  std::ignore = ::futimens(directory, times);
  return {};
}

Status RemoveAllBut(std::string_view kept, int directory) {
  for (const std::string& name : TRY(ListNames(directory, "."))) {
    if (name != kept) TRY(RemoveTree(directory, name));
  }
  return {};
}

std::string PartPath(const std::string& id, const std::string& mount) {
  return JoinPath(JoinPath(mount, kMountVaults), id);
}

}  // namespace

bool IsOld(const VaultStamp& stamp) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return std::ranges::all_of(stamp, [&](const Timestamp& time) {
    return time.sec + kTick < now.tv_sec;
  });
}

std::string SlotName(VaultSlot slot, uint64_t number) {
  return static_cast<char>(slot) + std::to_string(number);
}

bool IsSlotName(std::string_view name) {
  constexpr std::string_view kSlots = "ndmhpo";
  constexpr size_t kDigitsMax = 20;
  return name.size() > 1 && name.size() <= 1 + kDigitsMax &&
         kSlots.find(name.front()) != std::string_view::npos &&
         name.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

bool IsSlot(VaultSlot slot, std::string_view name) {
  return name.starts_with(static_cast<char>(slot));
}

std::string MovingSlotOf(std::string_view staged) {
  std::string name(staged);
  name.front() = static_cast<char>(VaultSlot::kMoving);
  return name;
}

namespace {

constexpr std::string_view kBeside = "-";

/// The slot's name in a BesideName; empty if `spot` has none.
std::string_view SlotBeside(const Spot& spot) {
  std::string_view name = BaseName(spot.path);
  if (spot.vault || !name.starts_with(kMountVaults)) return {};
  name.remove_prefix(std::string_view(kMountVaults).size());
  if (!name.starts_with(kBeside)) return {};
  name.remove_prefix(kBeside.size());
  return IsSlotName(name) ? name : std::string_view();
}

}  // namespace

std::string BesideName(VaultSlot slot, uint64_t ino) {
  return kMountVaults + std::string(kBeside) + SlotName(slot, ino);
}

bool IsBeside(const Spot& spot) { return !SlotBeside(spot).empty(); }

bool IsBeside(VaultSlot slot, const Spot& spot) {
  return IsBeside(spot) && IsSlot(slot, SlotBeside(spot));
}

Status MakeUnseen(int directory, const char* name) {
  return Unseen(directory, [&]() -> Result<bool> {
    CrashPoint();
    if (::mkdirat(directory, name, 0700) == 0) return true;
    if (errno == EEXIST) return false;
    return Fail(errno, std::string("mkdir ") + name);
  });
}

Result<int> DirectoryOf(const Vault& vault, const Spot& spot) {
  const auto found = vault.find(spot.mount);
  if (found != vault.end()) return found->second.get();
  return Fail(EBADMSG, "the vault has no part on " + spot.mount);
}

Vaults::Vaults(const BaseDirectory& base, int store)
    : base_(base), store_(store), in_store_(SameMount(base.root(), store)) {}

Result<UniqueFd> Vaults::OpenParent(bool make) const {
  if (in_store_) {
    if (make) TRY(MakeDirectoryAt(store_, kParent, 0700));
    return OpenDirectoryBelow(store_, kParent);
  }
  auto place = OpenPlace();
  if (place || !make || place.error().code != ENOENT) return place;
  return MakePlace();
}

Result<UniqueFd> Vaults::OpenPlace() const {
  const auto text = ReadWholeFile(store_, kPlaceFile, kPlaceMax);
  if (!text) return std::unexpected(text.error());
  const size_t space = text->find(' ');
  const std::string key = text->substr(0, space);
  const std::string name =
      space == std::string::npos ? "" : text->substr(space + 1);
  // A name as MakePlace gives it; whatever else stands there is not ours.
  if (!name.starts_with(kMountVaults) || name.contains('/')) {
    return Fail(EBADMSG, PathOfFd(store_) + "/" + kPlaceFile + " is damaged",
                "`txfs fsck` lists all damage");
  }
  auto place = OpenPrivate(base_.root(), name);
  if (!place) return place;
  if (TRY(IdentifyDirectory(place->get())).Key() == key) return place;
  return Fail(ENOENT, "the vaults of the store");
}

// The name of its own is taken where the workspace came with it.
Result<UniqueFd> Vaults::MakePlace() const {
  std::string name = kMountVaults;
  for (int i = 1; TRY(Exists(base_.root(), name)); ++i) {
    name = kMountVaults + ("-" + std::to_string(i));
  }
  TRY(MakeUnseen(base_.root(), name.c_str()));
  UniqueFd place = TRY(OpenPrivate(base_.root(), name));
  const DirectoryId id = TRY(IdentifyDirectory(place.get(), /*settle=*/true));
  TRY(ReplaceFile(store_, kPlaceFile, id.Key() + " " + name));
  TRY(SyncDirectory(base_.root(), "."));
  return place;
}

Result<Vault> Vaults::Make(const std::string& id) const {
  TRY(Remove(id));
  const UniqueFd parent = TRY(OpenParent(true));
  TRY(MakeDirectoryAt(parent.get(), id, 0700));
  // The intent will name what is in it.
  TRY(SyncDirectory(parent.get(), "."));
  Vault vault;
  vault[""] = TRY(OpenDirectoryBelow(parent.get(), id));
  if (!SameMount(base_.root(), vault[""].get())) {
    return Fail(ErrorKind::kFailed, EXDEV,
                PathOfFd(parent.get()) +
                    " is on another filesystem than the workspace: a commit "
                    "cannot move files there",
                "unmount the filesystem there; `txfs mount --store DIR` puts "
                "the store elsewhere");
  }
  return vault;
}

/// The list comes first, so that nothing is forgotten on another filesystem.
Status Vaults::AddParts(const std::string& id,
                        const std::set<std::string>& mounts,
                        Vault& vault) const {
  if (mounts.empty()) return {};
  std::string list;
  for (const std::string& mount : mounts) list.append(mount).append(1, '\0');
  TRY(ReplaceFile(vault[""].get(), kPartsFile, list));
  for (const std::string& mount : mounts) {
    auto made = MakePart(id, mount);
    if (made) {
      vault[mount] = TRY(OpenPart(id, mount));
      continue;
    }
    if (const auto other = FindTxfsMountAt(mount)) {
      return Fail(0,
                  "cannot commit changes below " + mount +
                      ": that is a txfs mount itself, of " + other->source,
                  "`txfs discard " + mount +
                      "` drops the changes there, or commit the other paths: "
                      "`txfs commit PATH...`; change that workspace in its own "
                      "mount");
    }
    made.error().message =
        "cannot stage a commit on the filesystem mounted "
        "at " +
        mount + ": " + made.error().message;
    made.error().hint =
        "commit the other paths: `txfs commit PATH...`, or let the user of the "
        "workspace write to the directory where it is mounted";
    return made;
  }
  return {};
}

std::optional<MountEntry> Vaults::FindTxfsMountAt(
    const std::string& mount) const {
  const auto root = base_.OpenDirectory(mount);
  const auto table = ReadMountTable();
  if (!root || !table) return std::nullopt;
  const MountEntry* entry = MountOf((*root)->get(), *table);
  if (entry == nullptr || !entry->is_txfs()) return std::nullopt;
  return *entry;
}

Status Vaults::MakePart(const std::string& id, const std::string& mount) const {
  const SharedFd root = TRY(base_.OpenDirectory(mount));
  TRY(MakeUnseen(root->get(), kMountVaults));
  auto opened = OpenPrivate(root->get(), kMountVaults);
  if (!opened) {
    return Fail(0,
                JoinPath(mount, kMountVaults) +
                    " is not a private directory of this user",
                "move it elsewhere");
  }
  const UniqueFd parts = *std::move(opened);
  // Never one that is there: another workspace may have the filesystem, too.
  if (::mkdirat(parts.get(), id.c_str(), 0700) != 0) {
    return Fail(errno, "mkdir " + PartPath(id, mount));
  }
  TRY(SyncDirectory(parts.get(), "."));
  return SyncDirectory(root->get(), ".");
}

Result<UniqueFd> Vaults::OpenPart(const std::string& id,
                                  const std::string& mount) const {
  const auto directory = base_.OpenDirectory(PartPath(id, mount));
  if (directory) {
    return OpenAt((*directory)->get(), ".", O_RDONLY | O_DIRECTORY);
  }
  return Fail(
      ENODEV,
      "the filesystem at " + mount + " in the workspace is no longer mounted",
      "mount it again, where a txfs mount covers the workspace after `txfs "
      "umount`");
}

Result<Vault> Vaults::Open(const std::string& id) const {
  const UniqueFd parent = TRY(OpenParent(false));
  Vault vault;
  vault[""] = TRY(OpenDirectoryBelow(parent.get(), id));
  // It may be another one that is mounted there by now.
  base_.DropCache();
  for (const std::string& mount : TRY(PartsOf(vault[""].get()))) {
    vault[mount] = TRY(OpenPart(id, mount));
  }
  return vault;
}

Result<std::vector<std::string>> DecodeParts(std::string_view list) {
  std::vector<std::string> mounts;
  while (!list.empty()) {
    const size_t end = list.find('\0');
    const std::string_view mount = list.substr(0, end);
    if (end == std::string_view::npos || mount.empty() || !IsPathBelow(mount)) {
      return Fail(EBADMSG, "damaged list of parts");
    }
    mounts.emplace_back(mount);
    list.remove_prefix(end + 1);
  }
  return mounts;
}

Result<std::vector<std::string>> Vaults::PartsOf(int vault) {
  const auto list = ReadWholeFile(vault, kPartsFile);
  if (!list && list.error().code == ENOENT) return std::vector<std::string>();
  if (!list) return std::unexpected(list.error());
  auto mounts = DecodeParts(*list);
  if (mounts) return mounts;
  return Fail(mounts.error().code,
              PathOfFd(vault) + "/" + kPartsFile + " is damaged",
              "`txfs fsck` lists all damage");
}

Result<std::vector<std::string>> Vaults::Ids() const {
  const auto parent = OpenParent(false);
  if (!parent && parent.error().code == ENOENT) {
    return std::vector<std::string>();
  }
  if (!parent) return std::unexpected(parent.error());
  std::vector<std::string> ids = TRY(ListNames(parent->get(), "."));
  std::erase_if(ids, [](const auto& id) { return !IsTransactionId(id); });
  return ids;
}

Result<uint64_t> Vaults::Bytes(const std::string& id) const {
  const auto parent = OpenParent(false);
  if (!parent) return uint64_t{0};
  uint64_t bytes = TRY(BytesOnDisk(parent->get(), id));
  const auto vault = OpenDirectoryBelow(parent->get(), id);
  if (!vault) return bytes;
  for (const std::string& mount : TRY(PartsOf(vault->get()))) {
    const auto part = OpenPart(id, mount);
    if (part) bytes += TRY(BytesOnDisk(part->get(), "."));
  }
  return bytes;
}

Status Vaults::Remove(const std::string& id) const {
  const auto parent = OpenParent(false);
  if (!parent && parent.error().code == ENOENT) return {};
  if (!parent) return std::unexpected(parent.error());
  const auto vault = OpenDirectoryBelow(parent->get(), id);
  if (vault) {
    bool all = true;
    for (const std::string& mount : TRY(PartsOf(vault->get()))) {
      all = TRY(RemovePart(id, mount)) && all;
    }
    if (!all) return RemoveAllBut(kPartsFile, vault->get());
  }
  TRY(RemoveTree(parent->get(), id));
  if (in_store_) return {};
  // The last one leaves nothing in the workspace.
  return RemovePlaceIfEmpty();
}

Status Vaults::RemoveBeside(const std::string& path, uint64_t ino) const {
  const auto st = base_.StatReserved(path);
  if (!st || st->st_ino != ino || !S_ISDIR(st->st_mode)) return {};
  const SharedFd parent =
      TRY(base_.OpenDirectory(std::string(ParentPath(path))));
  const std::string name(BaseName(path));
  return Unseen(parent->get(), [&]() -> Result<bool> {
    CrashPoint();
    return ::unlinkat(parent->get(), name.c_str(), AT_REMOVEDIR) == 0;
  });
}

Status Vaults::RemovePlaceIfEmpty() const {
  const auto text = ReadWholeFile(store_, kPlaceFile, kPlaceMax);
  if (!text || !OpenPlace()) return {};
  const std::string name = text->substr(text->find(' ') + 1);
  return Unseen(base_.root(), [&]() -> Result<bool> {
    return ::unlinkat(base_.root(), name.c_str(), AT_REMOVEDIR) == 0;
  });
}

/// False while the filesystem is not mounted.
Result<bool> Vaults::RemovePart(const std::string& id,
                                const std::string& mount) const {
  if (TRY(BaseMounts::Read(base_)).Of(mount) != mount) return false;
  base_.DropCache();
  const SharedFd root = TRY(base_.OpenDirectory(mount));
  TRY(RemoveTree(root->get(), JoinPath(kMountVaults, id)));
  const auto remove = [&]() -> Result<bool> {
    return ::unlinkat(root->get(), kMountVaults, AT_REMOVEDIR) == 0;
  };
  TRY(Unseen(root->get(), remove));
  return true;
}

std::string Vaults::PathOf(const std::string& id, const Spot& spot) {
  if (spot.mount.empty()) return JoinPath(id, spot.path);
  return "/" + JoinPath(PartPath(id, spot.mount), spot.path);
}

Result<SharedFd> Vaults::OpenFile(const std::string& path) const {
  if (path.starts_with('/')) return base_.OpenFile(path.substr(1));
  UniqueFd parent = TRY(OpenParent(false));
  const BaseDirectory vaults(std::move(parent));
  return vaults.OpenFile(path);
}

void Vaults::ForEachDirectory(
    const std::string& id,
    const std::function<void(const BaseDirectory&, const std::string&,
                             const char*)>& visit) const {
  auto parent = OpenParent(false);
  if (!parent) return;
  const auto vault = OpenDirectoryBelow(parent->get(), id);
  if (!vault) return;
  visit(BaseDirectory(std::move(*parent)), id, "");
  const auto mounts = PartsOf(vault->get());
  if (!mounts) return;
  for (const std::string& mount : *mounts) {
    visit(base_, PartPath(id, mount), "/");
  }
}

VaultStamp Vaults::StampOf(const std::string& id) const {
  VaultStamp stamp;
  bool complete = true;
  ForEachDirectory(
      id, [&](const BaseDirectory& in, const std::string& path, const char*) {
        const auto st = in.Stat(path);
        if (st) stamp.push_back(Timestamp::From(st->st_ctim));
        complete = complete && st;
      });
  if (!complete) stamp.clear();
  return stamp;
}

void Vaults::ForEachFile(
    const std::string& id,
    const std::function<void(std::string, uint64_t)>& visit) const {
  ForEachDirectory(id, [&](const BaseDirectory& in, const std::string& path,
                           const char* prefix) {
    std::vector<std::string> directories = {path};
    while (!directories.empty()) {
      const std::string directory = std::move(directories.back());
      directories.pop_back();
      const auto entries = in.List(directory);
      if (!entries) continue;
      for (const BaseEntry& entry : *entries) {
        std::string below = JoinPath(directory, entry.name);
        if (entry.type == FileType::kDirectory) {
          directories.push_back(std::move(below));
        } else if (entry.type == FileType::kRegular) {
          visit(prefix + below, entry.ino);
        }
      }
    }
  });
}

Result<size_t> Vaults::Read(const std::string& path, uint64_t offset,
                            MutableByteSpan out) const {
  const SharedFd file = TRY(OpenFile(path));
  return ReadFully(file->get(), offset, out);
}

}  // namespace txfs
