#include "cli/hook/hook_probe.h"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <optional>

#include "cli/hook/hook.h"
#include "cli/hook/install.h"
#include "cli/output/text.h"
#include "cli/run/process.h"
#include "cli/run/sandbox_probes.h"

namespace txfs::cli {
namespace {

/// As long as hosts wait.
constexpr uint64_t kHookMs = 30'000;
constexpr size_t kMaxAnswer = 4096;

/// A call of a shell, with the members of every host. A rule asks about it, so
/// that it leaves no savepoint.
std::string SampleCall(const HookHost& host, const std::string& directory) {
  const Json arguments = {{"command", "git push --force"}};
  return Dump(
      Json{{"hook_event_name",
            host.events.empty() ? "" : std::string(host.events.front().name)},
           {"cwd", ToUtf8(directory)},
           {"tool_name", "Bash"},
           {"tool_input", arguments},
           {"toolName", "bash"},
           {"toolArgs", arguments.dump()},
           {"tool", "bash"},
           {"args", arguments},
           {"command", "git push --force"}});
}

std::string DescriptorPath(const UniqueFd& fd) {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" +
         std::to_string(fd.get());
}

/// What `txfs hook`, as a shell finds it, answers to `input`.
Result<HookOutput> CallHook(const HookHost& host, const std::string& directory,
                            const std::string& input) {
  const UniqueFd in = TRY(MemoryFile(input));
  const UniqueFd out = TRY(MemoryFile(""));
  const UniqueFd err = TRY(MemoryFile(""));
  const Ended ended = TRY(RunPlain(
      {"sh", "-c",
       "exec txfs hook " + std::string(host.name) + " <" + DescriptorPath(in) +
           " >" + DescriptorPath(out) + " 2>" + DescriptorPath(err)},
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

Probe ProbeHook(const HookHost& host, const std::string& directory) {
  using Steady = std::chrono::steady_clock;
  const std::string name = "hook-" + std::string(host.name);
  const std::string remedy =
      "put this version of txfs in PATH, where the host looks for it";
  const std::string program = FindProgram("txfs");
  if (program.empty()) {
    return {name, Probe::State::kNote,
            "the hook is installed, and txfs is not in PATH", remedy};
  }
  const std::string input = SampleCall(host, directory);
  const HookOutput expected = AnswerHook(host, input);
  const auto begin = Steady::now();
  const auto answer = CallHook(host, directory, input);
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(
      Steady::now() - begin);
  if (!answer) {
    return {name, Probe::State::kNote, answer.error().ToString(),
            answer.error().hint};
  }
  if (answer->out != expected.out || answer->code != expected.code) {
    return {name, Probe::State::kNote,
            program + " does not answer as this program does: it exits with " +
                std::to_string(answer->code) + " and prints " + answer->out +
                answer->err,
            remedy};
  }
  return {name, Probe::State::kOk,
          program + " answers in " + std::to_string(ms.count()) + " ms"};
}

}  // namespace

std::vector<Probe> ProbeHooks(const std::string& directory) {
  std::vector<Probe> probes;
  for (const HookHost& host : HookHosts()) {
    if (IsHookInstalled(host, HookScope::kUser, directory) ||
        IsHookInstalled(host, HookScope::kProject, directory)) {
      probes.push_back(ProbeHook(host, directory));
    }
  }
  return probes;
}

}  // namespace txfs::cli
