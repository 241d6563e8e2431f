#include <future>

#include "cli/commands/commands.h"
#include "cli/output/output.h"
#include "cli/rules/command_start.h"
#include "cli/rules/policy_rules.h"
#include "cli/shell/judge.h"
#include "cli/shell/verdict_format.h"

namespace txfs::cli {

Result<int> RunPolicyExplainCommand(const Context& context,
                                    const PolicyExplainArguments& arguments) {
  const CommandStart start = TRY(StartOf(context, arguments.confined));
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
