#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "journal/support/bytes.h"
#include "tests/journal/disk_calls.h"

namespace txfs {

/// A directory as it may be after power loss: paths relative to its root, and
/// the content of files; directories have none.
struct DiskImage {
  std::map<std::string, std::optional<Bytes>> entries;

  void WriteTo(const std::string& dir) const;
};

/// How a disk, or a program that forgets to sync, can break its promise.
enum class Lie {
  kNone,
  kIgnoresSync,  ///< nothing is durable
  kSyncsLate,    ///< only what was there at the sync before is durable
};

/// Knows, for everything below a directory, what is durable and what is not
/// yet, and makes images of what power loss could leave (docs/testing.md).
///
/// What is not durable yet is, sector by sector, any of its versions since the
/// last sync; a name is any of those since the sync of its directory. Not
/// thread-safe: for journals without a drain thread.
class PowerDisk final : public DiskWatch {
 public:
  /// What is there now is durable.
  PowerDisk(const std::string& root, uint64_t seed);
  ~PowerDisk() override;

  /// From now on the disk lies when a path is synced that has `part` in it.
  void LieAbout(std::string part, Lie lie);
  /// Of a hundred syncs of files, so many fail with EIO, and what was to be
  /// synced may be on the disk or not: the kernel thinks that it is.
  void FailSyncs(unsigned percent) { failing_percent_ = percent; }
  /// Called before and after each call that changes the disk.
  void AtEveryCall(std::function<void(const DiskCall&)> visit) {
    visit_ = std::move(visit);
  }

  [[nodiscard]] DiskImage ImageAfterPowerLoss();

  int Before(DiskCall& call) override;
  void After(const DiskCall& call) override;

 private:
  static constexpr size_t kSector = 512;
  using Sector = std::array<std::byte, kSector>;
  template <class Value>
  struct Version {
    uint64_t time = 0;
    Value value{};
    bool lost = false;  ///< its sync failed, no later one writes it
  };
  template <class Value>
  using Versions = std::vector<Version<Value>>;
  struct Node {
    bool is_directory = false;
    Bytes current;  ///< as read now
    Bytes durable;
    uint64_t durable_size = 0;
    std::map<uint64_t, Versions<Sector>> sectors;  ///< by number
    Versions<uint64_t> sizes;
    uint64_t synced_at = 0;
    std::map<std::string, size_t> names;  ///< as read now, of a directory
    std::map<std::string, size_t> durable_names;
  };
  /// No node.
  static constexpr size_t kGone = SIZE_MAX;
  struct Name {
    size_t directory = 0;
    std::string name;
    size_t node = kGone;  ///< what it names from now on
  };
  using NamesChange = std::vector<Name>;  ///< happens at once

  /// How much of what is not durable survives.
  struct Luck {
    unsigned newest_percent = 0;  ///< chance of the newest version
    bool others = false;          ///< if not that, any; else what is durable
  };

  void Scan(size_t directory, const std::string& path);
  [[nodiscard]] size_t Find(std::string_view path) const;
  [[nodiscard]] Name PlaceOf(const std::string& path) const;
  void Make(const DiskCall& call);
  void Change(NamesChange change);
  /// Notes what has changed in [from, to) of a file; with `written`, all of it.
  void Look(Node& node, const std::string& path, uint64_t from, uint64_t to,
            bool written);
  void LookAtMappedFiles(size_t directory, const std::string& path);
  void Sync(const DiskCall& call);
  void SyncNames(size_t directory);
  static void Settle(Node& node, uint64_t until);
  static void Lose(Node& node);
  [[nodiscard]] bool Happens(unsigned percent) {
    return random_() % 100 < percent;
  }
  [[nodiscard]] Luck RandomLuck();
  [[nodiscard]] size_t Choose(const Luck& luck, size_t versions);
  [[nodiscard]] Bytes Content(const Node& node, Luck luck, bool mapped);
  using Names = std::vector<std::map<std::string, size_t>>;  ///< by directory
  [[nodiscard]] Names NamesAfterPowerLoss(const Luck& luck);
  void Collect(DiskImage& image, const Names& names, size_t directory,
               const std::string& path, const Luck& luck);

  std::mt19937_64 random_;
  std::vector<Node> nodes_;  ///< the first is the root
  std::vector<NamesChange> changes_;
  uint64_t time_ = 1;
  std::vector<std::pair<std::string, Lie>> lies_;
  unsigned failing_percent_ = 0;
  std::function<void(const DiskCall&)> visit_;
};

}  // namespace txfs
