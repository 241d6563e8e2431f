// Times of requests about a transaction, for bench/run: from the request to the
// daemon until its reply; of "visible" until a file of the mount shows what the
// request did; of "begin", which asks no daemon, that of the call. Starting a
// process is not what is measured.

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "cli/locate/reach.h"
#include "cli/protocol/client.h"
#include "cli/protocol/runtime_dir.h"
#include "fs/workspace/workspace.h"

namespace {

using txfs::Result;
using txfs::Status;
using txfs::cli::Client;

constexpr int kTimeoutMs = 600'000;
constexpr int kCalls = 10'000;

using BenchClock = std::chrono::steady_clock;

double SecondsBetween(BenchClock::time_point start,
                      BenchClock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

Result<double> Seconds(const std::function<Status()>& work) {
  const auto start = BenchClock::now();
  TRY(work());
  return SecondsBetween(start, BenchClock::now());
}

/// What `request` makes of its Result is not needed.
Result<double> TimeRequest(const std::string& mountpoint,
                           const std::function<Status(Client&)>& request) {
  Client client(TRY(txfs::cli::SocketConnection::Open(
      txfs::cli::SocketPaths(::geteuid(), mountpoint).front(), kTimeoutMs)));
  // The daemon is at it already.
  TRY(client.GetStatus());
  return Seconds([&] { return request(client); });
}

/// A transaction more on a workspace that has a store. Closing drops it.
Result<double> TimeBegin(const std::string& workspace) {
  txfs::cli::RealWorkspace real = TRY(txfs::cli::ReachWorkspace(workspace));
  if (!real.record) return txfs::Fail(ENOENT, "the store of " + workspace);
  txfs::UniqueFd store = TRY(txfs::cli::OpenRecordedStore(*real.record));
  txfs::WorkspaceOptions options;
  options.path = workspace;
  options.base = real.base;
  options.store = real.record->store;
  options.store_directory = std::make_shared<txfs::UniqueFd>(std::move(store));
  options.name = "bench";
  options.prepares = true;
  std::unique_ptr<txfs::Workspace> opened;
  const auto begin = [&]() -> Status {
    opened = TRY(txfs::Workspace::Open(options));
    return {};
  };
  const double seconds = TRY(Seconds(begin));
  TRY(opened->Discard());
  TRY(opened->Close());
  return seconds;
}

template <class T>
Status Drop(Result<T> result) {
  if (!result) return std::unexpected(std::move(result).error());
  return {};
}

/// Until a file that was changed has another size again: from the request on,
/// whether or not its reply has come.
Result<double> TimeVisible(const std::string& mountpoint,
                           const std::string& file) {
  struct stat st{};
  if (::stat(file.c_str(), &st) != 0) return txfs::Fail(errno, file);
  const auto changed = st.st_size;
  // Before there is a request, the file does not change.
  BenchClock::time_point start;
  std::atomic<bool> gave_up = false;
  Result<BenchClock::time_point> seen;
  std::thread watcher([&] {
    while (st.st_size == changed && !gave_up) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      if (::stat(file.c_str(), &st) != 0) {
        seen = txfs::Fail(errno, file);
        return;
      }
    }
    seen = BenchClock::now();
  });
  const auto discarded = TimeRequest(mountpoint, [&](Client& client) {
    start = BenchClock::now();
    return Drop(client.Discard({}));
  });
  if (!discarded) gave_up = true;
  watcher.join();
  if (!discarded) return discarded;
  return SecondsBetween(start, TRY(seen));
}

/// Fails with EINVAL when there is no such request.
Result<double> Measure(const std::string& request, const std::string& where,
                       const std::string& file) {
  if (request == "visible") return TimeVisible(where, file);
  if (request == "begin") return TimeBegin(where);
  if (request == "commit") {
    return TimeRequest(where,
                       [](Client& client) { return Drop(client.Commit({})); });
  }
  if (request == "discard") {
    return TimeRequest(where,
                       [](Client& client) { return Drop(client.Discard({})); });
  }
  if (request == "savepoint") {
    return TimeRequest(
        where, [](Client& client) { return Drop(client.MakeSavepoint("")); });
  }
  if (request == "rollback") {
    return TimeRequest(
        where, [](Client& client) { return Drop(client.Rollback("")); });
  }
  if (request == "calls") {
    return TimeRequest(where, [](Client& client) -> Status {
      for (int i = 0; i < kCalls; ++i) {
        const std::string id = "call_" + std::to_string(i);
        TRY(client.MarkCall({.host = "bench", .call = id, .command = "make"}));
      }
      return {};
    });
  }
  return txfs::Fail(EINVAL, request);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool visible = !arguments.empty() && arguments[0] == "visible";
  if (arguments.size() != (visible ? 3 : 2)) {
    std::fputs(
        "usage: txnbench commit|discard|savepoint|rollback MOUNTPOINT\n"
        "       txnbench calls MOUNTPOINT     (marks of 10,000 of them)\n"
        "       txnbench visible MOUNTPOINT CHANGED_FILE    (a discard)\n"
        "       txnbench begin WORKSPACE\n",
        stderr);
    return 2;
  }
  const auto seconds =
      Measure(arguments[0], arguments[1], visible ? arguments[2] : "");
  if (!seconds) {
    std::fprintf(stderr, "txnbench: %s\n", seconds.error().ToString().c_str());
    return 1;
  }
  std::printf("%.6f\n", *seconds);
  return 0;
}
