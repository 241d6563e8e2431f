#include "cli/shell/syntax.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "cli/output/text.h"
#include "journal/support/unique_fd.h"

namespace txfs::cli {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// Not by PATH, which may lead into a workspace.
constexpr std::array<const char*, 2> kParsers{"/usr/bin/shfmt",
                                              "/usr/local/bin/shfmt"};
/// A tree takes some 300 bytes for each byte of dense text.
constexpr size_t kMaxTree = size_t{32} << 20;
constexpr size_t kMaxComplaint = 300;
constexpr std::string_view kInput = "<standard input>:";
constexpr const char* kInstall = "install it: apt install shfmt";

Result<const char*> FindParser() {
  for (const char* path : kParsers) {
    if (::access(path, X_OK) == 0) return path;
  }
  return Fail(0, "shfmt, which parses shell text, is not installed", kInstall);
}

Result<UniqueFd> TextFile(std::string_view text) {
  UniqueFd fd(::memfd_create("txfs-shell", MFD_CLOEXEC));
  if (!fd.valid()) return Fail(errno, "memfd_create");
  while (!text.empty()) {
    const ssize_t written = ::write(fd.get(), text.data(), text.size());
    if (written < 0) return Fail(errno, "write to memory");
    text.remove_prefix(static_cast<size_t>(written));
  }
  if (::lseek(fd.get(), 0, SEEK_SET) != 0) return Fail(errno, "lseek");
  return fd;
}

std::string FirstLineOf(int fd) {
  std::string text(kMaxComplaint, '\0');
  const ssize_t size = ::pread(fd, text.data(), text.size(), 0);
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return EscapeControls(text.substr(0, text.find('\n')));
}

/// Whether `complaint` begins as "2:7: ...", after kInput in some versions.
bool IsAboutText(std::string_view complaint) {
  if (complaint.starts_with(kInput)) complaint.remove_prefix(kInput.size());
  const size_t digits = complaint.find_first_not_of("0123456789");
  return digits != 0 && digits < complaint.size() && complaint[digits] == ':';
}

/// The lines of `text` before the one that `complaint` is about.
std::string_view LinesBefore(std::string_view text,
                             std::string_view complaint) {
  if (complaint.starts_with(kInput)) complaint.remove_prefix(kInput.size());
  size_t line = 0;
  for (const char c : complaint.substr(0, complaint.find(':'))) {
    if (c < '0' || c > '9' || line > kMaxShellText) return "";
    line = line * 10 + static_cast<size_t>(c - '0');
  }
  size_t end = 0;
  for (; line > 1; --line) {
    const size_t at = text.find('\n', end);
    if (at == std::string_view::npos) break;
    end = at + 1;
  }
  return text.substr(0, end);
}

nanoseconds InNanoseconds(const timeval& time) {
  return std::chrono::seconds(time.tv_sec) +
         std::chrono::microseconds(time.tv_usec);
}

/// A running parser; ended and waited for by the destructor, which takes what
/// it used from `budget`.
class Parser {
 public:
  explicit Parser(ParserBudget& budget) : budget_(budget) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
  }
  ~Parser() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      Wait();
    }
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&actions_);
  }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  Status Start(const char* program, int in, int out, int err) {
    ::posix_spawn_file_actions_adddup2(&actions_, in, STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, out, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, err, STDERR_FILENO);
    ::posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
    // It reads no configuration where the command happens to run.
    ::posix_spawn_file_actions_addchdir_np(&actions_, "/");
    sigset_t none;
    sigset_t ignored;
    sigemptyset(&none);
    sigemptyset(&ignored);
    sigaddset(&ignored, SIGPIPE);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &ignored);
    ::posix_spawnattr_setflags(&attributes_,
                               POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    std::array<std::string, 3> words{program, "-ln=bash", "-tojson"};
    std::array<char*, 4> arguments{words[0].data(), words[1].data(),
                                   words[2].data(), nullptr};
    // Its garbage is collected by its end.
    std::array<std::string, 3> variables{"PATH=/usr/bin:/bin", "GOGC=off",
                                         "GOMEMLIMIT=512MiB"};
    std::array<char*, 4> environment{variables[0].data(), variables[1].data(),
                                     variables[2].data(), nullptr};
    const int error = ::posix_spawn(&pid_, program, &actions_, &attributes_,
                                    arguments.data(), environment.data());
    if (error == 0) return {};
    pid_ = 0;
    return Fail(error, std::string("cannot start ") + program);
  }

  /// Everything up to the end of `fd`, which the parser writes to.
  [[nodiscard]] Result<std::string> ReadUntilEnd(int fd) const {
    std::string text;
    std::vector<char> buffer(size_t{64} << 10);
    for (;;) {
      const auto left = std::chrono::duration_cast<milliseconds>(
          std::min(budget_.deadline - Clock::now(),
                   Clock::duration(budget_.processor - Used())));
      if (left.count() <= 0) return Fail(0, "the text takes long to parse");
      pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
      const int polled = ::poll(&ready, 1, static_cast<int>(left.count()));
      if (polled == 0 || (polled < 0 && errno == EINTR)) continue;
      const ssize_t size = ::read(fd, buffer.data(), buffer.size());
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) return Fail(errno, "read from shfmt");
      if (size == 0) return text;
      text.append(buffer.data(), static_cast<size_t>(size));
      if (text.size() > kMaxTree) return Fail(0, "the text is too complex");
    }
  }

  /// The status of wait(2).
  int Wait() {
    int status = 0;
    rusage used{};
    while (::wait4(pid_, &status, 0, &used) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    budget_.processor -=
        InNanoseconds(used.ru_utime) + InNanoseconds(used.ru_stime);
    return status;
  }

 private:
  [[nodiscard]] nanoseconds Used() const {
    clockid_t clock{};
    timespec used{};
    if (::clock_getcpuclockid(pid_, &clock) != 0 ||
        ::clock_gettime(clock, &used) != 0) {
      return {};
    }
    return std::chrono::seconds(used.tv_sec) + nanoseconds(used.tv_nsec);
  }

  ParserBudget& budget_;
  pid_t pid_ = 0;
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace

Result<Json> ParseShell(std::string_view text, ParserBudget& budget,
                        ParseFailure& failure) {
  failure = {.kind = ParseFailure::Kind::kBound, .lines_before = {}};
  if (text.size() > kMaxShellText) {
    return Fail(0, "the text has more than 1 MiB");
  }
  if (text.contains('\0')) return Fail(0, "the text has a zero byte");
  failure.kind = ParseFailure::Kind::kParser;
  const char* program = TRY(FindParser());
  const UniqueFd input = TRY(TextFile(text));
  const UniqueFd complaint = TRY(TextFile(""));
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Fail(errno, "pipe");
  UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  Parser parser(budget);
  TRY(parser.Start(program, input.get(), to.get(), complaint.get()));
  to.Reset();
  failure.kind = ParseFailure::Kind::kBound;
  const std::string tree = TRY(parser.ReadUntilEnd(from.get()));
  failure.kind = ParseFailure::Kind::kParser;
  if (const int status = parser.Wait(); status != 0) {
    const std::string why = FirstLineOf(complaint.get());
    if (!IsAboutText(why)) {
      return Fail(0,
                  std::string(program) + " does not work" +
                      (why.empty() ? std::string() : ": " + why),
                  kInstall);
    }
    failure.kind = ParseFailure::Kind::kInvalid;
    failure.lines_before = LinesBefore(text, why);
    return Fail(0, "the text cannot be parsed: " + why);
  }
  Json json = Json::parse(tree, nullptr, false);
  if (json.is_object()) return json;
  return Fail(0, std::string(program) + " prints no syntax tree", kInstall);
}

}  // namespace txfs::cli
