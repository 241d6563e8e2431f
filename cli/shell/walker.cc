#include "cli/shell/walker.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <utility>

#include "cli/output/text.h"
#include "cli/plain/plain_syntax.h"
#include "cli/shell/syntax.h"

namespace txfs::cli {
namespace {

constexpr size_t kMaxSteps = 20'000;
constexpr size_t kMaxParses = 32;
constexpr size_t kMaxRetries = 2;
constexpr size_t kMaxSyntaxNesting = 100;
constexpr size_t kMaxItems = 64;  ///< of a loop that is followed
constexpr size_t kMaxUnknown = 64;
constexpr size_t kFirstChosen = 10;  ///< of the descriptors of {NAME}<FILE

const Json* Member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::string_view TypeNameOf(const Json& object) {
  const Json* type = Member(object, "Type");
  if (type == nullptr || !type->is_string()) return "";
  return type->get_ref<const std::string&>();
}

template <class Items>
void Append(Items& items, const Items& more) {
  items.insert(items.end(), more.begin(), more.end());
}

/// Whether the command `source` has no output, so that `> FILE` empties it.
bool WritesNothing(std::string_view source) {
  constexpr auto kCommands = std::to_array<std::string_view>(
      {":", "true", "cat /dev/null", "echo -n", "printf ''"});
  return std::ranges::find(kCommands, source) != kCommands.end();
}

}  // namespace

void Flow::Add(const Flow& other) {
  Append(feeders, other.feeders);
  Append(reads, other.reads);
  Append(roots, other.roots);
  if (literal && other.literal) {
    *literal += *other.literal;
  } else {
    literal.reset();
  }
}

bool Walker::Variable::operator==(const Variable& other) const {
  return std::ranges::equal(values, other.values,
                            [](const auto& a, const auto& b) {
                              return a.text == b.text && a.known == b.known;
                            });
}

Walker::Walker(const ShellStart& start) : surroundings_(start.surroundings) {
  state_.directory = start.directory;
}

void Walker::Note(const std::string& sentence) {
  reading_.is_plain = false;
  if (noted_.size() >= kMaxUnknown || !noted_.insert(sentence).second) return;
  reading_.unknown.push_back(sentence);
}

ShellReading Walker::Take() {
  if (has_unread_) {
    AddPart(MakeCommand({policy::KnownWord("unread-text")}, {}, {}, {}));
  }
  return std::move(reading_);
}

void Walker::NoteBound(const std::string& sentence) {
  Note(sentence);
  has_unread_ = true;
}

bool Walker::IsTooMuch() {
  const bool too_deep = depth_ > kMaxShellDepth || nesting_ > kMaxSyntaxNesting;
  if (too_deep) NoteBound("the text is nested too deeply to be followed");
  const bool too_long = reading_.parts.size() >= kMaxShellParts ||
                        ++steps_ > kMaxSteps ||
                        std::chrono::steady_clock::now() > parser_.deadline;
  if (too_long) NoteBound("the text has too many parts to be followed");
  return too_deep || too_long;
}

policy::Surroundings Walker::Here() const {
  if (!frame_.remote) return surroundings_;
  return {.workspace = "", .home = surroundings_.home, .temporary = ""};
}

void Walker::WalkText(std::string_view text) { Parse(text, {}); }

void Walker::WalkWords(const std::vector<std::string>& words) {
  Words known;
  for (const std::string& word : words) {
    known.push_back(policy::KnownWord(word));
    known.back().quoted = true;
  }
  if (!known.empty()) Run(known, {}, {}, {});
}

Flow Walker::Parse(std::string_view text, const Flow& in) {
  const Level deeper(depth_);
  if (IsTooMuch()) return {};
  if (++parses_ > kMaxParses) {
    NoteBound("the text has too many scripts in it to be followed");
    return {};
  }
  ParseFailure failure;
  auto tree = ParseShell(text, parser_, failure);
  if (!tree) Note(tree.error().ToString());
  // A shell runs the lines before the error.
  for (size_t tries = 0; !tree && tries < kMaxRetries; ++tries) {
    text = failure.lines_before;
    if (text.empty()) break;
    tree = ParseShell(text, parser_, failure);
  }
  if (!tree) {
    if (failure.kind == ParseFailure::Kind::kBound) has_unread_ = true;
    if (failure.kind == ParseFailure::Kind::kParser) {
      reading_.failure = std::move(tree.error());
    }
    return {};
  }
  trees_.push_back(*std::move(tree));
  sources_.emplace_back(text);
  if (!IsPlainSyntax(trees_.back(), text)) reading_.is_plain = false;
  const std::string* const outer = std::exchange(source_, &sources_.back());
  const Json& parsed = trees_.back();
  Flow out = Statements(GetMember(parsed, "Stmts"), in);
  SearchRest(parsed);
  source_ = outer;
  return out;
}

Flow Walker::Statements(const Json& list, const Flow& in) {
  Flow out{.literal = ""};
  for (const Json& statement : list) {
    if (IsTooMuch()) break;
    out.Add(Statement(statement, in));
  }
  return out;
}

Flow Walker::Statement(const Json& statement, const Flow& in) {
  const Level deeper(nesting_);
  if (IsTooMuch()) return {};
  const bool beside = std::exchange(
      frame_.beside, frame_.beside || GetBool(statement, "Background"));
  const auto [input, writes, reads, emptied] = Redirect(statement, in);
  Flow out{.literal = ""};
  if (const Json* command = Member(statement, "Cmd")) {
    if (reads && SourceOf(*command) == "exec") state_.input = input;
    out = RunCommand(*command, input);
  } else if (reads) {
    // $(<file)
    out = input;
  }
  AddWrites(writes, out);
  const Json* const writer = Member(statement, "Cmd");
  if (writer == nullptr || WritesNothing(SourceOf(*writer))) {
    for (const policy::Word& file : emptied) AddEmptied(file);
  }
  frame_.beside = beside;
  return out;
}

Flow Walker::RunCommand(const Json& command, const Flow& in) {
  const std::string_view type = TypeNameOf(command);
  if (type == "CallExpr") return Call(command, in);
  if (type == "BinaryCmd") return Pipe(command, in);
  if (type == "Subshell") return InSubshell(GetMember(command, "Stmts"), in);
  if (type == "Block") return Statements(GetMember(command, "Stmts"), in);
  if (type == "IfClause") return If(command, in);
  if (type == "WhileClause" || type == "ForClause") return Loop(command, in);
  if (type == "CaseClause") return Case(command, in);
  if (type == "TimeClause" || type == "CoprocClause") {
    const Json* statement = Member(command, "Stmt");
    if (statement == nullptr) return {};
    // Later commands write to a coprocess.
    const Flow later{.feeders = {"coproc"}};
    return Statement(*statement, type == "CoprocClause" ? later : in);
  }
  if (type == "FuncDecl") {
    const Json* body = Member(command, "Body");
    const std::string name = GetBytes(GetMember(command, "Name"), "Value");
    if (body != nullptr) state_.functions[name] = {body, source_};
    return {.literal = ""};
  }
  if (type == "DeclClause") {
    Declare(command);
    const std::string source = SourceOf(command);
    // Without a name, it prints all variables.
    const size_t last = source.rfind(' ');
    const bool prints = source.contains(" -p") || last == std::string::npos ||
                        source[last + 1] == '-';
    if (prints && !source.contains('=')) {
      return {.feeders = {source}};
    }
    return {.literal = ""};
  }
  Search(command, in, 0);
  return {};
}

Flow Walker::InSubshell(const Json& list, const Flow& in) {
  const State outer = state_;
  Flow out = Statements(list, in);
  state_ = outer;
  return out;
}

std::string_view Walker::OperatorAt(const Json& node, const char* key) const {
  const uint64_t offset = GetUint(GetMember(node, key), "Offset");
  if (source_ == nullptr || offset >= source_->size()) return "";
  const std::string_view rest = std::string_view(*source_).substr(offset);
  const size_t end = rest.find_first_not_of("|&<>-");
  return rest.substr(0, std::min<size_t>(end, 3));
}

std::string Walker::SourceOf(const Json& node) const {
  const uint64_t begin = GetUint(GetMember(node, "Pos"), "Offset");
  const uint64_t end = GetUint(GetMember(node, "End"), "Offset");
  if (source_ == nullptr || begin >= end || end > source_->size()) return "$?";
  return source_->substr(begin, end - begin);
}

/// A chain nests to the left, and may be long: it is walked without recursion.
Flow Walker::Pipe(const Json& command, const Flow& in) {
  struct Link {
    const Json* statement;
    std::string_view op;  ///< before it
  };
  std::vector<Link> links;
  const Json* first = &command;
  const Json* leftmost = nullptr;
  while (first != nullptr) {
    const std::string_view op = OperatorAt(*first, "OpPos");
    const Json* right = Member(*first, "Y");
    const Json* left = Member(*first, "X");
    if (right == nullptr || left == nullptr) return {};
    links.push_back({right, op});
    leftmost = left;
    const Json* inner = Member(*left, "Cmd");
    const bool goes_on = inner != nullptr &&
                         TypeNameOf(*inner) == "BinaryCmd" &&
                         GetMember(*left, "Redirs").empty();
    first = goes_on ? inner : nullptr;
  }
  links.push_back({leftmost, ""});
  std::ranges::reverse(links);
  const auto is_pipe = [](std::string_view op) {
    return op == "|" || op == "|&";
  };
  Flow all{.literal = ""};
  for (size_t i = 0; i < links.size() && !IsTooMuch();) {
    size_t end = i + 1;
    while (end < links.size() && is_pipe(links[end].op)) ++end;
    if (end == i + 1) {
      all.Add(Statement(*links[i].statement, in));
      i = end;
      continue;
    }
    const bool beside = std::exchange(frame_.beside, true);
    const State outer = state_;
    Flow flow = in;
    for (; i < end; ++i) {
      flow = Statement(*links[i].statement, flow);
      const auto written = std::move(state_.written);
      state_ = outer;
      state_.written = written;
    }
    frame_.beside = beside;
    all.Add(flow);
  }
  return all;
}

void Walker::Forget(const State& before) {
  const policy::Word unknown{.text = "$?", .known = false, .known_prefix = 0};
  for (auto& [name, variable] : state_.variables) {
    const auto old = before.variables.find(name);
    const bool same = old != before.variables.end() && old->second == variable;
    // One that was not set before may be that of the environment.
    if (!same) variable.values = {unknown};
  }
  for (const auto& [name, variable] : before.variables) {
    if (!state_.variables.contains(name)) {
      state_.variables[name].values = {unknown};
    }
  }
  if (state_.directory != before.directory) state_.directory.clear();
}

Flow Walker::If(const Json& clause, const Flow& in) {
  Flow out{.literal = ""};
  const Json* branch = &clause;
  const State before = state_;
  bool changed = false;
  std::optional<State> first;
  while (branch != nullptr && !IsTooMuch()) {
    Statements(GetMember(*branch, "Cond"), in);
    State condition = state_;
    out.Add(Statements(GetMember(*branch, "Then"), in));
    if (!first) {
      first = state_;
    } else {
      State other = std::move(*first);
      Forget(other);
      first = state_;
    }
    changed = true;
    const Json* next = Member(*branch, "Else");
    // Without an else, nothing may happen, too.
    const bool is_else = next != nullptr && GetMember(*next, "Cond").empty();
    state_ = std::move(condition);
    if (is_else) {
      out.Add(Statements(GetMember(*next, "Then"), in));
      next = nullptr;
    }
    branch = next;
  }
  if (changed) Forget(*first);
  out.literal.reset();
  return out;
}

Flow Walker::Loop(const Json& clause, const Flow& in) {
  if (TypeNameOf(clause) == "WhileClause") return While(clause, in);
  Flow out{.literal = ""};
  const State before = state_;
  const Json& loop = GetMember(clause, "Loop");
  const Json& body = GetMember(clause, "Do");
  const std::string name = GetBytes(GetMember(loop, "Name"), "Value");
  if (TypeNameOf(loop) != "WordIter") {
    Search(loop, in, 0);
    out.Add(Statements(body, in));
    Forget(before);
    out.literal.reset();
    return out;
  }
  Flow used;
  const Words items = loop.contains("InPos")
                          ? Fields(GetMember(loop, "Items"), used)
                          : state_.arguments;
  Flow inside = in;
  Append(inside.feeders, used.feeders);
  Append(inside.reads, used.reads);
  if (items.size() <= kMaxItems) {
    for (const policy::Word& item : items) {
      state_.variables[name] = {.values = {item}, .source = used};
      out.Add(Statements(body, inside));
    }
  } else {
    Note("the loop over " + name + " has too many words to be followed");
    state_.variables[name] = {
        .values = {{.text = "$" + name, .known = false, .known_prefix = 0}},
        .source = used};
    out.Add(Statements(body, inside));
  }
  Forget(before);
  out.literal.reset();
  return out;
}

/// A loop that reads lines runs once for each.
Flow Walker::While(const Json& clause, const Flow& in) {
  Flow out{.literal = ""};
  const State before = state_;
  const Json& condition = GetMember(clause, "Cond");
  const Json& body = GetMember(clause, "Do");
  std::vector<std::string> lines;
  if (in.literal) {
    for (const auto line : std::views::split(*in.literal, '\n')) {
      lines.emplace_back(line.begin(), line.end());
    }
    if (lines.back().empty()) lines.pop_back();
  }
  if (lines.empty() || lines.size() > kMaxItems) {
    Flow all = in;
    if (!lines.empty()) {
      Note("a loop reads too many lines to be followed");
      all.literal.reset();
    }
    Statements(condition, all);
    out.Add(Statements(body, all));
  }
  for (const std::string& line : lines) {
    if (lines.size() > kMaxItems) break;
    Flow one = in;
    one.literal = line + "\n";
    Statements(condition, one);
    out.Add(Statements(body, one));
  }
  Forget(before);
  out.literal.reset();
  return out;
}

Flow Walker::Case(const Json& clause, const Flow& in) {
  Flow used;
  if (const Json* word = Member(clause, "Word")) Expand(*word, used);
  Flow out{.literal = ""};
  const State before = state_;
  for (const Json& item : GetMember(clause, "Items")) {
    for (const Json& pattern : GetMember(item, "Patterns")) {
      Expand(pattern, used);
    }
    const State already = state_;
    State inside = before;
    inside.functions = already.functions;
    state_ = std::move(inside);
    out.Add(Statements(GetMember(item, "Stmts"), in));
    Forget(already);
  }
  out.literal.reset();
  return out;
}

void Walker::Declare(const Json& clause) {
  Flow used;
  const bool exports =
      GetBytes(GetMember(clause, "Variant"), "Value") == "export";
  bool is_number = false;
  for (const Json& assign : GetMember(clause, "Args")) {
    const std::string option = SourceOf(GetMember(assign, "Value"));
    is_number = is_number || (GetBool(assign, "Naked") &&
                              option.starts_with('-') && option.contains('i'));
    Assign(assign, used);
    const std::string name = GetBytes(GetMember(assign, "Name"), "Value");
    if (is_number && !name.empty()) EvaluateValue(name);
    if (exports && !name.empty()) state_.exported.insert(name);
  }
}

void Walker::Assign(const Json& assign, Flow& outer) {
  Flow used;
  if (assign.contains("Index")) {
    Search(GetMember(assign, "Index"), {}, 0);
    EvaluateArithmetic(GetMember(assign, "Index"));
  }
  const std::string name = GetBytes(GetMember(assign, "Name"), "Value");
  const Json* value = Member(assign, "Value");
  const Json* array = Member(assign, "Array");
  if (name.empty()) {
    if (value != nullptr) Expand(*value, outer);
    return;
  }
  // `export NAME` sets nothing.
  if (GetBool(assign, "Naked") && value == nullptr) return;
  Words values;
  if (array != nullptr) {
    for (const Json& element : GetMember(*array, "Elems")) {
      Search(GetMember(element, "Index"), {}, 0);
      EvaluateArithmetic(GetMember(element, "Index"));
      const Json* word = Member(element, "Value");
      if (word == nullptr) continue;
      AddWords(Expand(*word, used), values);
    }
  } else if (value != nullptr) {
    values.push_back(Expand(*value, used).AsWord(surroundings_.home));
  } else {
    values.push_back(policy::KnownWord(""));
  }
  for (const policy::Word& word : values) RunVariable(name, word);
  Flow& source = state_.variables[name].source;
  if (!GetBool(assign, "Append")) source = {};
  Append(source.feeders, used.feeders);
  Append(source.reads, used.reads);
  outer.Add(used);
  Words& variable = state_.variables[name].values;
  if (assign.contains("Index") && array == nullptr) {
    for (policy::Word& word : values) word.known = false;
  }
  if (!GetBool(assign, "Append")) {
    variable = std::move(values);
  } else if (array != nullptr) {
    Append(variable, values);
  } else if (variable.empty()) {
    const auto old = ValueOf(name);
    variable = std::move(values);
    if (!old) variable[0].known = false;
  } else if (!values.empty()) {
    policy::Word& last = variable[0];
    if (last.known) {
      last.known_prefix = last.text.size() + values[0].known_prefix;
    }
    last.known = last.known && values[0].known;
    last.text += values[0].text;
  }
}

void Walker::Search(const Json& json, const Flow& in, size_t levels) {
  if (levels > kMaxSyntaxNesting || IsTooMuch()) return;
  const std::string_view type = TypeNameOf(json);
  if (type == "CmdSubst" || type == "ProcSubst") {
    searched_.insert(&json);
    InSubshell(GetMember(json, "Stmts"), in);
    return;
  }
  if (IsArithmetic(type)) EvaluateArithmetic(json);
  if (!json.is_structured()) return;
  for (const Json& child : json) {
    if (child.is_structured()) Search(child, in, levels + 1);
  }
}

Flow Walker::HereDocument(const Json& redirect) {
  const Json* text = Member(redirect, "Hdoc");
  Flow flow{.literal = ""};
  // An empty one has none.
  if (text == nullptr) return flow;
  const std::string delimiter = SourceOf(GetMember(redirect, "Word"));
  const bool quoted = delimiter.find_first_of("'\"\\") != std::string::npos;
  Flow used;
  Letters letters;
  for (const Json& part : GetMember(*text, "Parts")) {
    if (quoted) {
      *flow.literal += GetBytes(part, "Value");
    } else if (TypeNameOf(part) == "Lit") {
      letters.AddInQuotes(GetBytes(part, "Value"));
    } else {
      ExpandPart(part, true, letters, used);
    }
  }
  // What is not known stands there as it is written.
  if (!quoted) flow.literal = letters.text();
  flow.feeders = std::move(used.feeders);
  flow.reads = std::move(used.reads);
  return flow;
}

Flow Walker::FileInput(const policy::Word& file, const Flow& used) {
  Flow flow{.feeders = used.feeders, .reads = used.reads, .literal = {}};
  reading_.inputs.emplace_back(file, state_.directory);
  if (auto path = policy::PathIn(file, state_.directory, Here())) {
    path->argument = policy::kNoArgument;
    if (const Flow* known = WrittenTo(path->path)) flow = *known;
    const auto held = contents_.find(path->path);
    if (held != contents_.end()) Append(flow.reads, held->second.reads);
    flow.is_file = path->path != "/dev/null";
    flow.reads.push_back(*std::move(path));
  }
  return flow;
}

const Flow* Walker::WrittenTo(const std::string& path) const {
  constexpr std::string_view kProcess = "/proc/self/fd/";
  const auto known = state_.written.find(
      path.starts_with(kProcess) ? "/dev/fd/" + path.substr(kProcess.size())
                                 : path);
  return known == state_.written.end() ? nullptr : &known->second;
}

Walker::Redirected Walker::Redirect(const Json& statement, const Flow& in) {
  const bool has_input =
      in.literal || in.is_file || !in.feeders.empty() || !in.reads.empty();
  Redirected result{.in = !has_input && state_.input ? *state_.input : in,
                    .writes = {},
                    .reads = false,
                    .emptied = {}};
  for (const Json& redirect : GetMember(statement, "Redirs")) {
    const std::string_view op = OperatorAt(redirect, "OpPos");
    const Json* word = Member(redirect, "Word");
    if (word == nullptr || op.empty()) continue;
    std::string number = GetBytes(GetMember(redirect, "N"), "Value");
    if (number.starts_with('{') && number.size() > 2) {
      // {NAME}: the shell chooses.
      const std::string name = number.substr(1, number.size() - 2);
      number = std::to_string(kFirstChosen + state_.written.size());
      state_.variables[name] = {.values = {policy::KnownWord(number)},
                                .source = {}};
    }
    const auto put = [&](Flow flow) {
      const bool is_standard = number.empty() || number == "0";
      result.reads = result.reads || is_standard;
      Flow& place =
          is_standard ? result.in : state_.written["/dev/fd/" + number];
      place = std::move(flow);
    };
    if (op.starts_with("<<") && op != "<<<") {
      put(HereDocument(redirect));
      continue;
    }
    Flow used;
    const policy::Word file = Expand(*word, used).AsWord(surroundings_.home);
    if (op == "<<<") {
      Flow flow{.feeders = used.feeders, .reads = used.reads, .literal = {}};
      const bool is_substitution =
          !file.known && file.known_prefix == 0 && !used.feeders.empty();
      if (!is_substitution) flow.literal = file.text + "\n";
      put(std::move(flow));
      continue;
    }
    const bool duplicates = op.starts_with("<&") || op.starts_with(">&");
    const bool is_number =
        !file.text.empty() &&
        file.text.find_first_not_of("0123456789-") == std::string::npos;
    if (duplicates && is_number) {
      if (op[0] == '>') continue;
      const std::string from = file.text.substr(0, file.text.find('-'));
      const Flow* known = WrittenTo("/dev/fd/" + from);
      if (from.empty()) {
        put({.literal = ""});
      } else if (known != nullptr) {
        put(Flow(*known));
      } else {
        put(from == "0" ? result.in : Flow{.feeders = {"<&" + from}});
      }
      continue;
    }
    if (op.starts_with("<") && op != "<>") {
      put(FileInput(file, used));
      continue;
    }
    result.writes.push_back(file);
    if (op == ">" || op == ">|" || op == "&>") result.emptied.push_back(file);
  }
  return result;
}

void Walker::AddWrites(const Words& files, const Flow& content) {
  for (const policy::Word& file : files) {
    if (file.text == "/dev/null") continue;
    policy::Command command =
        MakeCommand({policy::KnownWord(">"), file}, {}, content, {});
    for (const policy::PathArgument& path : command.paths) {
      state_.written[path.path] = content;
    }
    AddPart(std::move(command));
  }
}

policy::Command& Walker::AddPart(policy::Command command) {
  reading_.parts.push_back({.command = std::move(command),
                            .via = frame_.via,
                            .is_wrapper = false,
                            .is_guess = frame_.guess});
  return reading_.parts.back().command;
}

ShellReading ReadShellText(std::string_view text, const ShellStart& start) {
  Walker walker(start);
  walker.WalkText(text);
  return walker.Take();
}

ShellReading ReadCommandWords(const std::vector<std::string>& words,
                              const ShellStart& start) {
  Walker walker(start);
  walker.WalkWords(words);
  return walker.Take();
}

}  // namespace txfs::cli
