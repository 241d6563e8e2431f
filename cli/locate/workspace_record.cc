#include "cli/locate/workspace_record.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/locate/trust.h"
#include "cli/locate/way.h"
#include "cli/output/json.h"
#include "cli/output/text.h"
#include "cli/protocol/runtime_dir.h"
#include "fs/base/base_directory.h"
#include "fs/host/mount_table.h"
#include "journal/file_lock.h"
#include "journal/store.h"
#include "journal/support/file.h"
#include "journal/support/io.h"

namespace txfs::cli {
namespace {

constexpr const char* kWorkspaces = "workspaces";
constexpr const char* kRecordFile = "record.json";
constexpr const char* kOwnStore = "store";
constexpr size_t kRecordMax = 64 << 10;
constexpr int kLockMs = 10'000;

std::string RecordPath(const std::string& key) {
  return std::string(kWorkspaces) + "/" + key + "/" + kRecordFile;
}

std::string OwnStorePath(const std::string& key) {
  return StateDirectory() + "/" + kWorkspaces + "/" + key + "/" + kOwnStore;
}

Json IdToJson(const DirectoryId& id) {
  return {{"handle", EncodeBase64(id.handle)},
          {"birth_s", id.birth.sec},
          {"birth_ns", id.birth.nsec},
          {"fs_type", id.fs_type},
          {"fs_uuid", EncodeBase64(id.fs_uuid)}};
}

DirectoryId IdFromJson(const Json& json) {
  return {.handle = DecodeBase64(GetBytes(json, "handle")),
          .birth = {GetInt(json, "birth_s"),
                    static_cast<uint32_t>(GetUint(json, "birth_ns"))},
          .fs_type = GetUint(json, "fs_type"),
          .fs_uuid = DecodeBase64(GetBytes(json, "fs_uuid"))};
}

Status WriteRecord(int state, const WorkspaceRecord& record) {
  Json json = {{"version", 1},
               {"workspace", EncodeBytes(record.path)},
               {"id", IdToJson(record.id)}};
  if (record.store_id) {
    json["store"] = EncodeBytes(record.store);
    json["store_id"] = IdToJson(*record.store_id);
  }
  return ReplaceFile(state, RecordPath(record.id.Key()), Dump(json) + "\n");
}

/// ENOENT; EBADMSG, with the path, for what makes no sense.
Result<WorkspaceRecord> ReadRecord(int state, const std::string& key) {
  const std::string text =
      TRY(ReadWholeFile(state, RecordPath(key), kRecordMax));
  const Json json = ParseStrictly(text);
  WorkspaceRecord record{.id = IdFromJson(GetMember(json, "id")),
                         .path = GetBytes(json, "workspace"),
                         .store = OwnStorePath(key),
                         .store_id = {}};
  if (json.is_object() && json.contains("store")) {
    record.store = GetBytes(json, "store");
    record.store_id = IdFromJson(GetMember(json, "store_id"));
  }
  if (record.id.Key() == key && record.path.starts_with('/') &&
      record.store.starts_with('/')) {
    return record;
  }
  const std::string path = StateDirectory() + "/" + RecordPath(key);
  return Fail(EBADMSG, "the record " + path + " is damaged",
              "move " + path.substr(0, path.rfind('/')) +
                  " elsewhere to begin a new one; `txfs adopt --from` with the "
                  "directory `store` in it takes over the open transactions");
}

/// Whether `path` leads to a directory of this identity that is another one:
/// the original of a cloned filesystem.
bool IsElsewhere(const WorkspaceRecord& record, int fd) {
  struct stat there{};
  struct stat here{};
  const auto opened =
      OpenAt(AT_FDCWD, record.path, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (!opened || ::fstat(opened->get(), &there) != 0 ||
      ::fstat(fd, &here) != 0) {
    return false;
  }
  if (there.st_dev == here.st_dev) return false;
  const auto id = IdentifyDirectory(opened->get());
  return id && id->IsSame(record.id);
}

/// Also where the workspace is mounted over.
bool IsAt(const std::string& path, int fd) {
  const auto over = FindTxfsMount(path);
  if (over && over->mountpoint == path) return true;
  struct stat there{};
  struct stat here{};
  return ::stat(path.c_str(), &there) == 0 && ::fstat(fd, &here) == 0 &&
         there.st_dev == here.st_dev && there.st_ino == here.st_ino;
}

/// What is behind a mount, or cannot be looked at, is not gone.
bool IsGone(const WorkspaceRecord& record) {
  const auto over = FindTxfsMount(record.path);
  if ((over && over->mountpoint == record.path) ||
      !CheckWay("/", record.path)) {
    return false;
  }
  const auto there =
      OpenAt(AT_FDCWD, record.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!there) {
    const int code = there.error().code;
    return code == ENOENT || code == ENOTDIR || code == ELOOP;
  }
  const auto id = IdentifyDirectory(there->get());
  return id && id->Key() != record.id.Key();
}

/// The store says whose it is, too, for people and for --store.
Status NoteMoved(int state, WorkspaceRecord& record, const std::string& path) {
  record.path = path;
  const auto store = OpenRecordedStore(record);
  if (store && TRY(Exists(store->get(), "workspace"))) {
    TRY(ReplaceFile(store->get(), "workspace", path));
  }
  return WriteRecord(state, record);
}

/// What stands at a `--store` that is to be new: nothing, or an empty
/// directory.
Status CheckIsNew(int dir, const std::string& store) {
  if (!TRY(Exists(dir, "FORMAT"))) return {};
  std::string owner;
  TRY(ForEachRecord([&](const WorkspaceRecord& other) {
    if (other.store == store) owner = other.path;
  }));
  if (!owner.empty()) {
    return Fail(0, "store " + store + " belongs to workspace " + owner,
                "choose another directory with --store DIR");
  }
  return Fail(0,
              "this user did not make the store " + store + " on this machine",
              "`txfs adopt --from " + QuoteShell(store) +
                  "` shows its content and takes it over; or choose another "
                  "directory with --store DIR");
}

Result<DirectoryId> MakeGivenStore(const std::string& store) {
  if (auto made = MakeDirectoryAt(AT_FDCWD, store, S_IRWXU); !made) {
    return Fail(made.error().code, "cannot create store " + store,
                "choose a writable directory with --store DIR");
  }
  const UniqueFd dir = TRY(Store::OpenDirectory(AT_FDCWD, store, store));
  TRY(CheckIsOwn(dir.get(), "store", store));
  TRY(CheckIsNew(dir.get(), store));
  if (::fchmod(dir.get(), S_IRWXU) != 0) {
    return Fail(errno, "cannot make store " + store + " private",
                "choose a writable directory with --store DIR");
  }
  return IdentifyDirectory(dir.get(), /*settle=*/true);
}

Result<WorkspaceRecord> MakeRecordIn(int state, int fd, const std::string& path,
                                     const std::optional<std::string>& store) {
  TRY(MakeDirectoryAt(state, kWorkspaces, S_IRWXU));
  const FileLock lock =
      TRY(FileLock::Take(state, std::string(kWorkspaces) + "/lock", kLockMs));
  WorkspaceRecord record;
  record.path = path;
  record.id = TRY(IdentifyDirectory(fd, /*settle=*/true));
  const std::string key = record.id.Key();
  record.store = store.value_or(OwnStorePath(key));
  if (store) record.store_id = TRY(MakeGivenStore(*store));
  const std::string directory = std::string(kWorkspaces) + "/" + key;
  TRY(MakeDirectoryAt(state, directory, S_IRWXU));
  if (!store) {
    TRY(MakeDirectoryAt(state, directory + "/" + kOwnStore, S_IRWXU));
  }
  TRY(WriteRecord(state, record));
  return record;
}

/// Names what the path of `error` is relative to, and the remedy for a full
/// disk.
std::unexpected<Error> Located(Error error) {
  if (!error.hint.empty() || error.code == 0) {
    return std::unexpected(std::move(error));
  }
  error.message = "state directory " + StateDirectory() + ": " + error.message;
  if (IsFull(error)) {
    error.hint = "make room there, or name another directory in XDG_STATE_HOME";
  }
  return std::unexpected(std::move(error));
}

}  // namespace

Result<std::optional<WorkspaceRecord>> FindRecord(int fd,
                                                  const std::string& path) {
  const std::optional<WorkspaceRecord> none;
  const auto state = OpenStateDirectory(false);
  if (!state && state.error().code == ENOENT) return none;
  if (!state) return std::unexpected(state.error());
  const DirectoryId id = TRY(IdentifyDirectory(fd));
  auto record = ReadRecord(state->get(), id.Key());
  if (!record && record.error().code == ENOENT) return none;
  if (!record) return std::unexpected(record.error());
  if (!record->id.IsSame(id)) return none;
  if (record->path == path || IsAt(record->path, fd)) return record;
  if (IsElsewhere(*record, fd)) return none;
  TRY(NoteMoved(state->get(), *record, path));
  return record;
}

Result<WorkspaceRecord> MakeRecord(int fd, const std::string& path,
                                   const std::optional<std::string>& store) {
  const UniqueFd state = TRY(OpenStateDirectory(true));
  auto record = MakeRecordIn(state.get(), fd, path, store);
  if (!record) return Located(std::move(record).error());
  return record;
}

Result<UniqueFd> OpenRecordedStore(const WorkspaceRecord& record) {
  UniqueFd dir =
      TRY(Store::OpenDirectory(AT_FDCWD, record.store, record.store));
  TRY(CheckIsOwn(dir.get(), "store", record.store));
  struct stat st{};
  if (::fstat(dir.get(), &st) != 0) return Fail(errno, record.store);
  const bool is_it = !record.store_id ||
                     TRY(IdentifyDirectory(dir.get())).IsSame(*record.store_id);
  if (is_it && (st.st_mode & (S_IRWXG | S_IRWXO)) == 0) return dir;
  return Fail(0,
              is_it ? "the store " + record.store + " is open to other users"
                    : "the store at " + record.store + " is not the store of " +
                          record.path,
              is_it ? "chmod 700 " + QuoteShell(record.store)
                    : "restore the original store, or take over this one with "
                      "`txfs adopt --from " +
                          QuoteShell(record.store) + "`");
}

Status ForEachRecord(const std::function<void(const WorkspaceRecord&)>& visit) {
  const auto state = OpenStateDirectory(false);
  if (!state && state.error().code == ENOENT) return {};
  if (!state) return std::unexpected(state.error());
  const auto keys = ListNames(state->get(), kWorkspaces);
  if (!keys && keys.error().code == ENOENT) return {};
  if (!keys) return std::unexpected(keys.error());
  for (const std::string& key : *keys) {
    const auto record = ReadRecord(state->get(), key);
    if (record) visit(*record);
  }
  return {};
}

Result<std::vector<WorkspaceRecord>> GoneWorkspaces() {
  std::vector<WorkspaceRecord> gone;
  TRY(ForEachRecord([&](const WorkspaceRecord& record) {
    if (IsGone(record)) gone.push_back(record);
  }));
  return gone;
}

Result<uint64_t> RemoveRecord(const WorkspaceRecord& record) {
  const UniqueFd state = TRY(OpenStateDirectory(false));
  const FileLock lock = TRY(
      FileLock::Take(state.get(), std::string(kWorkspaces) + "/lock", kLockMs));
  const std::string directory =
      std::string(kWorkspaces) + "/" + record.id.Key();
  const uint64_t bytes = TRY(BytesOnDisk(state.get(), directory));
  TRY(RemoveTree(state.get(), directory));
  return bytes;
}

bool HasForeignStore(int fd) {
  return StatBelow(fd, std::string(kStoreName) + "/FORMAT").has_value();
}

}  // namespace txfs::cli
