#include "policy/load_exec.h"

#include <algorithm>
#include <optional>
#include <ranges>
#include <utility>

#include "policy/builtin.h"

namespace txfs::policy {
namespace {

using Patterns = std::vector<TextPattern>;

Result<TextPattern> ReadTextPattern(const Section& section,
                                    std::string_view key,
                                    std::string_view text) {
  TRY(section.CheckPlain(key, text, kMaxPattern));
  auto pattern = TextPattern::Parse(text);
  if (pattern) return *std::move(pattern);
  return section.Wrong(key,
                       "has an invalid pattern: " + pattern.error().message,
                       "a pattern with *, ? and [a-z]");
}

/// The parts of `text` between `separator`.
Result<Patterns> ReadParts(const Section& section, std::string_view key,
                           std::string_view text, char separator) {
  Patterns patterns;
  for (const auto part : std::views::split(text, separator)) {
    const std::string_view one(part.begin(), part.end());
    TextPattern pattern = TRY(ReadTextPattern(section, key, one));
    patterns.push_back(std::move(pattern));
  }
  return patterns;
}

Result<Patterns> ReadTexts(const Section& section, std::string_view key) {
  Patterns patterns;
  for (const std::string& text : TRY(section.Texts(key))) {
    TextPattern pattern = TRY(ReadTextPattern(section, key, text));
    patterns.push_back(std::move(pattern));
  }
  return patterns;
}

Result<std::vector<Patterns>> ReadLists(const Section& section,
                                        std::string_view key, char separator) {
  std::vector<Patterns> lists;
  for (const std::string& text : TRY(section.Texts(key))) {
    Patterns parts = TRY(ReadParts(section, key, text, separator));
    lists.push_back(std::move(parts));
  }
  return lists;
}

Result<std::vector<ExecCondition::Path>> ReadExecPaths(const Section& section,
                                                       std::string_view key,
                                                       bool nocase) {
  std::vector<ExecCondition::Path> paths;
  for (const std::string& text : TRY(section.Texts(key))) {
    TRY(section.CheckPlain(key, text, kMaxPattern));
    ExecCondition::Path path{
        .text = text, .glob = {}, .below_home = text.starts_with("~/")};
    // Anchored, as a pattern with a slash is.
    auto glob = Glob::Parse(path.below_home ? text.substr(1) : text, nocase);
    if (!glob) {
      return section.Wrong(key, "has a " + glob.error().message,
                           "a pattern as in .gitignore, or ~/ and one");
    }
    path.glob = *std::move(glob);
    paths.push_back(std::move(path));
  }
  return paths;
}

Result<Regions> ReadRegions(const Section& section) {
  Regions regions = 0;
  for (const std::string& name : TRY(section.Texts("place"))) {
    const auto region = RegionNamed(name);
    if (!region) {
      return section.Wrong(
          "place", "has " + Quoted(name),
          "workspace, temp, home, device, outside, root or unknown");
    }
    regions |= *region == Region::kOutside ? kAllOutside : MaskOf(*region);
  }
  return regions;
}

Result<Operand> ReadOperand(const Section& section) {
  const std::string name = TRY(section.Text("operand", "any"));
  if (name == "any") return Operand::kAny;
  if (name == "first") return Operand::kFirst;
  if (name == "last") return Operand::kLast;
  return section.Wrong("operand", "is " + Quoted(name), "any, first or last");
}

Result<std::vector<Script>> ReadScripts(const Section& section) {
  std::vector<Script> scripts;
  for (const std::string& name : TRY(section.Texts("script"))) {
    const auto script = ScriptNamed(name);
    if (!script) {
      return section.Wrong("script", "has " + Quoted(name),
                           "input, code, unknown or none");
    }
    scripts.push_back(*script);
  }
  return scripts;
}

Result<std::optional<bool>> ReadFlag(const Section& section,
                                     std::string_view key) {
  if (!section.Has(key)) return std::nullopt;
  return TRY(section.Flag(key, false));
}

/// "!NAME" ends the search for a verb.
Status ReadVerbs(const Section& section, ExecCondition& condition) {
  for (const std::string& text : TRY(section.Texts("verb"))) {
    const bool ends = text.starts_with('!');
    TextPattern pattern =
        TRY(ReadTextPattern(section, "verb", text.substr(ends ? 1 : 0)));
    (ends ? condition.verb_ends : condition.verbs)
        .push_back(std::move(pattern));
  }
  if (condition.verbs.empty() && !condition.verb_ends.empty()) {
    return section.Wrong("verb", "has only ends",
                         "a verb without a ! before it");
  }
  return {};
}

Result<ExecCondition> ReadExecCondition(const Section& section, bool nocase) {
  ExecCondition condition;
  condition.programs = TRY(ReadTexts(section, "program"));
  condition.subcommands = TRY(ReadLists(section, "subcommand", ' '));
  TRY(ReadVerbs(section, condition));
  condition.any_arg = TRY(ReadTexts(section, "any_arg"));
  condition.all_args = TRY(ReadLists(section, "all_args", '|'));
  condition.text = TRY(ReadTexts(section, "text"));
  condition.sql = TRY(ReadTexts(section, "sql"));
  condition.paths = TRY(ReadExecPaths(section, "path", nocase));
  condition.regions = TRY(ReadRegions(section));
  condition.operand = TRY(ReadOperand(section));
  condition.reads = TRY(ReadExecPaths(section, "reads", nocase));
  condition.fed_by = TRY(ReadTexts(section, "fed_by"));
  condition.env = TRY(ReadTexts(section, "env"));
  condition.scripts = TRY(ReadScripts(section));
  condition.remote = TRY(ReadFlag(section, "remote"));
  condition.operands = TRY(ReadFlag(section, "operands"));
  return condition;
}

Result<std::vector<ExecCondition>> ReadExecExceptions(const Section& section,
                                                      const std::string& file,
                                                      bool nocase) {
  std::vector<ExecCondition> exceptions;
  const Node* unless = section.Get("unless");
  if (unless == nullptr) return exceptions;
  for (const Node* table : AloneOrListed(*unless)) {
    if (!table->is_table()) {
      return section.Wrong("unless", "is not a table",
                           "unless = { any_arg = ..., place = ... }, or a list "
                           "of such tables");
    }
    const Section exception(file, "unless of [[exec]]", *table);
    TRY(exception.CheckKeys({"program", "subcommand", "verb", "any_arg",
                             "all_args", "text", "sql", "path", "place",
                             "operand", "reads", "fed_by", "env", "script",
                             "remote", "operands"}));
    exceptions.push_back(TRY(ReadExecCondition(exception, nocase)));
  }
  if (!exceptions.empty() &&
      std::ranges::none_of(exceptions, &ExecCondition::empty)) {
    return exceptions;
  }
  return section.Wrong("unless", "is empty", "at least one key of a condition");
}

Status CheckExample(const Section& section, const ExecExample& example,
                    const ExecRule& rule) {
  const auto command = SimpleCommand(example, rule);
  if (!command) return {};
  if (Matches(rule, *command, ExampleSurroundings()) == example.matches) {
    return {};
  }
  return section.Wrong(example.matches ? "match" : "not_match",
                       "has " + Quoted(example.text),
                       example.matches ? "a command that the rule matches"
                                       : "a command that the rule does not "
                                         "match");
}

/// Those of the built-in rules are checked by a test: it would take half of the
/// time to load them.
Status ReadExecExamples(const Section& section, ExecRule& rule) {
  for (const bool wanted : {true, false}) {
    const std::string_view key = wanted ? "match" : "not_match";
    for (const std::string& text : TRY(section.Texts(key))) {
      if (text.find_first_not_of(" \t\n") == std::string::npos) {
        return section.Wrong(key, "has an empty text", "a command");
      }
      ExecExample example{.text = text, .matches = wanted};
      if (rule.place.file != kBuiltinName) {
        TRY(CheckExample(section, example, rule));
      }
      rule.examples.push_back(std::move(example));
    }
  }
  return {};
}

}  // namespace

std::optional<Command> SimpleCommand(const ExecExample& example,
                                     const ExecRule& rule) {
  const auto needs_parser = [](const ExecCondition& condition) {
    return !condition.fed_by.empty() || !condition.scripts.empty() ||
           condition.remote.has_value();
  };
  if (needs_parser(rule.when)) return std::nullopt;
  auto words = SimpleWords(example.text);
  if (!words) return std::nullopt;
  Command command;
  command.program = std::move(words->front());
  command.arguments.assign(std::make_move_iterator(words->begin() + 1),
                           std::make_move_iterator(words->end()));
  command.directory = ExampleSurroundings().workspace;
  FindPaths(command, ExampleSurroundings());
  return command;
}

Result<ExecRule> ReadExecRule(const Section& section, const std::string& file) {
  TRY(section.CheckKeys(
      {"id",       "program", "subcommand", "verb",      "any_arg",  "sql",
       "all_args", "text",    "path",       "place",     "operand",  "reads",
       "fed_by",   "env",     "script",     "remote",    "operands", "unless",
       "nocase",   "action",  "class",      "read_only", "unlisted", "reason",
       "suggest",  "match",   "not_match"}));
  ExecRule rule;
  rule.place = section.place();
  rule.nocase = TRY(section.Flag("nocase", false));
  rule.reads_only = TRY(section.Flag("read_only", false));
  rule.unlisted = TRY(section.Flag("unlisted", false));
  rule.reason = TRY(section.RequiredText("reason"));
  rule.suggest = TRY(section.RequiredText("suggest"));
  rule.when = TRY(ReadExecCondition(section, rule.nocase));
  if (rule.when.empty()) {
    return section.Wrong("program", "is missing",
                         "a program, or another key of a condition");
  }
  const std::string name = TRY(section.Text("class", "irreversible"));
  const auto consequence = ClassNamed(name);
  if (!consequence) {
    return section.Wrong("class", "is " + Quoted(name),
                         "undoable, confined, irreversible or unknown");
  }
  rule.consequence = *consequence;
  rule.unless = TRY(ReadExecExceptions(section, file, rule.nocase));
  TRY(ReadExecExamples(section, rule));
  return rule;
}

}  // namespace txfs::policy
