#pragma once

#include <netinet/in.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/run/probe.h"
#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs::cli {

/// A socket that listens where a command expects the proxy, in the network
/// namespace of this process, which is new. Invalid on an error, with errno.
UniqueFd ListenForProxy();

/// The proxy of a run (docs/run.md, "Network"): tinyproxy, in a sandbox of its
/// own that has the network of the machine. It lets requests to some hosts
/// through. What it starts dies with the thread that started it.
class NetworkProxy {
 public:
  /// Error: tinyproxy is missing. Each run checks bwrap itself.
  static Status CheckPrograms();
  /// Starts one, and waits until it works. `names`: of ParseHostName. Errors:
  /// a program is missing, or does not start.
  static Result<std::unique_ptr<NetworkProxy>> Start(
      const std::vector<std::string>& names);
  ~NetworkProxy();
  NetworkProxy(const NetworkProxy&) = delete;
  NetworkProxy& operator=(const NetworkProxy&) = delete;

  /// Leads the programs of a sandbox to the proxy.
  void SetVariables(
      std::vector<std::pair<std::string, std::string>>& environment) const;

  /// A descriptor of the proxy's process.
  [[nodiscard]] int process() const { return process_.get(); }
  /// Starts a process that brings what connects to `listener` to the proxy,
  /// until StopRelay. Returns a descriptor of the process, borrowed.
  Result<int> StartRelay(UniqueFd listener);
  void StopRelay();
  /// Whether one of the processes has ended by itself.
  [[nodiscard]] bool is_lost() const;

  /// Ends it. Returns the names that it refused, with how often.
  std::map<std::string, uint64_t> Stop();

 private:
  NetworkProxy(pid_t pid, UniqueFd log);
  /// Reads the log until the proxy accepts connections.
  Status AwaitStart();
  void ReadLog();
  /// Takes the complete lines of `text_`. Whether one says that it has started.
  bool TakeLines();
  void TakeLine(std::string_view line);

  pid_t pid_;  ///< of bwrap; -1: stopped
  UniqueFd process_, log_;
  sockaddr_in address_{};
  std::string direct_;  ///< names of the sandbox itself, as in no_proxy
  std::string text_, last_line_;
  /// Of the thread that reads the log, while it runs.
  std::map<std::string, uint64_t> refused_;
  std::thread reader_;
  pid_t relay_ = -1;
  UniqueFd relay_process_;
  bool lost_relay_ = false;
};

/// A run may have a list of names as its network. A note if not.
[[nodiscard]] Probe ProbeProxy();

}  // namespace txfs::cli
