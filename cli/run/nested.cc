#include "cli/run/nested.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <set>
#include <tuple>

#include "cli/output/errors.h"
#include "cli/output/summary_format.h"
#include "cli/protocol/framing.h"
#include "cli/protocol/wire.h"
#include "cli/run/process.h"
#include "cli/run/report.h"
#include "journal/support/thread.h"

namespace txfs::cli {
namespace {

constexpr const char* kMark = "mark";
constexpr const char* kBack = "back";
constexpr std::chrono::seconds kPeerPatience{10};

Result<sockaddr_un> SocketAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Fail(ENAMETOOLONG, "socket " + path);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

/// The connection of a nested run to the outer one.
class OuterRun {
 public:
  static Result<OuterRun> Connect() {
    const char* path = std::getenv(kRunVariable);
    const sockaddr_un address = TRY(SocketAddress(path == nullptr ? "" : path));
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd.valid() ||
        ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                  sizeof address) != 0) {
      return Fail(errno, "cannot reach the run around this command",
                  std::string("unset ") + kRunVariable + " if there is none");
    }
    return OuterRun(std::move(fd));
  }

  Result<std::string> Mark() {
    return GetBytes(TRY(Ask({{"request", kMark}})), "savepoint");
  }
  Status Back(const std::string& savepoint) {
    TRY(Ask({{"request", kBack}, {"savepoint", EncodeBytes(savepoint)}}));
    return {};
  }

 private:
  explicit OuterRun(UniqueFd fd) : fd_(std::move(fd)) {}

  Result<Json> Ask(Json request) {
    Frame frame;
    frame.header = std::move(request);
    TRY(WriteFrame(fd_.get(), frame));
    auto reply = TRY(ReadFrame(fd_.get(), kReplyMax));
    if (!reply) return Fail(EPIPE, "the run around this command has ended");
    const Json& error = GetMember(reply->header, "error");
    if (error.is_object()) return std::unexpected(ErrorFromJson(error));
    return std::move(reply->header);
  }

  UniqueFd fd_;
};

uint64_t ElapsedMs(std::chrono::steady_clock::time_point begin) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(
          std::chrono::steady_clock::now() - begin)
          .count());
}

}  // namespace

Result<std::unique_ptr<RunChannel>> RunChannel::Open(const std::string& path,
                                                     Client client) {
  const sockaddr_un address = TRY(SocketAddress(path));
  UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  UniqueFd stop(::eventfd(0, EFD_CLOEXEC));
  if (!listener.valid() || !stop.valid() ||
      ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address),
             sizeof address) != 0 ||
      ::listen(listener.get(), 8) != 0) {
    return Fail(errno, "cannot listen at " + path);
  }
  std::unique_ptr<RunChannel> channel(new RunChannel(
      path, std::move(listener), std::move(stop), std::move(client)));
  // It must not take the signals of the supervisor, also not SIGCHLD.
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  channel->thread_ = StartThread([raw = channel.get()] { raw->Serve(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return channel;
}

RunChannel::~RunChannel() {
  const uint64_t one = 1;
  std::ignore = ::write(stop_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
  ::unlink(path_.c_str());
}

void RunChannel::Serve() {
  for (;;) {
    std::array<pollfd, 2> fds = {pollfd{stop_.get(), POLLIN, 0},
                                 pollfd{listener_.get(), POLLIN, 0}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
    if (fds[0].revents != 0) return;
    if (fds[1].revents == 0) continue;
    const UniqueFd peer(
        ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (peer.valid()) Answer(peer.get());
  }
}

/// One request for each connection, so that a peer that stays silent keeps the
/// others waiting for a short time only.
void RunChannel::Answer(int peer) {
  const auto request = ReadFrame(
      peer, kRequestMax, std::chrono::steady_clock::now() + kPeerPatience);
  if (!request || !*request) return;
  const Json& header = (*request)->header;
  Frame reply;
  const Status answered = [&]() -> Status {
    const std::string name = GetBytes(header, "request");
    if (name == kMark) {
      const Savepoint mark = TRY(client_.MakeSavepoint(""));
      reply.header["savepoint"] = EncodeBytes(mark.name);
      marks_.insert(mark.name);
      return {};
    }
    if (name == kBack) {
      // What was there before the run is not the command's to take back.
      const std::string savepoint = GetBytes(header, "savepoint");
      if (!marks_.contains(savepoint)) return Fail(EPERM, "savepoint");
      TRY(client_.Rollback(savepoint));
      return {};
    }
    return Fail(EINVAL, "unknown request");
  }();
  if (!answered) reply.header["error"] = ToJson(answered.error());
  std::ignore = WriteFrame(peer, reply);
}

bool IsInRun() { return std::getenv(kRunVariable) != nullptr; }

Result<int> RunNested(const Context& context, const RunArguments& arguments) {
  const auto begin = std::chrono::steady_clock::now();
  std::string mark;
  {
    OuterRun outer = TRY(OuterRun::Connect());
    mark = TRY(outer.Mark());
  }
  RunReport report;
  const auto execute = [&](const std::vector<std::string>& command) -> Status {
    const Ended ended = TRY(RunPlain(
        command, context.directory, std::nullopt,
        {.timeout_ms = arguments.timeout_ms, .needed = {}, .on_pipe = {}}));
    report.code = ended.code;
    report.why = ended.why == Ended::Why::kTimeout
                     ? "timeout"
                     : "exit " + std::to_string(ended.code);
    return {};
  };
  TRY(execute(arguments.command));
  for (const std::string& validator : arguments.validators) {
    if (report.code != 0) break;
    TRY(execute({"sh", "-c", validator}));
    if (report.code == 0) continue;
    report.why = "`" + validator + "` failed (" + report.why + ")";
    report.code = 5;
  }
  const Settle settle =
      report.code == 0 ? arguments.on_success : arguments.on_failure;
  if (settle == Settle::kDiscard) {
    OuterRun outer = TRY(OuterRun::Connect());
    TRY(outer.Back(mark));
  }
  report.total_ms = ElapsedMs(begin);
  if (settle == Settle::kDiscard) {
    report.outcome = "rolled back";
    Say(OutcomeLine(report));
  } else {
    Say("done in " + Seconds(report.total_ms) +
        "; the run around it decides about the changes");
  }
  return report.code;
}

}  // namespace txfs::cli
