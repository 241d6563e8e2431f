#include <cstdlib>
#include <future>

#include "cli/commands/commands.h"
#include "cli/locate/locate.h"
#include "cli/output/output.h"
#include "cli/output/paths.h"
#include "cli/rules/policy_rules.h"
#include "cli/shell/judge.h"
#include "cli/shell/verdict_format.h"
#include "fs/host/mount_table.h"

namespace txfs::cli {
namespace {

using policy::Confinement;

/// An absolute directory from the environment, or "".
std::string DirectoryOf(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || value[0] != '/') return "";
  return policy::NormalPath("/", value);
}

struct Start {
  ShellStart shell;
  Confinement confinement = Confinement::kNone;
};

Result<Start> StartOf(const Context& context, bool confined) {
  Start start;
  policy::Surroundings& around = start.shell.surroundings;
  start.shell.directory = ResolvePath(context.directory, ".");
  around.workspace = start.shell.directory;
  around.home = DirectoryOf("HOME");
  if (around.home.empty()) around.home = "/root";
  around.temporary = DirectoryOf("TMPDIR");
  if (IsInWorkspace(context)) {
    const WorkspacePlace place = TRY(LocateWorkspace(context));
    around.workspace = place.root;
    around.is_workspace = true;
    if (!IsWithin(start.shell.directory, place.root)) {
      start.shell.directory = place.root;
    }
  }
  if (confined) {
    start.confinement = Confinement::kRun;
  } else if (FindTxfsMount(context.directory)) {
    start.confinement = Confinement::kMount;
  }
  return start;
}

}  // namespace

Result<int> RunPolicyExplainCommand(const Context& context,
                                    const PolicyExplainArguments& arguments) {
  const Start start = TRY(StartOf(context, arguments.confined));
  const std::vector<std::string>& words = context.trailing;
  // Mostly waits for the parser, while this thread reads the rules.
  auto reading = std::async(std::launch::async, [&] {
    return words.size() == 1 ? ReadShellText(words[0], start.shell)
                             : ReadCommandWords(words, start.shell);
  });
  const Rules rules = arguments.file
                          ? TRY(RulesOfFile(context, *arguments.file))
                          : TRY(RulesForCommands(context));
  const CommandVerdict verdict =
      Judge(*rules, reading.get(), start.shell.surroundings, start.confinement);
  Output output;
  output.Write(arguments.json ? Dump(VerdictDocument(verdict), 2) + "\n"
                              : VerdictText(verdict));
  TRY(output.Finish());
  return 0;
}

}  // namespace txfs::cli
