#pragma once

#include <sys/stat.h>

#include <atomic>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "journal/support/unique_fd.h"
#include "tests/journal/disk_calls.h"

namespace txfs::testing {

/// Cuts the power of this process at one of the calls by which it changes what
/// is below a directory: takes back some of what no sync has made durable, and
/// dies by SIGKILL. It happens in place, so that what is left has the inode
/// numbers it had. docs/testing.md, "Power loss of a commit", says what a disk
/// may lose.
///
/// What is there at first is durable. Stores into mappings are not seen: they
/// are on the disk at once.
class PowerCut final : public DiskWatch {
 public:
  /// `graves`: an empty directory on the same filesystem, for files that are
  /// deleted meanwhile. `at`: the number of the call, from 1.
  PowerCut(std::string root, std::string graves, uint64_t seed, uint64_t at);
  ~PowerCut() override;

  /// Before the next call, whichever thread makes it.
  void CutNext() { cut_next_ = true; }
  /// Syncs of paths that end like this do nothing; "" are those of everything.
  void IgnoreSyncsOf(std::string path_end) { ignored_ = std::move(path_end); }

  int Before(DiskCall& call) override;
  void After(const DiskCall& call) override;
  [[nodiscard]] bool sees_everything() const override { return true; }

 private:
  /// What reaches the disk in the order in which it happened: changes of one
  /// directory, of the names of one file, or of the attributes of one file.
  struct Chain {
    uint64_t ino = 0;
    bool attributes = false;
    auto operator<=>(const Chain&) const = default;
  };
  struct Attributes {
    struct stat st{};
    std::map<std::string, std::string> xattrs;
  };
  struct Version {
    std::optional<size_t> change;  ///< none: it was so at first
    Attributes attributes;
  };
  struct Node {
    UniqueFd handle;  ///< O_PATH
    std::vector<Version> versions;
  };
  /// Bytes that were there before; behind the end of the file, zeros.
  struct Data {
    uint64_t ino = 0;
    uint64_t offset = 0;
    std::string before;
    bool cut = false;  ///< they went with a part of the file
    bool durable = false;
  };
  /// One call. It happens as a whole, but for its data.
  struct Change {
    std::vector<Chain> chains;
    std::vector<uint64_t> nodes;      ///< whose attributes it changes
    std::function<void()> take_back;  ///< its names
    std::optional<Data> data;
    bool durable = false;
  };
  /// A name, and what it names.
  struct Spot {
    uint64_t directory = 0;  ///< 0: there is none
    std::string name;
    uint64_t ino = 0;  ///< 0: nothing
  };

  Spot Find(const std::string& path);
  /// The number of an open file, which is known from now on.
  uint64_t Know(UniqueFd handle, bool made_just_now = false);
  uint64_t ObjectOf(const DiskCall& call);
  [[nodiscard]] int HandleOf(uint64_t ino) const;
  [[nodiscard]] bool IsDirectory(uint64_t ino) const;
  static Attributes Read(int handle);

  // What a call is about to do.
  std::optional<Change> Foresee(const DiskCall& call);
  Change MakeName(const Spot& spot);
  std::optional<Change> Remove(const Spot& spot);
  std::optional<Change> Rename(const DiskCall& call);
  std::optional<Change> ChangeData(const DiskCall& call, uint64_t ino);
  std::function<void()> Bury(const Spot& spot);
  void TouchDirectory(Change& change, uint64_t ino);

  void Sync(const DiskCall& call);
  void MakeDurable(size_t change);
  void Forget();

  [[noreturn]] void Cut();
  std::vector<bool> Choose();
  void TakeBackData(const Data& data, bool kept, unsigned lost_percent);
  void SetAttributes(const Node& node, const std::vector<bool>& kept);
  void EmptyGraves();
  bool Happens(unsigned percent) { return random_() % 100 < percent; }

  const std::string graves_;
  std::mt19937_64 random_;
  const uint64_t at_;
  uint64_t calls_ = 0;
  std::atomic<bool> cut_next_ = false;
  std::optional<std::string> ignored_;
  std::map<uint64_t, Node> nodes_;
  std::vector<Change> changes_;
  std::map<Chain, std::vector<size_t>> by_chain_;
  std::optional<Change> pending_;  ///< that of the call under way
  Spot made_;                      ///< the name it may make
  uint64_t buried_ = 0;
};

}  // namespace txfs::testing
