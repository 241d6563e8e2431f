#include "cli/run/proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <semaphore>
#include <string_view>
#include <tuple>

#include "cli/output/paths.h"
#include "cli/output/text.h"
#include "cli/run/network_names.h"
#include "cli/run/process.h"
#include "cli/run/sandbox.h"
#include "cli/run/sandbox_probes.h"
#include "journal/support/thread.h"

namespace txfs::cli {
namespace {

constexpr const char* kTinyproxy = "tinyproxy";
constexpr const char* kProbeName = "network-proxy";
constexpr const char* kLocalhost = "localhost";

/// Where a command finds the proxy.
constexpr uint16_t kPort = 3128;

/// How long the proxy may take to start, milliseconds.
constexpr int kStartMs = 20'000;

/// Connections of a sandbox at a time; others wait.
constexpr int kMostConnections = 200;

/// Names that are counted each for itself.
constexpr size_t kMostRefused = 1000;
constexpr const char* kOtherRefused = "(others)";

/// Lines of the log that matter.
constexpr std::string_view kStarted = "Accepting connections.";
constexpr std::string_view kRefused = "Proxying refused on filtered domain \"";

/// Descriptors of the proxy's configuration, as bwrap gets them.
constexpr int kConfigFd = 3;
constexpr int kFilterFd = 4;

Result<sockaddr_in> ChooseAddress() {
  std::array<uint8_t, 3> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) !=
      static_cast<ssize_t>(bytes.size())) {
    return Fail(errno, "getrandom");
  }
  uint32_t host = INADDR_LOOPBACK >> IN_CLASSA_NSHIFT;
  for (const uint8_t byte : bytes) host = host << 8 | (byte % 254U + 1);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(host);
  socklen_t size = sizeof address;
  // The proxy wants a port, not a socket. No other program looks for one at
  // this address.
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (!fd.valid() || ::bind(fd.get(), any, size) != 0 ||
      ::getsockname(fd.get(), any, &size) != 0) {
    return Fail(errno, "no port for the proxy of the run");
  }
  return address;
}

std::string HostOf(const sockaddr_in& address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return text.data();
}

/// The first of `variables` that is set and not empty; else "".
std::string FirstOf(std::initializer_list<const char*> variables) {
  for (const char* name : variables) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return "";
}

/// The caller may be where only a proxy has a way out.
Result<std::string> Upstream(const std::vector<std::string>& names) {
  const std::string url =
      FirstOf({"https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"});
  if (url.empty()) return "";
  return UpstreamLines(names, url, FirstOf({"no_proxy", "NO_PROXY"}));
}

/// Only the relay comes from this address.
std::string Configuration(const sockaddr_in& address) {
  const std::string host = HostOf(address);
  return "Listen " + host + "\nPort " +
         std::to_string(ntohs(address.sin_port)) + "\nAllow " + host +
         "\nTimeout 3600\nMaxClients " + std::to_string(kMostConnections + 50) +
         "\nLogLevel Info\nDisableViaHeader Yes\n"
         "Filter \"/tinyproxy.filter\"\nFilterDefaultDeny Yes\n";
}

std::string Filter(const std::vector<std::string>& names) {
  std::string filter;
  for (const std::string& name : names) filter += HostPattern(name) + "\n";
  return filter;
}

/// bwrap with the proxy, which parses what comes from the sandbox: it gets the
/// network, and of the files what it needs to run and to resolve names.
std::vector<std::string> ProxyWords(const std::string& program) {
  std::vector<std::string> words = {"bwrap",
                                    "--die-with-parent",
                                    "--unshare-user",
                                    "--unshare-pid",
                                    "--unshare-ipc",
                                    "--unshare-uts",
                                    "--cap-drop",
                                    "ALL",
                                    "--disable-userns",
                                    "--clearenv",
                                    "--unshare-cgroup-try",
                                    "--dev",
                                    "/dev",
                                    "--tmpfs",
                                    "/run"};
  for (const char* path :
       {"/usr", "/etc", "/bin", "/lib", "/lib32", "/lib64", "/nix"}) {
    words.insert(words.end(), {"--ro-bind-try", path, path});
  }
  for (const char* path : kResolverPaths) {
    words.insert(words.end(), {"--ro-bind-try", path, path});
  }
  // It may be a link to anywhere.
  const std::string names = ResolvePath("/", "/etc/resolv.conf");
  if (!IsWithin(names, "/etc") && !IsWithin(names, "/run")) {
    words.insert(words.end(), {"--ro-bind-try", names, names});
  }
  words.insert(
      words.end(),
      {"--ro-bind", program, "/tinyproxy", "--ro-bind-data",
       std::to_string(kConfigFd), "/tinyproxy.conf", "--ro-bind-data",
       std::to_string(kFilterFd), "/tinyproxy.filter", "--remount-ro", "/",
       "--chdir", "/", "--", "/tinyproxy", "-d", "-c", "/tinyproxy.conf"});
  return words;
}

/// The begin of a process that dies with the supervisor and gets no signal of
/// its terminal. It keeps `kept` alone, as descriptors 3 and so on, and says
/// what it says to `output`; -1: to nobody.
void BecomeHelper(pid_t supervisor, const std::vector<int>& kept, int output) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != supervisor) ::_exit(1);
  ::setsid();
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  // Numbers that none of the targets has.
  constexpr int kBeyond = 100;
  std::vector<int> moved;
  for (const int fd : kept) moved.push_back(::fcntl(fd, F_DUPFD, kBeyond));
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const int said = output < 0 ? null : ::fcntl(output, F_DUPFD, kBeyond);
  ::dup2(null, STDIN_FILENO);
  ::dup2(said, STDOUT_FILENO);
  ::dup2(said, STDERR_FILENO);
  int at = STDERR_FILENO;
  for (const int fd : moved) ::dup2(fd, ++at);
  ::close_range(static_cast<unsigned>(at) + 1, ~0U, 0);
}

void SetNoDelay(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool SendAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

/// Copies what comes from `from` to `to`, until its end.
void CopyOneWay(int from, int to) {
  std::array<char, 1 << 16> piece{};
  bool is_open = true;
  for (;;) {
    const ssize_t n = ::recv(from, piece.data(), piece.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    // If nobody takes it, the sender may still want to read an answer, which
    // a reset of the connection would take away.
    is_open = is_open && SendAll(to, {piece.data(), static_cast<size_t>(n)});
  }
  ::shutdown(to, SHUT_WR);
}

void ServeConnection(const UniqueFd& client, const sockaddr_in& proxy) {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in from = proxy;
  from.sin_port = 0;
  if (!fd.valid() ||
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&from), sizeof from) !=
          0 ||
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&proxy),
                sizeof proxy) != 0) {
    return;
  }
  SetNoDelay(fd.get());
  SetNoDelay(client.get());
  std::thread back = StartThread([&] { CopyOneWay(fd.get(), client.get()); });
  if (!back.joinable()) return;
  CopyOneWay(client.get(), fd.get());
  back.join();
}

[[noreturn]] void RunRelay(int listener, const sockaddr_in& proxy) {
  std::counting_semaphore<kMostConnections> free(kMostConnections);
  for (;;) {
    free.acquire();
    const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0 && errno != EINTR && errno != ECONNABORTED) ::_exit(1);
    const auto client = std::make_shared<UniqueFd>(fd);
    std::thread thread;
    if (client->valid()) {
      thread = StartThread([client, &proxy, &free] {
        ServeConnection(*client, proxy);
        free.release();
      });
    }
    if (thread.joinable()) {
      thread.detach();
    } else {
      free.release();
    }
  }
}

UniqueFd OpenPid(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

bool HasEnded(const UniqueFd& process) {
  pollfd ended{process.get(), POLLIN, 0};
  return process.valid() && ::poll(&ended, 1, 0) == 1;
}

void AwaitPid(pid_t pid) {
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<std::string> FindTinyproxy() {
  std::string program = FindProgram(kTinyproxy);
  if (!program.empty()) return program;
  return Fail(0, "tinyproxy, which --network needs for names, is not in PATH",
              "install it: apt install tinyproxy-bin");
}

}  // namespace

UniqueFd ListenForProxy() {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ifreq loopback{};
  std::strncpy(loopback.ifr_name, "lo", IFNAMSIZ - 1);
  loopback.ifr_flags = IFF_UP | IFF_RUNNING;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(kPort);
  if (!fd.valid() || ::ioctl(fd.get(), SIOCSIFFLAGS, &loopback) != 0 ||
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address),
             sizeof address) != 0 ||
      ::listen(fd.get(), SOMAXCONN) != 0) {
    return {};
  }
  return fd;
}

NetworkProxy::NetworkProxy(pid_t pid, UniqueFd log)
    : pid_(pid), process_(OpenPid(pid)), log_(std::move(log)) {}

Status NetworkProxy::CheckPrograms() {
  TRY(FindTinyproxy());
  return {};
}

Result<std::unique_ptr<NetworkProxy>> NetworkProxy::Start(
    const std::vector<std::string>& names) {
  const std::string program = TRY(FindTinyproxy());
  const sockaddr_in address = TRY(ChooseAddress());
  const std::string upstream = TRY(Upstream(names));
  const UniqueFd config = TRY(MemoryFile(Configuration(address) + upstream));
  const UniqueFd filter = TRY(MemoryFile(Filter(names)));
  std::vector<std::string> words = ProxyWords(program);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Fail(errno, "pipe");
  UniqueFd log(ends[0]), said(ends[1]);
  const pid_t supervisor = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return Fail(errno, "cannot start a process");
  if (pid == 0) {
    BecomeHelper(supervisor, {config.get(), filter.get()}, said.get());
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  said.Reset();
  std::unique_ptr<NetworkProxy> proxy(new NetworkProxy(pid, std::move(log)));
  proxy->address_ = address;
  for (const char* own : {kLocalhost, "127.0.0.1", "::1"}) {
    if (std::ranges::find(names, own) != names.end()) continue;
    if (!proxy->direct_.empty()) proxy->direct_ += ',';
    proxy->direct_ += own;
  }
  TRY(proxy->AwaitStart());
  // It must not take the signals of the supervisor, also not SIGCHLD.
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  proxy->reader_ = StartThread([raw = proxy.get()] { raw->ReadLog(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!proxy->reader_.joinable()) return Fail(EAGAIN, "cannot start a thread");
  return proxy;
}

NetworkProxy::~NetworkProxy() { std::ignore = Stop(); }

Status NetworkProxy::AwaitStart() {
  std::array<char, 4096> piece{};
  for (;;) {
    pollfd ready{log_.get(), POLLIN, 0};
    const int found = ::poll(&ready, 1, kStartMs);
    if (found < 0 && errno == EINTR) continue;
    const ssize_t n =
        found > 0 ? ::read(log_.get(), piece.data(), piece.size()) : -1;
    if (n > 0) {
      text_.append(piece.data(), static_cast<size_t>(n));
      if (TakeLines()) return {};
      continue;
    }
    const std::string why =
        n < 0 ? "it does not answer"
              : (text_.empty() ? last_line_ : std::exchange(text_, {}));
    return Fail(
        0, "the proxy for --network does not start: " + EscapeControls(why),
        "`txfs doctor` tries what a run needs; --network=none needs no "
        "proxy");
  }
}

void NetworkProxy::ReadLog() {
  std::array<char, 4096> piece{};
  for (;;) {
    const ssize_t n = ::read(log_.get(), piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    text_.append(piece.data(), static_cast<size_t>(n));
    TakeLines();
  }
}

bool NetworkProxy::TakeLines() {
  bool has_started = false;
  for (size_t end; (end = text_.find('\n')) != std::string::npos;) {
    last_line_ = text_.substr(0, end);
    text_.erase(0, end + 1);
    has_started = has_started || last_line_.ends_with(kStarted);
    TakeLine(last_line_);
  }
  return has_started;
}

/// "NOTICE    Nov 27 07:24:03.124 [16769]: MESSAGE".
void NetworkProxy::TakeLine(std::string_view line) {
  const size_t begin = line.find("]: ");
  if (begin == std::string_view::npos) return;
  line.remove_prefix(begin + 3);
  if (!line.starts_with(kRefused)) return;
  line.remove_prefix(kRefused.size());
  if (line.ends_with('"')) line.remove_suffix(1);
  while (line.ends_with('.')) line.remove_suffix(1);
  std::string name = ToUtf8(line.empty() ? "(no name)" : line);
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const bool is_one_more =
      refused_.size() >= kMostRefused && !refused_.contains(name);
  ++refused_[is_one_more ? kOtherRefused : name];
}

void NetworkProxy::SetVariables(
    std::vector<std::pair<std::string, std::string>>& environment) const {
  const auto is_of_proxies = [](std::string name) {
    std::ranges::transform(name, name.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return name == "all_proxy" || name == "http_proxy" ||
           name == "https_proxy" || name == "ftp_proxy" || name == "no_proxy";
  };
  std::erase_if(environment, [&](const auto& variable) {
    return is_of_proxies(variable.first);
  });
  const std::string url = "http://127.0.0.1:" + std::to_string(kPort);
  for (const char* name :
       {"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"}) {
    environment.emplace_back(name, url);
  }
  for (const char* name : {"no_proxy", "NO_PROXY"}) {
    environment.emplace_back(name, direct_);
  }
}

Result<int> NetworkProxy::StartRelay(UniqueFd listener) {
  StopRelay();
  const pid_t supervisor = ::getpid();
  relay_ = ::fork();
  if (relay_ < 0) return Fail(errno, "cannot start a process");
  if (relay_ == 0) {
    BecomeHelper(supervisor, {listener.get()}, -1);
    ::prctl(PR_SET_NAME, "txfs-relay");
    RunRelay(STDERR_FILENO + 1, address_);
  }
  relay_process_ = OpenPid(relay_);
  return relay_process_.get();
}

void NetworkProxy::StopRelay() {
  if (relay_ < 0) return;
  lost_relay_ = lost_relay_ || HasEnded(relay_process_);
  ::kill(relay_, SIGKILL);
  AwaitPid(std::exchange(relay_, -1));
  relay_process_.Reset();
}

bool NetworkProxy::is_lost() const {
  return lost_relay_ || HasEnded(process_) || HasEnded(relay_process_);
}

std::map<std::string, uint64_t> NetworkProxy::Stop() {
  StopRelay();
  if (pid_ > 0) {
    // With pid 1 of its sandbox everything in it ends, and then bwrap.
    const pid_t first = ChildOf(pid_);
    ::kill(first > 0 ? first : pid_, SIGKILL);
    AwaitPid(std::exchange(pid_, -1));
  }
  if (reader_.joinable()) reader_.join();
  return refused_;
}

Probe ProbeProxy() {
  if (FindProgram("bwrap").empty()) {
    return {kProbeName, Probe::State::kNote,
            "no proxy for --network starts without bwrap", "see bwrap"};
  }
  const auto proxy = NetworkProxy::Start({kLocalhost});
  if (proxy) {
    return {kProbeName, Probe::State::kOk,
            "a proxy lets the names of --network through"};
  }
  Probe probe = FailedProbe(kProbeName, proxy.error());
  probe.state = Probe::State::kNote;
  return probe;
}

}  // namespace txfs::cli
