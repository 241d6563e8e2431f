#include "policy/words.h"

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <vector>

namespace txfs::policy {
namespace {

constexpr std::string_view kHead = R"(# Refused operations

All changes in this workspace belong to a txfs transaction. They stay separate from the real workspace
until a user commits them, and a discard drops them all. The rules below refuse some operations all
the same. A refused operation changes nothing and fails with the error that its rule names. A rule
applies to the effect on a file, not to the command: another command with the same effect is refused,
too. Follow the suggestion of the rule, or leave the file alone and report the refusal.

Other files in this directory: `last_denial.json` has the last refusal with its reason, `denials.jsonl`
the latest refusals, one per line, and `status.json` their number. An open file does not change: reopen
it to read the current state.
)";

std::string_view ErrorName(int error) {
  switch (error) {
    case EROFS:
      return "EROFS, read-only file system";
    case EDQUOT:
      return "EDQUOT, quota exceeded";
    case EACCES:
      return "EACCES, permission denied";
    default:
      return "EPERM, operation not permitted";
  }
}

/// Patterns are text from a file, which must not end the span of code.
std::string AsCode(std::string pattern) {
  std::ranges::replace(pattern, '`', '?');
  return "`" + pattern + "`";
}

/// So are sentences, which must not become anything else.
std::string AsText(const std::string& sentence) {
  constexpr std::string_view kSpecial = "\\`<[*";
  std::string text;
  for (const char c : sentence) {
    if (kSpecial.contains(c)) text += '\\';
    text += c;
  }
  return text;
}

std::string ListOf(const std::vector<std::string>& patterns) {
  std::string list;
  for (const std::string& pattern : patterns) {
    list += (list.empty() ? "" : ", ") + AsCode(pattern);
  }
  return list;
}

std::string OpsOf(Mask ops) {
  std::string list;
  for (const std::string_view name : NamesOf(ops)) {
    list += (list.empty() ? "" : ", ") + std::string(name);
  }
  return list;
}

std::string_view OfLayer(const Condition& condition) {
  if (!condition.layer) return "";
  switch (*condition.layer) {
    case Layer::kBase:
      return ", if it existed when the transaction began";
    case Layer::kNew:
      return ", if it was made in the transaction";
    case Layer::kEmpty:
      return ", if it is a new file without content";
  }
  return "";
}

std::string OfTypes(const Condition& condition) {
  std::string list;
  for (const Type type : condition.types) {
    list += (list.empty() ? ", as a " : " or ") + std::string(NameOf(type));
  }
  return list;
}

std::string_view Decides(const Rule& rule) {
  if (rule.action == Action::kAsk)
    return "The operation waits until a user approves it. ";
  if (rule.action == Action::kHook)
    return "A program decides about the operation. ";
  if (rule.action == Action::kHold) {
    return "The operation is allowed. A user must accept the change before it "
           "is committed. ";
  }
  return "";
}

/// Of some programs or users only. Which, nobody is told: there is a way
/// around what is about a program.
bool IsForSome(const Condition& condition) {
  return !condition.exes.empty() || !condition.uids.empty();
}

std::string What(const Condition& condition) {
  return (condition.patterns.empty() ? "all" : ListOf(condition.patterns)) +
         OfTypes(condition) + std::string(OfLayer(condition));
}

std::string ExceptionsOf(const Rule& rule) {
  std::string text;
  for (const Condition& unless : rule.unless) {
    if (IsForSome(unless)) continue;
    text += (text.empty() ? "" : "; ") + What(unless);
  }
  return text.empty() ? "" : "Except " + text + ".\n\n";
}

std::string Paragraph(const Rule& rule) {
  std::string text = "\n## " + rule.id + "\n\n";
  text += "Applies to " + What(rule.when);
  if (rule.nocase) text += ", in any letter case";
  if (IsForSome(rule.when)) text += ", for some programs or users";
  text += ": " + OpsOf(rule.ops);
  if (rule.action != Action::kHold) {
    text += " (" + std::string(ErrorName(rule.error)) + ")";
  }
  if (!rule.with_directory)
    text += "; directories that contain it may be moved";
  text += ".\n\n" + ExceptionsOf(rule);
  text += Decides(rule);
  text += "Why: " + AsText(rule.reason) + ".\n";
  return text + "Instead: " + AsText(rule.suggest) + ".\n";
}

std::string_view DeedOf(Measure measure) {
  switch (measure) {
    case Measure::kBaseRemoved:
      return "that existed when the transaction began and are removed";
    case Measure::kBytesWritten:
      return "that is written";
    case Measure::kInodesMade:
      return "that are made";
  }
  return "";
}

std::string ScopeOf(const Limit& limit) {
  if (!limit.window) return "in the transaction";
  return "within " + std::to_string(*limit.window) + " s";
}

std::string Paragraph(const Limit& limit) {
  std::string text = "\n## " + limit.id + "\n\nA limit on ";
  text += std::string(ThingsOf(limit.of)) + " " +
          std::string(DeedOf(limit.of)) + " " + ScopeOf(limit);
  if (!limit.patterns.empty()) text += ", in " + ListOf(limit.patterns);
  text += ": " + AllowanceOf(limit);
  if (!limit.except_patterns.empty()) {
    text += "; not counted: " + ListOf(limit.except_patterns);
  }
  text += limit.at_commit
              ? ". A user must accept a commit that exceeds it.\n\n"
              : " (" + std::string(ErrorName(limit.error)) + ").\n\n";
  text += "Why: " + AsText(limit.reason) + ".\n";
  return text + "Instead: " + AsText(limit.suggest) + ".\n";
}

std::string AboutCommands(size_t rules) {
  if (rules == 0) return "";
  return "\n# Commands\n\n" + std::to_string(rules) +
         (rules == 1 ? " rule judges" : " rules judge") +
         " commands before they run, where `txfs run` or the hook of an agent "
         "starts them. `txfs policy explain -- COMMAND` prints the verdict.\n";
}

}  // namespace

std::string_view ThingsOf(Measure measure) {
  return measure == Measure::kBytesWritten ? "content"
                                           : "files and directories";
}

std::string InWords(std::span<const Rule> rules, std::span<const Limit> limits,
                    size_t exec_rules) {
  const auto refuses = [](const auto& rule) {
    return rule.action > Action::kAudit;
  };
  std::string text(kHead);
  if (rules.empty() && limits.empty()) {
    text += "\nNo rule is in force: nothing is refused.\n";
  } else if (std::ranges::none_of(rules, refuses) &&
             std::ranges::none_of(limits, refuses)) {
    text += "\nNo rule refuses anything; some rules record operations.\n";
  }
  for (const Rule& rule : rules) {
    if (refuses(rule)) text += Paragraph(rule);
  }
  for (const Limit& limit : limits) {
    if (refuses(limit)) text += Paragraph(limit);
  }
  return text + AboutCommands(exec_rules);
}

}  // namespace txfs::policy
