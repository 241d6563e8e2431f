#include "policy/load.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "journal/support/bytes.h"
#include "journal/support/checksum.h"
#include "policy/builtin.h"
#include "policy/load_exec.h"
#include "policy/load_limit.h"
#include "policy/load_settings.h"
#include "policy/policy.h"
#include "policy/section.h"

namespace txfs::policy {
namespace {

constexpr int64_t kSchema = 1;
constexpr size_t kMaxId = 64;

struct Errno {
  std::string_view name;
  int code;
};
constexpr std::array<Errno, 3> kErrnos{
    {{"EPERM", EPERM}, {"EROFS", EROFS}, {"EDQUOT", EDQUOT}}};

std::vector<std::string_view> NamesOfOps() {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < kEffects; ++i) {
    names.push_back(NameOf(static_cast<Effect>(i)));
  }
  for (size_t i = 0; i < kOps; ++i) {
    const auto op = static_cast<Op>(i);
    if (op != Op::kRead) names.push_back(NameOf(op));
  }
  names.push_back(kMoveName);
  return names;
}

class FileLoader {
 public:
  explicit FileLoader(std::string file) : file_(std::move(file)) {}

  Result<Loaded> Run(const Node& root) {
    const Section top(file_, "the file", root);
    TRY(top.CheckKeys({"schema", "policy_version", "defaults", "ask", "hook",
                       "fs", "exec", "limit"}));
    TRY(CheckSchema(top));
    Loaded loaded;
    loaded.version = TRY(top.Text("policy_version", ""));
    TRY(ReadDefaults(top));
    loaded.settings = TRY(ReadSettings(file_, top));
    for (const Node* table : TRY(TablesOf(top, "fs"))) {
      Rule rule = TRY(ReadRule(*table));
      loaded.rules.push_back(std::move(rule));
    }
    for (const Node* table : TRY(TablesOf(top, "exec"))) {
      ExecRule rule = TRY(ReadWholeExecRule(*table));
      loaded.exec_rules.push_back(std::move(rule));
    }
    for (const Node* table : TRY(TablesOf(top, "limit"))) {
      Limit limit = TRY(ReadWholeLimit(*table));
      loaded.limits.push_back(std::move(limit));
    }
    return loaded;
  }

 private:
  static Status CheckSchema(const Section& top) {
    constexpr std::string_view kExpected =
        "schema = 1, a number: the only supported version";
    const Node* node = top.Get("schema");
    if (node == nullptr) return top.Wrong("schema", "is missing", kExpected);
    const auto schema = node->AsInteger();
    if (!schema) return top.Wrong("schema", "is not a number", kExpected);
    if (*schema == kSchema) return {};
    return top.Wrong("schema", "is " + std::to_string(*schema), kExpected);
  }

  static Result<std::vector<const Node*>> TablesOf(const Section& top,
                                                   const std::string& key) {
    std::vector<const Node*> tables;
    const Node* list = top.Get(key);
    if (list == nullptr) return tables;
    const bool are_tables = list->is_list() && !list->items.empty() &&
                            std::ranges::all_of(list->items, &Node::is_table);
    if (!are_tables) {
      return top.Wrong(key, "is not a list of tables", "[[" + key + "]]");
    }
    for (const Node& node : list->items) tables.push_back(&node);
    return tables;
  }

  Result<Limit> ReadWholeLimit(const Node& table) {
    const Section section(file_, "[[limit]]", table);
    Limit limit = TRY(ReadLimit(section, file_));
    limit.id = TRY(ReadId(section));
    limit.error = TRY(ReadErrno(section, EDQUOT));
    return limit;
  }

  Result<ExecRule> ReadWholeExecRule(const Node& table) {
    const Section section(file_, "[[exec]]", table);
    ExecRule rule = TRY(ReadExecRule(section, file_));
    rule.id = TRY(ReadId(section));
    const std::string name = TRY(section.Text("action", NameOf(action_)));
    const auto action = ActionNamed(name);
    if (!action || *action == Action::kHold) {
      return section.Wrong("action", "is " + Quoted(name),
                           "deny, ask, hook, audit or allow");
    }
    rule.action = *action;
    return rule;
  }

  Status ReadDefaults(const Section& top) {
    const Node* table = top.Get("defaults");
    if (table == nullptr) return {};
    if (!table->is_table()) {
      return top.Wrong("defaults", "is not a table", "[defaults]");
    }
    const Section section(file_, "[defaults]", *table);
    TRY(section.CheckKeys({"action", "errno"}));
    action_ = TRY(ReadAction(section, action_));
    error_ = TRY(ReadErrno(section, error_));
    return {};
  }

  Result<Action> ReadAction(const Section& section, Action otherwise) const {
    const std::string name = TRY(section.Text("action", NameOf(otherwise)));
    const auto action = ActionNamed(name);
    const bool is_one =
        action && *action != Action::kAllow && *action != Action::kHold;
    if (is_one) return *action;
    return section.Wrong("action", "is " + Quoted(name),
                         "deny, ask, hook or audit");
  }

  Result<int> ReadErrno(const Section& section, int otherwise) const {
    if (!section.Has("errno")) return otherwise;
    const std::string name = TRY(section.Text("errno", ""));
    const auto* const found = std::ranges::find(kErrnos, name, &Errno::name);
    if (found != kErrnos.end()) return found->code;
    return section.Wrong("errno", "is " + Quoted(name),
                         "EPERM, EROFS or EDQUOT");
  }

  Result<std::string> ReadId(const Section& section) {
    std::string id = TRY(section.RequiredText("id"));
    const bool plain = std::ranges::all_of(id, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    });
    if (!plain || id.size() > kMaxId) {
      return section.Wrong("id", "is " + Quoted(id.substr(0, kMaxId)),
                           "lower case letters, digits and -, 64 at most");
    }
    if (id == kOwnNamesId) {
      return section.Wrong("id", Quoted(id) + " is reserved by txfs",
                           "an id that no other rule has");
    }
    const auto [first, fresh] = ids_.try_emplace(id, section.place().line);
    if (fresh) return id;
    return section.Wrong("id",
                         Quoted(id) + " is already used on line " +
                             std::to_string(first->second),
                         "an id that no other rule has");
  }

  Result<Rule> ReadRule(const Node& table) {
    const Section section(file_, "[[fs]]", table);
    TRY(section.CheckKeys({"id", "ops", "path", "layer", "type", "exe", "uid",
                           "unless", "action", "at", "content", "errno",
                           "reason", "suggest", "nocase", "with_directory",
                           "match", "not_match"}));
    Rule rule;
    rule.place = section.place();
    rule.id = TRY(ReadId(section));
    rule.ops = TRY(ReadOps(section));
    TRY(ReadMoment(section, rule));
    if ((rule.ops & kReading) != 0) TRY(ReadReading(section, rule));
    rule.reason = TRY(section.RequiredText("reason"));
    rule.suggest = TRY(section.RequiredText("suggest"));
    const bool nocase = rule.nocase = TRY(section.Flag("nocase", false));
    rule.with_directory = TRY(section.Flag("with_directory", true));
    rule.when = TRY(ReadCondition(section, nocase));
    if (rule.when.paths.empty()) {
      return section.Wrong("path", "is missing", "at least one pattern");
    }
    TRY(CheckLayer(section, rule.when, rule.ops));
    if (const Node* unless = section.Get("unless")) {
      rule.unless = TRY(ReadExceptions(section, *unless, rule, nocase));
    }
    rule.examples = TRY(ReadExamples(section, rule));
    return rule;
  }

  /// A rule at the commit holds: it has no action and no error.
  Status ReadMoment(const Section& section, Rule& rule) const {
    const std::string moment = TRY(section.Text("at", "operation"));
    if (moment == "operation") {
      if (section.Has("content")) {
        return section.Wrong("content", "is given for a rule at the operation",
                             "it only in a rule with at = \"commit\"");
      }
      rule.action = TRY(ReadAction(section, action_));
      rule.error = TRY(ReadErrno(section, error_));
      return {};
    }
    if (moment != "commit") {
      return section.Wrong("at", "is " + Quoted(moment), "operation or commit");
    }
    for (const std::string_view key : {"action", "errno"}) {
      if (!section.Has(key)) continue;
      return section.Wrong(key, "is given for a rule with at = \"commit\"",
                           "none: such a rule holds what it matches");
    }
    TRY(CheckHasNoProgram(section));
    rule.action = Action::kHold;
    const std::string content = TRY(section.Text("content", "any"));
    const auto kind = ContentKindNamed(content);
    if (!kind) {
      return section.Wrong(
          "content", "is " + Quoted(content),
          "any, git-config, git-file, git-bare or python-path");
    }
    rule.content = *kind;
    return {};
  }

  /// A rule about reading is judged when a file is opened, and can only refuse.
  static Status ReadReading(const Section& section, Rule& rule) {
    if ((rule.ops & ~kReading) != 0) {
      return section.Wrong("ops", "has \"read\" and others",
                           "a rule of its own with ops = [\"read\"]");
    }
    if (rule.action != Action::kDeny) {
      return section.Wrong("ops", "has \"read\" in a rule that does not deny",
                           "action = \"deny\", at the operation");
    }
    if (section.Has("errno")) {
      return section.Wrong("errno", "is given for a rule about reading",
                           "none: reading fails with EACCES");
    }
    rule.error = EACCES;
    return {};
  }

  /// What a commit brings, no single program or user has done.
  static Status CheckHasNoProgram(const Section& section) {
    for (const std::string_view key : {"exe", "uid"}) {
      if (!section.Has(key)) continue;
      return section.Wrong(key, "is given for a rule with at = \"commit\"",
                           "none: a commit has the work of all programs");
    }
    return {};
  }

  Result<std::vector<Condition>> ReadExceptions(const Section& section,
                                                const Node& unless,
                                                const Rule& rule,
                                                bool nocase) const {
    std::vector<Condition> exceptions;
    for (const Node* table : AloneOrListed(unless)) {
      if (!table->is_table()) {
        return section.Wrong("unless", "is not a table",
                             "unless = { path = ..., exe = ... }, or a list of "
                             "such tables");
      }
      const Section exception(file_, "unless of " + rule.id, *table);
      TRY(exception.CheckKeys({"path", "layer", "type", "exe", "uid"}));
      if (rule.action == Action::kHold) TRY(CheckHasNoProgram(exception));
      exceptions.push_back(TRY(ReadCondition(exception, nocase)));
      TRY(CheckLayer(exception, exceptions.back(), rule.ops));
    }
    const bool says_nothing =
        exceptions.empty() ||
        std::ranges::any_of(exceptions, &Condition::empty);
    if (!says_nothing) return exceptions;
    return section.Wrong("unless", "is empty",
                         "at least one of path, layer, type, exe, uid");
  }

  Result<Mask> ReadOps(const Section& section) const {
    if (!section.Has("ops")) return kEverything;
    Mask mask = 0;
    for (const std::string& name : TRY(section.Texts("ops"))) {
      if (name == kMoveName) {
        mask |= kMove;
        continue;
      }
      const auto effect = EffectNamed(name);
      const auto op = OpNamed(name);
      if (!effect && !op) {
        return section.Wrong("ops", "has " + Quoted(name),
                             "any of " + Listed(NamesOfOps()));
      }
      mask |= effect ? MaskOf(*effect) : MaskOf(*op);
    }
    return mask;
  }

  Result<Condition> ReadCondition(const Section& section, bool nocase) const {
    Condition condition;
    condition.patterns = TRY(section.Texts("path"));
    condition.paths = TRY(ReadGlobs(section, "path", nocase));
    condition.exes = TRY(ReadGlobs(section, "exe", false));
    condition.uids = TRY(section.Uids("uid"));
    condition.types = TRY(ReadTypes(section));
    const std::string layer = TRY(section.Text("layer", "any"));
    condition.layer = LayerNamed(layer);
    if (!condition.layer && layer != "any") {
      return section.Wrong("layer", "is " + Quoted(layer),
                           "base, new, empty or any");
    }
    return condition;
  }

  static Result<std::vector<Type>> ReadTypes(const Section& section) {
    std::vector<Type> types;
    for (const std::string& name : TRY(section.Texts("type"))) {
      const auto type = TypeNamed(name);
      if (!type) {
        return section.Wrong("type", "has " + Quoted(name),
                             "file, directory, symlink or other");
      }
      types.push_back(*type);
    }
    return types;
  }

  Result<std::vector<Glob>> ReadGlobs(const Section& section,
                                      std::string_view key, bool nocase) const {
    std::vector<Glob> globs;
    for (const std::string& pattern : TRY(section.Texts(key))) {
      TRY(section.CheckPlain(key, pattern, kMaxPattern));
      auto glob = Glob::Parse(pattern, nocase);
      if (!glob) {
        return section.Wrong(key, "has a " + glob.error().message,
                             "a pattern as in .gitignore");
      }
      globs.push_back(std::move(*glob));
    }
    return globs;
  }

  /// What is made is never of the base, so that a condition for the base does
  /// not hold in any event that such ops mean.
  static Status CheckLayer(const Section& section, const Condition& condition,
                           Mask ops) {
    const bool never =
        condition.layer == Layer::kBase && (ops & ~kMakingOps) == 0;
    if (!never) return {};
    return section.Wrong("layer", "is \"base\", but all its ops make new names",
                         "ops on existing files, or another layer");
  }

  /// Each as "OP PATH"; of the layer that the rule is about. Those of the
  /// built-in rules are checked by a test.
  Result<std::vector<Example>> ReadExamples(const Section& section,
                                            const Rule& rule) const {
    std::optional<Policy> alone;
    if (file_ != kBuiltinName) alone.emplace(std::vector<Rule>{rule});
    std::vector<Example> examples;
    for (const bool wanted : {true, false}) {
      const std::string_view key = wanted ? "match" : "not_match";
      for (const std::string& text : TRY(section.Texts(key))) {
        Example example = TRY(ReadExample(section, key, text, wanted));
        const Event event = EventOf(example, rule);
        if (alone && alone->Matching(event).empty() == wanted) {
          return section.Wrong(key, "has " + Quoted(text),
                               ExpectedOf(event, rule, wanted));
        }
        examples.push_back(std::move(example));
      }
    }
    return examples;
  }

  static Result<Example> ReadExample(const Section& section,
                                     std::string_view key,
                                     const std::string& text, bool matches) {
    const size_t space = text.find(' ');
    const auto op = OpNamed(std::string_view(text).substr(0, space));
    if (!op || space == std::string::npos || space + 1 == text.size()) {
      return section.Wrong(key, "has " + Quoted(text),
                           "an operation of txfs log, a space, and a path");
    }
    if (text[space + 1] == '/') {
      return section.Wrong(key, "has " + Quoted(text),
                           "a path that begins without a slash");
    }
    return Example{
        .op = *op, .path = text.substr(space + 1), .matches = matches};
  }

  static std::string_view ExpectedOf(const Event& event, const Rule& rule,
                                     bool wanted) {
    if (!wanted) return "an operation that the rule does not match";
    const bool is_new =
        rule.when.layer == Layer::kBase && event.effect == Effect::kMake;
    return is_new ? "an operation on the base; a new file is not in it"
                  : "an operation that the rule matches";
  }

  const std::string file_;
  Action action_ = Action::kDeny;
  int error_ = EPERM;
  std::map<std::string, uint32_t> ids_;  ///< and their lines
};

/// What `op` does to the name of an example of a rule about `ops`.
Effect EffectOf(Op op, Mask ops) {
  const Effect effect = MainEffect(op);
  const bool moves = op == Op::kRename || op == Op::kExchange;
  const bool only_made =
      (ops & (MaskOf(Effect::kRemove) | MaskOf(op) | kMove)) == 0 &&
      (ops & MaskOf(Effect::kMake)) != 0;
  return moves && only_made ? Effect::kMake : effect;
}

}  // namespace

Event EventOf(const Example& example, const Rule& rule) {
  const Effect effect = EffectOf(example.op, rule.ops);
  const std::vector<Type>& types = rule.when.types;
  return {.op = example.op,
          .effect = effect,
          .path = example.path,
          .layer = effect == Effect::kMake
                       ? Layer::kNew
                       : rule.when.layer.value_or(Layer::kBase),
          .type = TypeOf(example.op)
                      .value_or(types.empty() ? Type::kFile : types.front()),
          .moved = example.op == Op::kRename && effect == Effect::kRemove,
          .exe = {},
          .uid = {}};
}

Result<Loaded> Load(std::string_view text, const std::string& file) {
  const Node root = TRY(ParseToml(text, file));
  return Load(root, text, file);
}

Result<Loaded> Load(const Node& root, std::string_view text,
                    const std::string& file) {
  Loaded loaded = TRY(FileLoader(file).Run(root));
  loaded.hash = Checksum(AsBytes(text));
  return loaded;
}

}  // namespace txfs::policy
