#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "journal/journal.h"
#include "journal/support/mutex.h"

namespace txfs {

/// The journal of a transaction that could not begin because the disk was full.
/// The transaction begins with the first change for which there is room. Until
/// then the journal is empty, and calls that need it fail as the begin does.
/// Thread-safe.
class DeferredJournal final : public Journal {
 public:
  using Begin = std::function<Result<std::unique_ptr<Journal>>()>;
  /// Calls `begin` until it succeeds, with locks of the filesystem held.
  explicit DeferredJournal(Begin begin) : begin_(std::move(begin)) {}

  /// Begins the transaction unless it has begun. ENOSPC, EDQUOT; errors of
  /// `begin`.
  Status Ensure() {
    TRY(Begun());
    return {};
  }
  [[nodiscard]] bool has_begun() const { return begun_ != nullptr; }

  Status Load(State& state) override {
    return begun_ == nullptr ? Status() : begun_.load()->Load(state);
  }
  Result<StagedContent> Stage(ByteSpan bytes, uint32_t own_segment,
                              uint64_t own_position, bool promised) override {
    return TRY(Begun())->Stage(bytes, own_segment, own_position, promised);
  }
  Result<uint32_t> NewSegment() override { return TRY(Begun())->NewSegment(); }
  Status LinkSegment(uint32_t segment, int directory,
                     const std::string& name) override {
    return TRY(Begun())->LinkSegment(segment, directory, name);
  }
  Status SetAside(uint64_t bytes) override {
    if (bytes == 0 && begun_ == nullptr) return {};
    return TRY(Begun())->SetAside(bytes);
  }
  void Abandon(const StagedContent& content) override {
    if (begun_ != nullptr) begun_.load()->Abandon(content);
  }
  Result<Lsn> Append(const Change& change,
                     const StagedContent* content) override {
    return TRY(Begun())->Append(change, content);
  }
  void Release(const Extent& extent, Lsn lsn) override {
    if (begun_ != nullptr) begun_.load()->Release(extent, lsn);
  }
  Status Read(const ContentRef& ref, uint64_t offset,
              MutableByteSpan out) override {
    return TRY(Begun())->Read(ref, offset, out);
  }
  Status Sync() override {
    return begun_ == nullptr ? Status() : begun_.load()->Sync();
  }
  Status Drain() override {
    return begun_ == nullptr ? Status() : begun_.load()->Drain();
  }
  Status DrainUnsynced() override {
    return begun_ == nullptr ? Status() : begun_.load()->DrainUnsynced();
  }
  [[nodiscard]] Lsn last_lsn() const override {
    return begun_ == nullptr ? kNoLsn : begun_.load()->last_lsn();
  }
  Status ReadLog(Lsn first,
                 const std::function<bool(const LogEntry&)>& visit) override {
    return begun_ == nullptr ? Status() : begun_.load()->ReadLog(first, visit);
  }
  [[nodiscard]] uint64_t denied() const override {
    return begun_ == nullptr ? 0 : begun_.load()->denied();
  }
  Result<Denials> ReadDenials() override {
    return begun_ == nullptr ? Denials() : begun_.load()->ReadDenials();
  }
  [[nodiscard]] std::vector<Savepoint> Savepoints() override {
    return begun_ == nullptr ? std::vector<Savepoint>()
                             : begun_.load()->Savepoints();
  }
  Result<Rewind> PlanRewind(Lsn savepoint, Lsn until) override {
    return TRY(Begun())->PlanRewind(savepoint, until);
  }
  Result<Rewind> Rollback(const Change& change) override {
    return TRY(Begun())->Rollback(change);
  }
  void SettleRewind(const Rewind& rewind) override {
    if (begun_ != nullptr) begun_.load()->SettleRewind(rewind);
  }
  Result<Lsn> Settle(const Change& change) override {
    return TRY(Begun())->Settle(change);
  }
  [[nodiscard]] Ino highest_ino() const override {
    return begun_ == nullptr ? kNoIno : begun_.load()->highest_ino();
  }
  Status PutMeta(const std::string& key, std::string_view value) override {
    return TRY(Begun())->PutMeta(key, value);
  }
  Result<std::string> GetMeta(const std::string& key) override {
    return TRY(Begun())->GetMeta(key);
  }
  bool GiveUpReserve() override {
    return begun_ != nullptr && begun_.load()->GiveUpReserve();
  }
  void Forget() override {
    if (begun_ != nullptr) begun_.load()->Forget();
  }
  Result<uint64_t> StoreBytes() override {
    return begun_ == nullptr ? 0 : begun_.load()->StoreBytes();
  }

 private:
  Result<Journal*> Begun();

  const Begin begin_;
  Mutex mutex_;
  std::unique_ptr<Journal> journal_ GUARDED_BY(mutex_);
  std::atomic<Journal*> begun_ = nullptr;  ///< `journal_`, once it exists
};

}  // namespace txfs
