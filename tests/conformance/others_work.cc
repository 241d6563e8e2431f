#include "tests/conformance/others_work.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

namespace txfs::testing {
namespace {

/// Later than everything in the base, earlier than anything of a transaction.
constexpr timespec kThen{.tv_sec = kBaseTime.sec + 1000, .tv_nsec = 7};
constexpr uint64_t kMostDeeds = 5;

class Others {
 public:
  Others(std::string top, uint64_t seed)
      : top_(std::move(top)), random_(seed ^ 0x07e5) {}

  /// What cannot be done, as another deed has taken it away, is left.
  void ChangeSomething() {
    std::vector<std::string> paths;
    std::error_code none;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(top_, none)) {
      paths.push_back(entry.path());
    }
    if (paths.empty()) return;
    std::ranges::sort(paths);
    Change(paths[random_() % paths.size()]);
  }

  /// More often than not by an addition.
  void Change(const std::string& path) {
    std::error_code none;
    switch (std::filesystem::symlink_status(path, none).type()) {
      case std::filesystem::file_type::regular:
        return ChangeFile(path);
      case std::filesystem::file_type::directory:
        return ChangeDirectory(path);
      case std::filesystem::file_type::symlink:
      case std::filesystem::file_type::fifo:
        std::filesystem::remove(path, none);
        Date(path);
        return;
      default:
        return;  // it is gone
    }
  }

  void Make(const std::string& path) {
    std::error_code none;
    if (random_() % 3 == 0) {
      std::filesystem::create_directory(path, none);
      Write(path + "/theirs");
    } else {
      Write(path);
    }
    Date(path);
  }

  [[nodiscard]] uint64_t Random(uint64_t below) { return random_() % below; }

 private:
  void ChangeFile(const std::string& path) {
    std::error_code none;
    switch (random_() % 10) {
      case 1:
        Write(path);
        break;
      case 2:
        std::filesystem::remove(path, none);
        Write(path);
        break;
      case 3:
        std::filesystem::remove(path, none);
        break;
      case 4:
        std::filesystem::permissions(path, std::filesystem::perms(0604), none);
        break;
      case 5:
        std::filesystem::rename(path, path + ".theirs", none);
        Date(path + ".theirs");
        break;
      default:
        Write(path, std::ios::app);
    }
    Date(path);
  }

  void ChangeDirectory(const std::string& path) {
    std::error_code none;
    switch (random_() % 5) {
      case 0:
        std::filesystem::remove_all(path, none);
        break;
      case 1:
        std::filesystem::rename(path, path + ".theirs", none);
        Date(path + ".theirs");
        break;
      case 2:
        std::filesystem::permissions(path, std::filesystem::perms(0705), none);
        break;
      case 3:
        std::filesystem::remove_all(path, none);
        Write(path);
        break;
      default:
        Write(path + "/theirs");
    }
    Date(path);
  }

  void Write(const std::string& path,
             std::ios::openmode mode = std::ios::trunc) const {
    std::ofstream(path, std::ios::out | mode) << "theirs, at " << path.size();
    Date(path);
  }

  /// And what it is in: the clock says something else each time.
  static void Date(const std::string& path) {
    const timespec times[] = {kThen, kThen};
    ::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW);
    const std::string parent = std::filesystem::path(path).parent_path();
    ::utimensat(AT_FDCWD, parent.c_str(), times, 0);
  }

  const std::string top_;
  std::mt19937_64 random_;
};

}  // namespace

void DoOthersWork(const BaseTree& base, const std::vector<std::string>& made,
                  const std::vector<std::string>& changed, uint64_t seed) {
  Others others(base.root() + "/w", seed);
  const uint64_t deeds = 1 + others.Random(kMostDeeds);
  for (uint64_t deed = 0; deed < deeds; ++deed) {
    if (changed.empty() || others.Random(3) == 0) {
      others.ChangeSomething();
    } else {
      others.Change(base.root() + "/" + changed[others.Random(changed.size())]);
    }
  }
  if (made.empty() || others.Random(2) == 0) return;
  others.Make(base.root() + "/" + made[others.Random(made.size())]);
}

}  // namespace txfs::testing
