#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "cli/protocol/client.h"
#include "cli/run/run.h"
#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs::cli {

/// The variable that names the socket of the run around a command.
inline constexpr const char* kRunVariable = "TXFS_RUN";

/// Where the command finds that socket.
inline constexpr const char* kRunSocket = "/run/txfs/run";

/// Lets `txfs run` in the sandbox of a run make savepoints in its transaction,
/// and go back to these; to nothing else. A thread answers.
class RunChannel {
 public:
  /// Listens at `path`. `client` is the channel's own.
  static Result<std::unique_ptr<RunChannel>> Open(const std::string& path,
                                                  Client client);
  ~RunChannel();
  RunChannel(const RunChannel&) = delete;
  RunChannel& operator=(const RunChannel&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  RunChannel(std::string path, UniqueFd listener, UniqueFd stop, Client client)
      : path_(std::move(path)),
        listener_(std::move(listener)),
        stop_(std::move(stop)),
        client_(std::move(client)) {}
  void Serve();
  void Answer(int peer);

  const std::string path_;
  UniqueFd listener_, stop_;
  Client client_;
  std::set<std::string> marks_;  ///< savepoints that it made
  std::thread thread_;
};

/// Whether this process is in a run.
[[nodiscard]] bool IsInRun();

/// Runs a command as a part of the run around this process: a savepoint is its
/// begin, and the outer run decides about the changes that stay.
Result<int> RunNested(const Context& context, const RunArguments& arguments);

}  // namespace txfs::cli
