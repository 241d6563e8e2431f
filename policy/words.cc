#include "policy/words.h"

#include <algorithm>
#include <cerrno>
#include <string_view>

namespace txfs::policy {
namespace {

constexpr std::string_view kHead = R"(# What may not be done here

What is done in this workspace is a transaction of txfs: it is kept apart until somebody commits it,
and can be thrown away as a whole. Some operations are refused all the same. A refused one changes
nothing; it fails with the error that its rule names. A rule is about what becomes of a file, not
about how that is asked for: another command to the same end is refused, too. Do what the rule
suggests instead, or leave it and say that it was refused.

Beside this file, written anew whenever one of them is opened: `last_denial.json` has the last
refusal with its reason, `denials.jsonl` the last thousand, `status.json` how many there were.
)";

std::string_view ErrorName(int error) {
  switch (error) {
    case EROFS:
      return "EROFS, read-only file system";
    case EDQUOT:
      return "EDQUOT, quota exceeded";
    default:
      return "EPERM, operation not permitted";
  }
}

/// Patterns are text from a file, which must not end the span of code.
std::string AsCode(const std::string& pattern) {
  std::string code;
  for (const char c : pattern) {
    const bool is_plain = static_cast<unsigned char>(c) >= ' ' && c != '`';
    code += is_plain ? c : '?';
  }
  return "`" + code + "`";
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

std::string_view OfLayer(const Rule& rule) {
  if (!rule.when.layer) return "";
  return *rule.when.layer == Layer::kBase
             ? ", where it was there when the transaction began"
             : ", where it was made in the transaction";
}

std::string Paragraph(const Rule& rule) {
  std::string text = "\n## " + rule.id + "\n\n";
  text += "Of " + ListOf(rule.when.patterns) + std::string(OfLayer(rule)) +
          ": " + OpsOf(rule.ops) + " (" + std::string(ErrorName(rule.error)) +
          ").\n\n";
  text += "Why: " + rule.reason + ".\n";
  return text + "Instead: " + rule.suggest + ".\n";
}

std::string_view DeedOf(Measure measure) {
  switch (measure) {
    case Measure::kBaseRemoved:
      return "files and directories that were there when the transaction began "
             "and are removed";
    case Measure::kBytesWritten:
      return "content that is written";
    case Measure::kInodesMade:
      return "files and directories that are made";
  }
  return "";
}

std::string ScopeOf(const Limit& limit) {
  if (!limit.window) return "in the transaction";
  return "within " + std::to_string(*limit.window) + " s";
}

std::string Paragraph(const Limit& limit) {
  std::string text = "\n## " + limit.id + "\n\nA limit of ";
  text += std::string(DeedOf(limit.of)) + " " + ScopeOf(limit);
  if (!limit.patterns.empty()) text += ", of " + ListOf(limit.patterns);
  text += ": " + AllowanceOf(limit);
  text += limit.at_commit
              ? ". With more, whoever commits has to accept it first.\n\n"
              : " (" + std::string(ErrorName(limit.error)) + ").\n\n";
  text += "Why: " + limit.reason + ".\n";
  return text + "Instead: " + limit.suggest + ".\n";
}

}  // namespace

std::string InWords(std::span<const Rule> rules,
                    std::span<const Limit> limits) {
  std::string text(kHead);
  const auto refuses = [](const auto& rule) {
    return rule.action == Action::kDeny;
  };
  if (std::ranges::none_of(rules, refuses) &&
      std::ranges::none_of(limits, refuses)) {
    return text + "\nNo rule is in force: nothing is refused.\n";
  }
  for (const Rule& rule : rules) {
    if (refuses(rule)) text += Paragraph(rule);
  }
  for (const Limit& limit : limits) {
    if (refuses(limit)) text += Paragraph(limit);
  }
  return text;
}

}  // namespace txfs::policy
