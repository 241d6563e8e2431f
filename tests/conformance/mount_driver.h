#pragma once

#include <sys/types.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "tests/conformance/posix_driver.h"

namespace txfs::testing {

/// A real mount by the program under test, used with real system calls.
class MountDriver final : public PosixDriver {
 public:
  /// Mounts `workspace` at `mountpoint`, which is made.
  static Result<std::unique_ptr<Driver>> Start(const std::string& workspace,
                                               const std::string& mountpoint);
  ~MountDriver() override;

  Status Remount() override;
  Status Commit() override;
  Status Discard() override;
  Status MakeSavepoint(const std::string& name) override;
  Status Rollback(const std::string& name) override;
  Status MarkCall(const std::string& id, bool end) override;
  Result<std::vector<std::string>> RevertCall(const std::string& id) override;
  Status Undo() override;
  Status UsePolicy(const std::string& text) override;
  Result<CommitOutcome> Review(const CommitChoice& choice) override;
  Result<std::vector<Refused>> ReadRefused() override;
  Status Settle() override;
  Result<uint64_t> StoreBytes() override;
  [[nodiscard]] bool has_base() const override { return true; }

  /// Ends the daemon, and waits until it is gone. Unless it ends in peace, the
  /// mount is dead until Mount.
  void Kill(int signal = SIGKILL);
  /// `txfs mount`; clears a dead mount.
  Status Mount();
  /// The process that serves the mount.
  [[nodiscard]] pid_t daemon() const { return daemon_; }
  /// Runs `txfs -C WORKSPACE WORDS...`; returns its stdout.
  Result<std::string> Txfs(std::vector<std::string> words);

 private:
  MountDriver(std::string workspace, const std::string& mountpoint)
      : PosixDriver(mountpoint),
        workspace_(std::move(workspace)),
        mountpoint_(mountpoint) {}

  /// A whole number of `status --json`.
  Result<uint64_t> StatusNumber(const std::string& key);

  std::string workspace_;
  std::string mountpoint_;
  pid_t daemon_ = 0;
};

}  // namespace txfs::testing
