#include <fcntl.h>

#include <algorithm>

#include "cli/commands/commands.h"
#include "cli/locate/way.h"
#include "cli/output/output.h"
#include "cli/output/paths.h"
#include "cli/output/text.h"
#include "cli/rules/policy_cases.h"
#include "cli/rules/policy_rules.h"
#include "cli/shell/reader.h"
#include "journal/support/file.h"
#include "policy/load.h"

namespace txfs::cli {
namespace {

/// What was tried, and a line for each that failed.
struct Outcome {
  size_t tried = 0, failed = 0;
  std::string text;

  void Add(const std::string& where, const std::string& failure) {
    ++tried;
    if (failure.empty()) return;
    ++failed;
    text += EscapeControls(where + ": " + failure) + "\n";
  }
};

Result<Outcome> TryCases(const Context& context, const std::string& file,
                         const policy::Policy& rules) {
  TRY(CheckWay(context.directory, file));
  const auto text =
      ReadWholeFile(AT_FDCWD, ResolvePath(context.directory, file));
  if (!text) {
    return Fail(text.error().code, "cannot read the cases " + file,
                "name a file of JSON lines");
  }
  Outcome outcome;
  for (const PolicyCase& one : TRY(ParsePolicyCases(*text, file))) {
    outcome.Add(file + ":" + std::to_string(one.line), FailureOf(one, rules));
  }
  if (outcome.tried == 0) {
    return Fail(0, file + " has no cases", "name a file of JSON lines");
  }
  return outcome;
}

/// Examples of commands, by the parser of shell text. Each by its own rule: a
/// stronger one may match, too.
void TryCommands(const policy::Policy& rules, Outcome& outcome) {
  const policy::Surroundings& around = policy::ExampleSurroundings();
  const ShellStart start{.surroundings = around, .directory = around.workspace};
  for (const policy::ExecRule& rule : rules.exec_rules()) {
    for (const policy::ExecExample& example : rule.examples) {
      const ShellReading reading = ReadShellText(example.text, start);
      const bool matches =
          std::ranges::any_of(reading.parts, [&](const ShellPart& part) {
            return policy::Matches(rule, part.command, around);
          });
      outcome.Add(rule.place.ToString(), matches == example.matches
                                             ? ""
                                             : "\"" + example.text +
                                                   "\" is not judged as " +
                                                   rule.id + " expects");
    }
  }
}

/// With all rules together, a match is at least what its rule says.
Outcome TryExamples(const policy::Policy& rules) {
  Outcome outcome;
  for (const policy::Rule& rule : rules.rules()) {
    for (const policy::Example& example : rule.examples) {
      const policy::Event event = policy::EventOf(example, rule);
      const policy::Action action = policy::Evaluate(rules, event).action;
      const bool good = !example.matches || action >= rule.action;
      outcome.Add(rule.place.ToString(),
                  good ? ""
                       : std::string(policy::NameOf(example.op)) + " " +
                             example.path + " is not judged as " + rule.id +
                             " expects");
    }
  }
  TryCommands(rules, outcome);
  return outcome;
}

}  // namespace

Result<int> RunPolicyTest(const Context& context,
                          const PolicyTestArguments& arguments) {
  const Rules rules = TRY(RulesFor(context, arguments.file));
  const Outcome outcome = arguments.cases
                              ? TRY(TryCases(context, *arguments.cases, *rules))
                              : TryExamples(*rules);
  Output output;
  output.Write(outcome.text + Count(outcome.tried, "case") + ", " +
               std::to_string(outcome.failed) + " failed\n");
  TRY(output.Finish());
  return outcome.failed == 0 ? 0 : 1;
}

}  // namespace txfs::cli
