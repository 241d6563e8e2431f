#include "fs/archive.h"

#include <fcntl.h>

#include "fs/base_directory.h"
#include "journal/base/file.h"
#include "journal/base/mutex.h"
#include "journal/base/types.h"

namespace txfs {
namespace {

/// Store and base, without a transaction.
class StoredArchive final : public Archive {
 public:
  StoredArchive(std::string path, UniqueFd base, std::unique_ptr<Store> store)
      : path_(std::move(path)),
        base_(std::move(base)),
        store_(std::move(store)),
        committer_(*store_, base_) {}

  Store& store() override { return *store_; }
  [[nodiscard]] const std::string& path() const override { return path_; }
  [[nodiscard]] const Retention& retention() const override {
    return retention_;
  }

  Status Recover() override {
    if (!store_->history().HasIntent()) return {};
    const MutexLock ending(mutex_);
    const FileLock lock = TRY(committer_.Lock(kLockMs));
    return committer_.FinishUnfinished();
  }

  Result<UndoReport> Undo(const std::string& id) override {
    const MutexLock ending(mutex_);
    const FileLock lock = TRY(committer_.Lock(kLockMs));
    return committer_.Undo(
        id, Clock::System().Now(),
        [](const std::function<Status()>& work) { return work(); });
  }

  Result<CommitView> Show(const std::string& id) override {
    return ViewCommit(*store_, base_, id);
  }

  Result<size_t> ReadBase(const std::string& base_path, uint64_t offset,
                          MutableByteSpan out) override {
    const SharedFd file = TRY(base_.OpenFile(base_path));
    return ReadFully(file->get(), offset, out);
  }

  Result<size_t> ReadVault(const std::string& path, uint64_t offset,
                           MutableByteSpan out) override {
    return Vaults(base_.root(), store_->dir()).Read(path, offset, out);
  }

  Result<GcReport> CollectGarbage(const Retention& retention) override {
    const MutexLock ending(mutex_);
    return committer_.FreeSpace(retention, kLockMs);
  }

 private:
  static constexpr int kLockMs = 30'000;

  const std::string path_;
  const BaseDirectory base_;
  const std::unique_ptr<Store> store_;
  const Retention retention_;
  Mutex mutex_;
  Committer committer_ GUARDED_BY(mutex_);
};

}  // namespace

Result<std::unique_ptr<Archive>> Archive::Open(
    const std::string& path, const std::optional<std::string>& store) {
  const std::string store_path = store.value_or(path + "/.txfs");
  UniqueFd base = TRY(OpenAt(AT_FDCWD, path, O_RDONLY | O_DIRECTORY));
  auto dir = OpenAt(AT_FDCWD, store_path, O_RDONLY | O_DIRECTORY);
  if (!dir && dir.error().code == ENOENT) {
    return Fail(ENOENT, "workspace " + path + " has no store",
                "`txfs mount` makes one");
  }
  UniqueFd store_dir = TRY(std::move(dir));
  std::unique_ptr<Store> opened =
      TRY(Store::Open(std::move(store_dir), store_path, path));
  auto archive =
      std::make_unique<StoredArchive>(path, std::move(base), std::move(opened));
  TRY(archive->Recover());
  return archive;
}

}  // namespace txfs
