#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tests/journal/disk_calls.h"
#include "tests/repeat.h"

namespace txfs {

/// What a disk says that is full or broken.
inline constexpr int kDiskErrors[] = {ENOSPC, EIO, EDQUOT};

/// One of them; the next number has the next one.
inline int DiskError(uint64_t number) {
  return kDiskErrors[number % std::size(kDiskErrors)];
}

/// Those that a test goes through: all, or one, chosen by `seed`, where the
/// scale is below 1.
inline std::vector<int> DiskErrors(uint64_t seed) {
  if (Scale() < 1) return {DiskError(seed)};
  return {std::begin(kDiskErrors), std::end(kDiskErrors)};
}

/// A disk that refuses some of the calls that change it.
class FaultyDisk final : public DiskWatch {
 public:
  /// `sees_everything`: links, nodes, attributes and syncfs count, too.
  explicit FaultyDisk(std::string root, bool sees_everything = false)
      : DiskWatch(std::move(root)), sees_everything_(sees_everything) {
    Begin();
  }
  ~FaultyDisk() override { End(); }

  struct Fault {
    uint64_t first = 0;  ///< number of the first call that fails, from 1
    uint64_t count = 1;  ///< of calls that fail
    int error = 0;       ///< errno
    /// A write that is to fail writes its first half, if it can.
    bool short_write = false;
    /// Only calls that take space fail, as on a disk that is full.
    bool only_space = false;
  };
  void Expect(const Fault& fault) {
    fault_ = fault;
    calls_ = 0;
    failures_ = 0;
  }
  void Recover() { fault_ = {}; }

  [[nodiscard]] bool has_failed() const { return failures_ > 0; }
  /// The first call that failed, for messages.
  [[nodiscard]] const std::string& failed() const { return failed_; }

  int Before(DiskCall& call) override {
    if (fault_.only_space && !TakesSpace(call)) return 0;
    ++calls_;
    if (calls_ < fault_.first || calls_ >= fault_.first + fault_.count) {
      return 0;
    }
    if (failures_++ == 0) failed_ = call.ToString();
    if (fault_.short_write && call.kind == DiskCall::Kind::kWrite &&
        call.size > 1) {
      call.size /= 2;
      // The rest of it meets the error, and so does putting right what can be.
      fault_.short_write = false;
      fault_.count += 2;
      return 0;
    }
    return fault_.error;
  }
  void After(const DiskCall&) override {}
  [[nodiscard]] bool sees_everything() const override {
    return sees_everything_;
  }

 private:
  static bool TakesSpace(const DiskCall& call) {
    using Kind = DiskCall::Kind;
    if (call.kind == Kind::kMake) return ::access(call.path.c_str(), F_OK) != 0;
    return call.kind == Kind::kMakeDir || call.kind == Kind::kWrite ||
           call.kind == Kind::kAllocate || call.kind == Kind::kLink ||
           call.kind == Kind::kMakeNode;
  }

  const bool sees_everything_;
  Fault fault_;
  uint64_t calls_ = 0;
  uint64_t failures_ = 0;
  std::string failed_;
};

}  // namespace txfs
