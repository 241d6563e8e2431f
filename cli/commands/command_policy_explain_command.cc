#include <future>

#include "cli/commands/commands.h"
#include "cli/output/output.h"
#include "cli/protocol/judgement.h"
#include "cli/rules/command_start.h"
#include "cli/rules/policy_rules.h"
#include "cli/shell/judge.h"

namespace txfs::cli {

Result<int> RunPolicyExplainCommand(const Context& context,
                                    const PolicyExplainArguments& arguments) {
  const ExplainForm form =
      arguments.json ? ExplainForm::kJson : ExplainForm::kText;
  const CommandStart start = TRY(StartOf(context, arguments.confined));
  const std::vector<std::string>& words = context.trailing;
  // Mostly waits for the parser, while this thread looks for the rules.
  auto parser = std::async(std::launch::async, [&] {
    return words.size() == 1 ? ReadShellText(words[0], start.shell)
                             : ReadCommandWords(words, start.shell);
  });
  const auto print = [](const std::string& text) -> Result<int> {
    Output output;
    output.Write(text);
    TRY(output.Finish());
    return 0;
  };
  const policy::Surroundings& around = start.shell.surroundings;
  const auto judge = [&](const Rules& rules, ShellReading reading) {
    return print(FormatVerdict(
        Judge(*rules, std::move(reading), around, start.confinement), form));
  };
  if (arguments.file) {
    const Rules rules = TRY(RulesOfFile(context, *arguments.file));
    return judge(rules, parser.get());
  }
  auto place = FindRules(context);
  if (!place || !place->daemon) {
    const Rules rules = TRY(RulesForCommands(context, std::move(place)));
    return judge(rules, parser.get());
  }
  ShellReading reading = parser.get();
  // The daemon has compiled the rules.
  const auto text = place->daemon->Explain(
      ExplainRequest(JudgeRequest(reading, around, start.confinement), form));
  if (text) return print(*text);
  const Rules rules = TRY(RulesForCommands(context));
  return judge(rules, std::move(reading));
}

}  // namespace txfs::cli
