#include "cli/hook/hook_probe.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <set>

#include "cli/hook/hook.h"
#include "cli/hook/installed.h"
#include "cli/output/text.h"
#include "cli/run/process.h"
#include "cli/run/sandbox_probes.h"

namespace txfs::cli {
namespace {

/// As long as hosts wait.
constexpr uint64_t kHookMs = 30'000;
constexpr size_t kMaxAnswer = 4096;
/// What the built-in rules refuse in any place.
constexpr const char* kSample = "git push --force";
constexpr const char* kRemedy =
    "put this version of txfs in PATH, where the host looks for it";

/// A call of a shell, with the members of every host. A rule asks about it, so
/// that it leaves no savepoint.
std::string SampleCall(const HookHost& host, const std::string& directory) {
  const auto shell =
      std::ranges::find(host.tools, ToolKind::kShell, &HostTool::kind);
  const std::string tool(shell == host.tools.end() ? "" : shell->name);
  const Json arguments = {{"command", kSample}};
  return Dump(
      Json{{"hook_event_name",
            host.events.empty() ? "" : std::string(host.events.front().name)},
           {"cwd", ToUtf8(directory)},
           {"tool_name", tool},
           {"tool_input", arguments},
           {"toolName", tool},
           {"toolArgs", arguments.dump()},
           {"tool", tool},
           {"args", arguments},
           {"command", kSample}});
}

std::string DescriptorPath(const UniqueFd& fd) {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" +
         std::to_string(fd.get());
}

/// What the hook of `program` answers to `input`.
Result<HookOutput> CallHook(const std::string& program, const HookHost& host,
                            const std::string& directory,
                            const std::string& input) {
  const UniqueFd in = TRY(MemoryFile(input));
  const UniqueFd out = TRY(MemoryFile(""));
  const UniqueFd err = TRY(MemoryFile(""));
  const Ended ended =
      TRY(RunPlain({"sh", "-c",
                    R"(exec "$0" hook "$1" <)" + DescriptorPath(in) + " >" +
                        DescriptorPath(out) + " 2>" + DescriptorPath(err),
                    program, std::string(host.name)},
                   directory, std::nullopt,
                   {.timeout_ms = kHookMs, .needed = {}, .on_pipe = {}}));
  const auto read = [](const UniqueFd& fd) {
    std::string text(kMaxAnswer, '\0');
    const ssize_t size = ::pread(fd.get(), text.data(), text.size(), 0);
    text.resize(size > 0 ? static_cast<size_t>(size) : 0);
    return text;
  };
  return HookOutput{.out = read(out), .err = read(err), .code = ended.code};
}

Probe CannotWork(const HookHost& host, const std::string& meaning,
                 const std::string& remedy) {
  return {"hook-" + std::string(host.name), Probe::State::kNote, meaning,
          remedy};
}

Probe CallProgram(const std::string& program, const HookHost& host,
                  const std::string& directory) {
  using Steady = std::chrono::steady_clock;
  const std::string input = SampleCall(host, directory);
  const HookOutput expected = AnswerHook(host, input);
  const auto begin = Steady::now();
  const auto answer = CallHook(program, host, directory, input);
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(
      Steady::now() - begin);
  if (!answer) {
    return CannotWork(host, answer.error().ToString(), answer.error().hint);
  }
  if (answer->out != expected.out || answer->code != expected.code) {
    return CannotWork(
        host,
        program + " does not answer as this program does: it exits with " +
            std::to_string(answer->code) + " and prints " + answer->out +
            answer->err,
        kRemedy);
  }
  const HookOutput silence = host.write(host.read(ParseStrictly(input)), {});
  if (answer->out == silence.out && answer->code == silence.code) {
    return CannotWork(host,
                      program + " answers, and lets `" + kSample +
                          "` run: the rules that hold here do not refuse it",
                      "`txfs policy explain -- " + std::string(kSample) +
                          "` shows which rules are about it");
  }
  return {"hook-" + std::string(host.name), Probe::State::kOk,
          program + " refuses `" + kSample + "` in " +
              std::to_string(ms.count()) + " ms"};
}

bool IsSameFile(const std::string& a, const std::string& b) {
  struct stat one{};
  struct stat other{};
  return ::stat(a.c_str(), &one) == 0 && ::stat(b.c_str(), &other) == 0 &&
         one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/// Calls the program that an entry of `hook` names. A project's file may come
/// from another person: what it names besides the txfs in PATH is not run.
Probe ProbeProgram(const std::string& named, const InstalledHook& hook,
                   const HookHost& host, const std::string& directory) {
  const std::string in_path = FindProgram("txfs");
  if (named == "txfs" && in_path.empty()) {
    return CannotWork(host, "the hook is installed, and txfs is not in PATH",
                      kRemedy);
  }
  if (named == "txfs") return CallProgram(in_path, host, directory);
  const std::string begin = hook.file + " names the program " + named;
  if (!named.starts_with('/') || ::access(named.c_str(), X_OK) != 0) {
    return CannotWork(host,
                      begin + ", which is not the absolute path of a program",
                      hook.remedy);
  }
  const bool is_trusted = hook.scope == HookScope::kUser ||
                          IsSameFile(named, in_path) ||
                          IsSameFile(named, "/proc/self/exe");
  if (!is_trusted) {
    return CannotWork(host, begin + ", which is not the txfs in PATH",
                      hook.remedy);
  }
  return CallProgram(named, host, directory);
}

/// Of several programs and files, the first that fails.
Probe ProbeHook(const std::vector<InstalledHook>& hooks, const HookHost& host,
                const std::string& directory) {
  for (const InstalledHook& hook : hooks) {
    if (!hook.fault.empty()) {
      return CannotWork(host, hook.file + " " + hook.fault, hook.remedy);
    }
  }
  std::set<std::string> called;
  Probe last;
  for (const InstalledHook& hook : hooks) {
    for (const std::string& program : hook.programs) {
      if (called.contains(program)) continue;
      last = ProbeProgram(program, hook, host, directory);
      if (last.state != Probe::State::kOk) return last;
      called.insert(program);
    }
  }
  return last;
}

}  // namespace

std::vector<Probe> ProbeHooks(const std::string& directory) {
  std::vector<Probe> probes;
  for (const HookHost& host : HookHosts()) {
    const auto hooks = FindInstalled(host, directory);
    if (!hooks.empty()) probes.push_back(ProbeHook(hooks, host, directory));
  }
  return probes;
}

}  // namespace txfs::cli
