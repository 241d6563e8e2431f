#pragma once

#include <cstdint>
#include <ctime>
#include <functional>

namespace txfs {

/// An inode of the overlay; also the FUSE nodeid. Never reused within one
/// daemon.
enum class Ino : uint64_t {};
inline constexpr Ino kRootIno{1};
inline constexpr Ino kNoIno{0};

/// Log sequence number: position of a change in a transaction, from 1.
enum class Lsn : uint64_t {};
inline constexpr Lsn kNoLsn{0};

constexpr uint64_t Raw(Ino ino) { return static_cast<uint64_t>(ino); }
constexpr uint64_t Raw(Lsn lsn) { return static_cast<uint64_t>(lsn); }
constexpr Lsn Next(Lsn lsn) { return Lsn{Raw(lsn) + 1}; }

/// Nanoseconds since the epoch, split as the kernel does; nsec in [0, 1e9).
struct Timestamp {
  int64_t sec = 0;
  uint32_t nsec = 0;

  static Timestamp From(const timespec& t) {
    return {t.tv_sec, static_cast<uint32_t>(t.tv_nsec)};
  }
  [[nodiscard]] timespec ToTimespec() const {
    return {sec, static_cast<long>(nsec)};
  }
  auto operator<=>(const Timestamp&) const = default;
};

/// Bytes [from, to) of a file.
struct Range {
  uint64_t from = 0;
  uint64_t to = 0;

  bool operator==(const Range&) const = default;
};

/// The source of times; tests use their own clock.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Timestamp Now() const = 0;
  /// Milliseconds since an arbitrary start, of a clock that is never set. The
  /// default implementation returns those of Now.
  [[nodiscard]] virtual uint64_t Steady() const {
    const Timestamp now = Now();
    return static_cast<uint64_t>(now.sec) * 1000 + now.nsec / 1'000'000;
  }
  /// CLOCK_REALTIME and CLOCK_MONOTONIC.
  static const Clock& System();
};

}  // namespace txfs

template <>
struct std::hash<txfs::Ino> {
  size_t operator()(txfs::Ino ino) const noexcept {
    return static_cast<uint64_t>(ino) * 0x9E3779B97F4A7C15ULL;
  }
};
