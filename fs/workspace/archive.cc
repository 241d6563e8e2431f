#include "fs/workspace/archive.h"

#include <algorithm>

#include "fs/base/base_directory.h"
#include "journal/support/file.h"
#include "journal/support/mutex.h"
#include "journal/support/types.h"

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

  Result<std::string> Recover() override {
    if (!store_->history().HasIntent()) return "";
    const MutexLock ending(mutex_);
    const FileLock lock = TRY(committer_.Lock(0));
    return committer_.FinishUnfinished();
  }

  Result<UndoReport> Undo(const std::string& wanted) override {
    const MutexLock ending(mutex_);
    const FileLock lock = TRY(committer_.Lock(kCommitLockMs));
    TRY(committer_.FinishUnfinished());
    return committer_.Undo(
        wanted, Clock::System().Now(),
        [](const std::function<Status()>& work) { return work(); });
  }

  Result<CommitView> Show(const std::string& wanted) override {
    return ViewCommit(*store_, base_, wanted);
  }

  Result<size_t> ReadBase(const std::string& base_path, uint64_t offset,
                          MutableByteSpan out) override {
    const SharedFd file = TRY(base_.OpenFile(base_path));
    return ReadFully(file->get(), offset, out);
  }

  Result<size_t> ReadVault(const std::string& path, uint64_t offset,
                           MutableByteSpan out) override {
    return Vaults(base_, store_->dir()).Read(path, offset, out);
  }

  Result<GcReport> CollectGarbage(const Retention& retention) override {
    const MutexLock ending(mutex_);
    GcReport report = TRY(committer_.FreeSpace(retention, kCommitLockMs));
    // Nobody is here for whom the next transaction must begin at once.
    report.bytes += TRY(store_->DropBlank());
    return report;
  }

 private:
  const std::string path_;
  const BaseDirectory base_;
  const std::unique_ptr<Store> store_;
  const Retention retention_;
  Mutex mutex_;
  Committer committer_ GUARDED_BY(mutex_);
};

}  // namespace

Result<size_t> Archive::ReadEnded(const ChangeSide& side, uint64_t offset,
                                  MutableByteSpan out) {
  if (!side.vault_path.empty()) return ReadVault(side.vault_path, offset, out);
  if (!side.delta) return ReadBase(side.base_path, offset, out);
  const Delta& delta = *side.delta;
  if (offset >= delta.size) return 0;
  out = out.first(std::min<uint64_t>(out.size(), delta.size - offset));
  const size_t n = TRY(ReadBase(side.base_path, offset, out));
  std::ranges::fill(out.subspan(n), std::byte{0});
  const auto read = [&](uint64_t from, MutableByteSpan part) -> Status {
    const size_t got = TRY(ReadVault(delta.name, from, part));
    if (got == part.size()) return {};
    return Fail(EIO, "read " + delta.name);
  };
  TRY(ApplyDelta(delta, offset, out, read));
  return out.size();
}

std::unique_ptr<Archive> Archive::Open(std::string path, UniqueFd base,
                                       std::unique_ptr<Store> store) {
  return std::make_unique<StoredArchive>(std::move(path), std::move(base),
                                         std::move(store));
}

}  // namespace txfs
