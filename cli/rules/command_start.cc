#include "cli/rules/command_start.h"

#include <cstdlib>
#include <string>

#include "cli/locate/locate.h"
#include "cli/output/paths.h"
#include "cli/rules/policy_rules.h"
#include "fs/host/mount_table.h"
#include "policy/command.h"

namespace txfs::cli {
namespace {

using policy::Confinement;

/// An absolute directory from the environment, or "".
std::string DirectoryOf(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || value[0] != '/') return "";
  return policy::NormalPath("/", value);
}

}  // namespace

Result<CommandStart> StartOf(const Context& context, bool confined,
                             bool in_run) {
  CommandStart start;
  policy::Surroundings& around = start.shell.surroundings;
  start.shell.directory = ResolvePath(context.directory, ".");
  around.workspace = start.shell.directory;
  around.home = DirectoryOf("HOME");
  if (around.home.empty()) around.home = "/root";
  around.temporary = DirectoryOf("TMPDIR");
  const auto mount = FindTxfsMount(context.directory);
  if (mount && !context.store) {
    around.workspace = mount->mountpoint;
    around.is_workspace = true;
  } else if (!in_run && IsInWorkspace(context)) {
    const WorkspacePlace place = TRY(LocateWorkspace(context));
    around.workspace = place.root;
    around.is_workspace = true;
  }
  if (!IsWithin(start.shell.directory, around.workspace)) {
    start.shell.directory = around.workspace;
  }
  if (confined) {
    start.confinement = Confinement::kRun;
  } else if (mount) {
    start.confinement = Confinement::kMount;
  }
  return start;
}

}  // namespace txfs::cli
