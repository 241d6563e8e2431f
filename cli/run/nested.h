#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cli/protocol/client.h"
#include "cli/protocol/connection.h"
#include "cli/run/run.h"
#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs::cli {

/// The variable that names the socket of the run around a command.
inline constexpr const char* kRunVariable = "TXFS_RUN";

/// Where the command finds that socket.
inline constexpr const char* kRunSocket = "/run/txfs/run";

/// Lets `txfs run` in the sandbox of a run make savepoints in its transaction,
/// and go back to these, and lets hooks of agents ask for the verdict of the
/// rules, and mark their calls; nothing else. Savepoints nest: only a command
/// of the innermost run makes another one. A run whose connection ends without
/// a word goes back to its savepoint. A thread answers.
class RunChannel {
 public:
  /// Listens at `path`. `client` is the channel's own.
  static Result<std::unique_ptr<RunChannel>> Open(const std::string& path,
                                                  Client client);
  ~RunChannel();
  RunChannel(const RunChannel&) = delete;
  RunChannel& operator=(const RunChannel&) = delete;

  /// Requires that no process of the sandbox is left. A run that has not ended
  /// goes back to its savepoint. Error: one could not go back, so that its
  /// changes are among those of the run around it.
  Status Close();

 private:
  /// A connection, and the run that began with it.
  struct Peer {
    UniqueFd fd;
    UniqueFd process;       ///< pidfd of the other end
    std::string savepoint;  ///< "": no run, or one that has ended
  };

  RunChannel(std::string path, UniqueFd listener, UniqueFd stop, Client client)
      : path_(std::move(path)),
        listener_(std::move(listener)),
        stop_(std::move(stop)),
        client_(std::move(client)) {}
  void Stop();
  void Serve();
  void Accept();
  /// False: the connection has ended.
  bool Answer(Peer& peer);
  Result<std::string> Begin(Peer& peer, const std::string& inside);
  Status Leave(Peer& peer, bool back);
  void Lose(Peer& peer);
  Status GoBack(const std::string& savepoint);

  const std::string path_;
  UniqueFd listener_, stop_;
  Client client_;
  std::vector<Peer> peers_;
  std::vector<std::string> active_;  ///< savepoints, each in the one before
  bool has_lost_ = false;            ///< a run has ended without a word
  Status failed_;                    ///< of going back
  std::thread thread_;
};

/// Whether this process is in a run.
[[nodiscard]] bool IsInRun();

/// Connects to the run around this process, which passes the requests "judge"
/// and "call_mark" on to the daemon. `timeout_ms`: the time for each call.
/// Fails if there is no run.
Result<std::unique_ptr<Connection>> ReachRunAround(int timeout_ms);

/// Runs a command as a part of the run around this process: a savepoint is its
/// begin, and the outer run decides about the changes that stay. kBusy if
/// another one has begun there, in which this process is not.
Result<int> RunNested(const Context& context, const RunArguments& arguments);

}  // namespace txfs::cli
