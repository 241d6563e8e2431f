#include "cli/run/nested.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <utility>

#include "cli/output/errors.h"
#include "cli/output/paths.h"
#include "cli/output/summary_format.h"
#include "cli/protocol/framing.h"
#include "cli/protocol/wire.h"
#include "cli/run/process.h"
#include "cli/run/report.h"
#include "cli/run/run_transaction.h"
#include "journal/support/thread.h"

namespace txfs::cli {
namespace {

constexpr const char* kBegin = "begin";
constexpr const char* kEnd = "end";
constexpr const char* kBack = "back";
constexpr const char* kJudged = "judge";
constexpr const char* kMarked = "call_mark";
constexpr std::chrono::seconds kPeerPatience{10};

/// How long a process that has closed its connection may take to end,
/// milliseconds.
constexpr int kEndPatienceMs = 1000;

/// Connections at a time.
constexpr size_t kMostPeers = 64;

/// The variable with the savepoint of the run in a run around a command.
constexpr const char* kInsideVariable = "TXFS_RUN_SAVEPOINT";

constexpr int kFailedValidator = 5;

Result<sockaddr_un> SocketAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Fail(ENAMETOOLONG, "socket " + path);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

Result<UniqueFd> ConnectToRun() {
  const char* path = std::getenv(kRunVariable);
  const sockaddr_un address = TRY(SocketAddress(path == nullptr ? "" : path));
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid() ||
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                sizeof address) != 0) {
    return Fail(errno, "cannot reach the run around this command",
                std::string("unset ") + kRunVariable + " if there is none");
  }
  return fd;
}

/// The requests that the run answers or passes on, each with one frame.
class RunConnection : public Connection {
 public:
  RunConnection(UniqueFd fd, int timeout_ms)
      : fd_(std::move(fd)), timeout_(timeout_ms) {}

 protected:
  Status Exchange(const Json& request, const FrameSink& sink) override {
    Frame frame;
    frame.header = request;
    TRY(WriteFrame(fd_.get(), frame));
    const auto reply = TRY(ReadFrame(
        fd_.get(), kReplyMax, std::chrono::steady_clock::now() + timeout_));
    if (!reply) return Fail(EPIPE, "the run around this command has ended");
    return sink(*reply);
  }

 private:
  const UniqueFd fd_;
  const std::chrono::milliseconds timeout_;
};

/// A nested run, as its connection to the outer one. At its end, the outer one
/// goes back to the savepoint unless End was called.
class NestedRun {
 public:
  static Result<NestedRun> Begin() {
    NestedRun run(TRY(ConnectToRun()));
    const Json reply = TRY(
        run.Ask({{"request", kBegin}, {"inside", EncodeBytes(run.around_)}}));
    run.savepoint_ = GetBytes(reply, "savepoint");
    return run;
  }

  /// Executes `work`; what it starts belongs to this run.
  template <class Work>
  Status Do(Work work) const {
    ::setenv(kInsideVariable, savepoint_.c_str(), 1);
    const Status done = work();
    ::setenv(kInsideVariable, around_.c_str(), 1);
    return done;
  }

  Status End() { return Finish(kEnd); }
  Status Back() { return Finish(kBack); }

 private:
  explicit NestedRun(UniqueFd fd) : fd_(std::move(fd)) {
    const char* around = std::getenv(kInsideVariable);
    if (around != nullptr) around_ = around;
  }

  Status Finish(const char* request) {
    TRY(Ask({{"request", request}}));
    return {};
  }

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
  std::string around_;  ///< savepoint of the nested run around; "": none
  std::string savepoint_;
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

RunChannel::~RunChannel() { Stop(); }

void RunChannel::Stop() {
  const uint64_t one = 1;
  std::ignore = ::write(stop_.get(), &one, sizeof one);
  if (!thread_.joinable()) return;
  thread_.join();
  ::unlink(path_.c_str());
}

Status RunChannel::Close() {
  Stop();
  if (!active_.empty()) {
    has_lost_ = true;
    std::ignore = GoBack(active_.front());
    active_.clear();
  }
  if (has_lost_) {
    Say("warning: a run in this run was stopped before its end, and the "
        "changes since its begin are rolled back");
  }
  return failed_;
}

void RunChannel::Serve() {
  for (;;) {
    std::vector<pollfd> fds = {{stop_.get(), POLLIN, 0},
                               {listener_.get(), POLLIN, 0}};
    for (const Peer& peer : peers_) fds.push_back({peer.fd.get(), POLLIN, 0});
    if (::poll(fds.data(), fds.size(), -1) < 0) {
      if (errno == EINTR) continue;
      return;
    }
    if (fds[0].revents != 0) return;
    for (size_t i = peers_.size(); i-- > 0;) {
      if (fds[i + 2].revents == 0 || Answer(peers_[i])) continue;
      Lose(peers_[i]);
      peers_.erase(peers_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (fds[1].revents != 0) Accept();
  }
}

void RunChannel::Accept() {
  Peer peer;
  peer.fd =
      UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!peer.fd.valid() || peers_.size() >= kMostPeers) return;
  ucred who{};
  socklen_t size = sizeof who;
  if (::getsockopt(peer.fd.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) == 0) {
    peer.process =
        UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, who.pid, 0)));
  }
  peers_.push_back(std::move(peer));
}

bool RunChannel::Answer(Peer& peer) {
  const auto request =
      ReadFrame(peer.fd.get(), kRequestMax,
                std::chrono::steady_clock::now() + kPeerPatience);
  if (!request || !*request) return false;
  const Json& header = (*request)->header;
  Frame reply;
  const Status answered = [&]() -> Status {
    const std::string name = GetBytes(header, "request");
    if (name == kBegin) {
      const std::string inside = GetBytes(header, "inside");
      const std::string made = TRY(Begin(peer, inside));
      reply.header["savepoint"] = EncodeBytes(made);
      return {};
    }
    if (name == kEnd || name == kBack) return Leave(peer, name == kBack);
    if (name == kJudged) {
      reply.header["verdict"] = ToJson(TRY(client_.Judge(header)));
      return {};
    }
    if (name == kMarked) {
      const CallMark mark = CallMarkFromJson(GetMember(header, "mark"));
      reply.header["number"] = TRY(client_.MarkCall(mark));
      return {};
    }
    return Fail(EINVAL, "unknown request");
  }();
  if (!answered) reply.header["error"] = ToJson(answered.error());
  return WriteFrame(peer.fd.get(), reply).has_value();
}

/// `inside`: the savepoint of the run around the peer; "": there is none.
Result<std::string> RunChannel::Begin(Peer& peer, const std::string& inside) {
  TRY(failed_);
  if (!peer.savepoint.empty()) return Fail(EINVAL, "a second run");
  const std::string innermost = active_.empty() ? "" : active_.back();
  if (inside != innermost) {
    const bool is_over =
        !inside.empty() && std::ranges::find(active_, inside) == active_.end();
    if (is_over) return Fail(0, "the run around this command has ended");
    return Fail(ErrorKind::kBusy, EBUSY,
                "another run in the run around this command has not ended",
                "begin this one after its end: their savepoints would overlap");
  }
  const std::string name = TRY(MakeRunName());
  peer.savepoint = TRY(client_.MakeSavepoint(name)).name;
  active_.push_back(peer.savepoint);
  return peer.savepoint;
}

/// Ends the run of `peer`.
Status RunChannel::Leave(Peer& peer, bool back) {
  const std::string savepoint = std::exchange(peer.savepoint, "");
  auto first = std::ranges::find(active_, savepoint);
  if (first == active_.end()) {
    return Fail(0, "this run was rolled back with the one around it");
  }
  // Its command has ended, and with it the runs in this one.
  if (!back && ++first != active_.end()) has_lost_ = true;
  const Status done = first == active_.end() ? Status() : GoBack(*first);
  active_.erase(std::ranges::find(active_, savepoint), active_.end());
  return done;
}

/// The connection of `peer` has ended.
void RunChannel::Lose(Peer& peer) {
  if (std::ranges::find(active_, peer.savepoint) == active_.end()) return;
  // Its end kills its command, which writes until then.
  pollfd ended{peer.process.get(), POLLIN, 0};
  ::poll(&ended, 1, kEndPatienceMs);
  has_lost_ = true;
  std::ignore = Leave(peer, true);
}

Status RunChannel::GoBack(const std::string& savepoint) {
  auto done = client_.Rollback(savepoint);
  if (done) return {};
  failed_ = Fail(
      done.error().code,
      "a run in this run could not be rolled back: " + done.error().message,
      done.error().hint);
  return failed_;
}

bool IsInRun() { return std::getenv(kRunVariable) != nullptr; }

Result<std::unique_ptr<Connection>> ReachRunAround(int timeout_ms) {
  return std::make_unique<RunConnection>(TRY(ConnectToRun()), timeout_ms);
}

Result<int> RunNested(const Context& context, const RunArguments& arguments) {
  const auto begin = std::chrono::steady_clock::now();
  UniqueFd report_file;
  if (!arguments.json.empty()) {
    report_file =
        TRY(OpenReport(MakeAbsolute(context.directory, arguments.json)));
  }
  for (const std::string& word : arguments.env) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) continue;
    ::setenv(word.substr(0, equals).c_str(), word.substr(equals + 1).c_str(),
             1);
  }
  RunReport report;
  report.command = arguments.command;
  const auto execute = [&](const std::vector<std::string>& command,
                           bool output_to_errors) -> Status {
    const Ended ended = TRY(RunPlain(command, context.directory, std::nullopt,
                                     {.timeout_ms = arguments.timeout_ms,
                                      .needed = {},
                                      .on_pipe = {},
                                      .output_to_errors = output_to_errors}));
    report.code = ended.code;
    report.why = "";
    if (ended.code != 0) report.why = "exit " + std::to_string(ended.code);
    if (ended.why == Ended::Why::kTimeout) report.why = "timeout";
    return {};
  };
  const auto finish = [&] {
    if (report_file.valid()) {
      const Status written =
          WriteReport(report, report_file.get(), arguments.json);
      if (!written) Say("warning: " + written.error().ToString());
    }
    return report.code;
  };
  const auto validate = [&]() -> Status {
    for (const std::string& validator : arguments.validators) {
      TRY(execute({"sh", "-c", validator}, true));
      if (report.code == 0) continue;
      report.why = "`" + validator + "` failed (" + report.why + ")";
      report.code = kFailedValidator;
      return {};
    }
    return {};
  };
  report.judgement = TRY(JudgeRun(context, arguments));
  if (IsRefused(*report.judgement)) {
    report.outcome = "refused";
    report.why = WhyRefused(*report.judgement);
    report.code = kRefusedCode;
    SayRefused(arguments, *report.judgement);
    return finish();
  }
  NestedRun run = TRY(NestedRun::Begin());
  const Status worked = run.Do([&]() -> Status {
    TRY(execute(arguments.command, false));
    if (report.code != 0 || arguments.validators.empty()) return {};
    NestedRun validation = TRY(NestedRun::Begin());
    TRY(validation.Do(validate));
    return validation.Back();
  });
  TRY(worked);
  const Settle settle =
      report.code == 0 ? arguments.on_success : arguments.on_failure;
  const bool goes_back = settle == Settle::kDiscard;
  TRY(goes_back ? run.Back() : run.End());
  report.total_ms = ElapsedMs(begin);
  report.outcome = goes_back ? "rolled back" : "done";
  if (goes_back) {
    Say(OutcomeLine(report));
  } else {
    Say("done in " + Seconds(report.total_ms) +
        "; the run around it decides about the changes");
  }
  return finish();
}

}  // namespace txfs::cli
