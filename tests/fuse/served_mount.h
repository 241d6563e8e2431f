#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fs/fuse/fuse_session.h"
#include "journal/support/unique_fd.h"
#include "tests/fuse/memory_filesystem.h"

namespace txfs::testing {

struct ServeOptions {
  MountOptions mount;       ///< mountpoint is set by ServedMount
  uid_t uid = ::geteuid();  ///< who serves
  /// Fills the filesystem, in the serving process.
  std::function<void(MemoryFilesystem&)> prepare = [](MemoryFilesystem&) {};
  std::vector<PathEvent> events = {};  ///< for ServedMount::Announce
};

/// A mounted MemoryFilesystem, served by a child process. Nothing is left
/// behind: not when the test fails, not when it hangs for a minute.
class ServedMount {
 public:
  explicit ServedMount(ServeOptions options = {});
  ~ServedMount();
  ServedMount(const ServedMount&) = delete;
  ServedMount& operator=(const ServedMount&) = delete;

  /// Why mounting failed; none: it is mounted.
  [[nodiscard]] const std::optional<std::string>& error() const {
    return error_;
  }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string At(const std::string& name) const {
    return path_ + "/" + name;
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  CallLog& log() { return *log_; }

  // FuseSession's methods, called in the serving process; 0 or an errno.
  int Stop() { return Ask('s'); }
  int Unmount(bool lazy) { return Ask(lazy ? 'l' : 'u'); }
  /// MemoryFilesystem::Swap, then Invalidate.
  int SwapAndInvalidate() { return Ask('i'); }
  int Announce() { return Ask('a'); }

  /// Waits for the serving process; what Run returned, 0 or an errno.
  int WaitForEnd();
  void Kill();

 private:
  int Ask(char command);
  void ReadReadiness();

  std::string path_;
  CallLog* log_ = nullptr;
  UniqueFd control_;
  pid_t pid_ = -1;
  std::optional<std::string> error_;
};

}  // namespace txfs::testing
