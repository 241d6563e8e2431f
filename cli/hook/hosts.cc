#include "cli/hook/hosts.h"

#include <algorithm>
#include <array>

#include "cli/hook/host_formats.h"

namespace txfs::cli {

std::span<const HookHost> HookHosts() {
  static const std::array<HookHost, 6> kHosts{ClaudeCodeHost(), CodexHost(),
                                              GeminiHost(),     CursorHost(),
                                              CopilotHost(),    OpenCodeHost()};
  return kHosts;
}

const HookHost* FindHookHost(std::string_view name) {
  const auto hosts = HookHosts();
  const auto found = std::ranges::find(hosts, name, &HookHost::name);
  return found == hosts.end() ? nullptr : &*found;
}

}  // namespace txfs::cli
