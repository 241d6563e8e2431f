#include <algorithm>
#include <array>
#include <ranges>
#include <utility>

#include "cli/shell/walker.h"
#include "policy/exec_rule.h"

namespace txfs::cli {
namespace {

using policy::BaseName;
using policy::KnownWord;
using policy::Script;
using policy::Word;

constexpr size_t kMaxFeederText = 512;
constexpr size_t kMaxFeeders = 64;
/// Programs that install the package in a file.
constexpr auto kInstallers =
    std::to_array<std::string_view>({"dpkg", "rpm", "apt", "apt-get", "dnf",
                                     "yum", "pip", "pip3", "npm", "installer"});
/// Programs that write lines of what they read.
constexpr auto kFilters = std::to_array<std::string_view>(
    {"grep", "egrep", "sort", "head", "tail", "uniq", "shuf", "tac", "tee"});

/// The command in a line, for patterns.
std::string LineOf(const std::vector<Word>& words) {
  std::string line(BaseName(words[0].text));
  for (size_t i = 1; i < words.size() && line.size() < kMaxFeederText; ++i) {
    line += " " + words[i].text;
  }
  return line;
}

template <class Items>
void AppendTo(Items& items, const Items& more) {
  items.insert(items.end(), more.begin(), more.end());
}

/// The last operand of a copy, and what is copied.
bool Copies(std::string_view name) {
  return name == "cp" || name == "mv" || name == "install" || name == "ln";
}

}  // namespace

Word Below(const Word& root) {
  // What is found below "/" is outside: the root stands for all of it.
  if (root.known && root.text == "/") return root;
  Word below = root;
  below.text += root.text.ends_with('/') ? "" : "/";
  // A name in the root directory may be any path.
  below.known_prefix = root.known ? below.text.size() : root.known_prefix;
  below.text += "{}";
  below.known = false;
  return below;
}

policy::Command Walker::MakeCommand(const Words& words,
                                    const std::vector<std::string>& environment,
                                    const Flow& in, const Flow& used) const {
  policy::Command command;
  command.program = words[0];
  command.arguments.assign(words.begin() + 1, words.end());
  command.directory = frame_.remote ? "" : state_.directory;
  command.environment = environment;
  command.remote = frame_.remote;
  command.contained = frame_.contained;
  for (const auto& [name, variable] : state_.variables) {
    const bool is_set = name == "PATH" || state_.exported.contains(name);
    if (!is_set || variable.values.size() != 1) continue;
    command.environment.push_back(name + "=" + variable.values[0].text);
  }
  if (in.is_file) command.fed_by.emplace_back("<");
  if (!in.feeders.empty() && !in.literal) command.fed_by.emplace_back("|");
  AppendTo(command.fed_by, in.feeders);
  AppendTo(command.fed_by, used.feeders);
  if (command.fed_by.size() > kMaxFeeders) command.fed_by.resize(kMaxFeeders);
  command.input = in.literal.value_or("");
  command.reads = in.reads;
  AppendTo(command.reads, used.reads);
  policy::FindPaths(command, Here());
  FollowBindings(command);
  AddContents(command);
  return command;
}

Flow Walker::Call(const Json& call, const Flow& in) {
  Flow used;
  const Flow* const outer = std::exchange(piped_, &in);
  Words words;
  for (const Json& word : GetMember(call, "Args")) {
    Flow one;
    Words fields;
    AddWords(Expand(word, one), fields);
    const bool proves =
        !words.empty() && IsCredential(words.back().text, SourceOf(word));
    if (proves) {
      std::erase_if(one.reads, [&](const policy::PathArgument& path) {
        return path.region == policy::Region::kWorkspace &&
               SelectsValue(one.feeders, BaseName(path.path));
      });
      std::erase_if(one.feeders, [](const std::string& feeder) {
        return feeder != "env" && feeder != "printenv" && feeder != "set";
      });
    }
    used.Add(one);
    const bool names_program = words.empty() && !fields.empty();
    if (names_program && !fields[0].known && !one.feeders.empty()) {
      // $(COMMAND), or a variable with its output.
      policy::Command run = MakeCommand({KnownWord("eval")}, {}, {}, one);
      run.script = Script::kInput;
      AddPart(std::move(run));
    }
    AppendTo(words, fields);
    Bound(words);
  }
  piped_ = outer;
  const Json& assigns = GetMember(call, "Assigns");
  if (words.empty()) {
    for (const Json& assign : assigns) Assign(assign, used);
    return {.literal = ""};
  }
  std::vector<std::string> environment;
  for (const Json& assign : assigns) {
    const std::string name = GetBytes(GetMember(assign, "Name"), "Value");
    const Json& value = GetMember(assign, "Value");
    const Word word = Expand(value, used).AsWord(surroundings_.home);
    environment.push_back(name + "=" + word.text);
    RunVariable(name, word);
  }
  return Run(words, environment, in, used);
}

Flow Walker::Run(const Words& words,
                 const std::vector<std::string>& environment, const Flow& in,
                 const Flow& used) {
  const Level deeper(nesting_);
  if (words.empty() || IsTooMuch()) return {};
  const std::string name(BaseName(words[0].text));
  Flow out{.feeders = in.feeders, .reads = in.reads, .literal = {}};
  AppendTo(out.feeders, used.feeders);
  AppendTo(out.reads, used.reads);
  // "[" is a program.
  const bool is_pattern =
      !words[0].quoted && name != "[" &&
      words[0].text.find_first_of("*?[") != std::string::npos;
  if (!words[0].known || is_pattern) {
    Note("the program " + words[0].text + " is not known");
    AddPart(MakeCommand(words, environment, in, used));
    return out;
  }
  if (!words[0].text.contains('/')) {
    if (const auto function = state_.functions.find(name);
        function != state_.functions.end()) {
      const Function body = function->second;
      return RunFunction(body, words, in);
    }
    if (const auto alias = state_.aliases.find(name);
        alias != state_.aliases.end()) {
      const auto replaced = policy::SimpleWords(alias->second);
      const bool again = replaced && (*replaced)[0].text == name;
      if (replaced && !again) {
        Words all = *replaced;
        AppendTo(all, Words(words.begin() + 1, words.end()));
        return Run(all, environment, in, used);
      }
      if (!replaced) {
        Words all{KnownWord(alias->second)};
        AppendTo(all, Words(words.begin() + 1, words.end()));
        RunText(Joined(all), in, used, name);
        return out;
      }
    }
  }
  policy::Command command = MakeCommand(words, environment, in, used);
  if (std::ranges::find(kInstallers, name) != kInstallers.end()) {
    for (const Word& word : words) {
      const Flow* known =
          WrittenTo(policy::NormalPath(state_.directory, word.text));
      if (known != nullptr) AppendTo(command.fed_by, known->feeders);
    }
  }
  for (policy::PathArgument path : command.paths) {
    // The number is that of an argument of another command.
    path.argument = policy::kNoArgument;
    out.reads.push_back(std::move(path));
  }
  for (policy::PathArgument held : command.reads) {
    if (held.argument == policy::kNoArgument) continue;
    held.argument = policy::kNoArgument;
    out.reads.push_back(std::move(held));
  }
  if (out.feeders.size() < kMaxFeeders) out.feeders.push_back(LineOf(words));
  const auto as_script =
      state_.written.find(policy::NormalPath(state_.directory, words[0].text));
  const bool runs_written =
      words[0].text.contains('/') && as_script != state_.written.end();
  AddPart(std::move(command));
  const size_t part = reading_.parts.size() - 1;
  const bool may_be_builtin = !words[0].text.contains('/');
  if (may_be_builtin && RunBuiltin(name, words, in, out)) return out;
  if (name == "git" && RunGitAlias(words, in, used)) return out;
  if (runs_written) {
    const Flow content = as_script->second;
    const Words shell{KnownWord("sh")};
    AddPart(MakeCommand(shell, {}, content, {}));
    RunInput(shell, content, {});
    return out;
  }
  AddOutputs(words);
  KeepContents(words, reading_.parts[part].command);
  if (Copies(name) && reading_.parts[part].command.paths.size() == 2) {
    const auto& paths = reading_.parts[part].command.paths;
    if (const auto from = state_.written.find(paths[0].path);
        from != state_.written.end()) {
      const Flow content = from->second;
      state_.written[paths[1].path] = content;
    }
    if (paths[0].path == "/dev/null") AddEmptied(words.back());
  }
  if (name == "tee") {
    for (const auto& path : reading_.parts[part].command.paths) {
      state_.written[path.path] = in;
    }
  }
  const std::vector<Unwrapped> inner = Unwrap(words);
  // find also removes and writes files itself.
  const bool acts = std::ranges::any_of(words, [](const Word& word) {
    return word.text == "-delete" || word.text.starts_with("-fprint") ||
           word.text == "-fls";
  });
  reading_.parts[part].is_wrapper =
      !inner.empty() && !acts && !inner.front().acts;
  for (const Unwrapped& one : inner) {
    const Flow inside = RunInner(one, words, in, used, environment);
    for (const std::string& feeder : inside.feeders) {
      const bool is_new =
          out.feeders.size() < kMaxFeeders &&
          std::ranges::find(out.feeders, feeder) == out.feeders.end();
      if (is_new) out.feeders.push_back(feeder);
    }
  }
  if (inner.empty() && IsShell(name) && !OnlyParses(words)) {
    RunInput(words, in, used);
  }
  if (name == "sed" || name == "gsed") {
    const SedEffects effects = EffectsOfSed(words, in.literal);
    AddOutputFiles(effects.files);
    for (const Word& text : effects.commands) RunText(text, {}, {}, name);
  }
  if (name == "apply_patch" || name == "applypatch") {
    if (words.size() == 1 && !in.literal) Note("the patch is not known");
    AddOutputFiles(FilesOfPatch(words.size() > 1 ? words[1].text
                                                 : in.literal.value_or("")));
  }
  if (name == "make" || name == "gmake") {
    const bool reads = std::ranges::any_of(words, [](const Word& word) {
      return word.text == "-" || word.text == "-f-" || word.text == "--file=-";
    });
    if (reads && in.literal) {
      for (const std::string& recipe : RecipesIn(*in.literal)) {
        RunText(KnownWord(recipe), {}, {}, name);
      }
    }
  }
  if (name == "sftp" || name == "ftp" || name == "lftp") {
    if (in.literal) RunTransfers(words, *in.literal);
    for (const Word& text : words) {
      if (text.text.contains(' ')) RunTransfers(words, text.text);
    }
  }
  if (const auto language = LanguageOf(name)) {
    RunCode(*language, words, in, used);
  }
  if (!in.literal && !in.feeders.empty() && ReadsProgram(words)) {
    reading_.parts[part].command.script = Script::kInput;
    Note("the commands on the standard input of " + name + " are not known");
  }
  RunProgramFile(words, part);
  const bool filters =
      std::ranges::find(kFilters, name) != kFilters.end() && !in.roots.empty();
  if (filters) out.roots = in.roots;
  if (name == "git" && words.size() > 1 && words[1].text.starts_with("ls-")) {
    out.roots.push_back(KnownWord("."));
  }
  if (name == "find" || name == "fd" || name == "ls") {
    for (const Word& word : Words(words.begin() + 1, words.end())) {
      if (name == "ls" && word.text.starts_with('-')) continue;
      if (word.text.starts_with('-') || word.text == "(") break;
      out.roots.push_back(word);
    }
    if (out.roots.empty()) out.roots.push_back(KnownWord("."));
  }
  out.literal = LiteralOutput(words, in.literal, state_.directory);
  // The workspace is taken for a whole repository.
  const bool asks_for_top = name == "git" && words.size() == 3 &&
                            words[2].text == "--show-toplevel" &&
                            state_.directory == surroundings_.workspace;
  if (asks_for_top) out.literal = state_.directory + "\n";
  return out;
}

Flow Walker::RunFunction(const Function& function, const Words& words,
                         const Flow& in) {
  const Level deeper(depth_);
  if (IsTooMuch()) return {};
  if (std::ranges::find(running_, function.body) != running_.end()) {
    // It multiplies if it does not wait for itself.
    if (frame_.beside) {
      AddPart(MakeCommand({KnownWord("fork-bomb"), words[0]}, {}, {}, {}));
    }
    return {};
  }
  running_.push_back(function.body);
  const Words arguments =
      std::exchange(state_.arguments, Words(words.begin() + 1, words.end()));
  const std::string* const source = std::exchange(source_, function.source);
  const bool beside = std::exchange(frame_.beside, false);
  Flow out = Statement(*function.body, in);
  frame_.beside = beside;
  source_ = source;
  state_.arguments = arguments;
  running_.pop_back();
  return out;
}

void Walker::ChangeDirectory(const Words& words) {
  const Word* target = nullptr;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& text = words[i].text;
    if (text == "-") {
      state_.directory.clear();
      return;
    }
    if (text.starts_with('-') && text != "--") continue;
    if (text != "--") target = &words[i];
  }
  if (target == nullptr) {
    state_.directory = surroundings_.home;
  } else if (!target->known ||
             (state_.directory.empty() && !target->text.starts_with('/'))) {
    state_.directory.clear();
  } else {
    state_.directory = policy::NormalPath(state_.directory, target->text);
  }
}

void Walker::ReadVariables(std::string_view name, const Words& words,
                           const Flow& in) {
  Flow from = in;
  Words names;
  bool is_array = name != "read";
  const std::string_view values = is_array ? "dnOsuCc" : "pdnNtui";
  std::string separators = is_array ? "\n" : " ";
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& text = words[i].text;
    if (text.starts_with('-')) {
      is_array = is_array || text.ends_with('a');
      if (text.ends_with('u') && i + 1 < words.size()) {
        const Flow* known = WrittenTo("/dev/fd/" + words[i + 1].text);
        from = known == nullptr ? Flow{.feeders = {"<&"}} : *known;
      }
      // -p PROMPT, -d DELIMITER and the like.
      if (values.contains(text.back())) ++i;
      continue;
    }
    names.push_back(words[i]);
  }
  if (names.empty()) names.push_back(KnownWord(is_array ? "MAPFILE" : "REPLY"));
  const auto set = state_.variables.find("IFS");
  if (name == "read" && set != state_.variables.end() &&
      set->second.values.size() == 1) {
    separators = set->second.values[0].text;
  }
  for (const std::string& one : reading_.parts.back().command.environment) {
    if (name == "read" && one.starts_with("IFS=")) separators = one.substr(4);
  }
  std::vector<std::string> fields;
  if (from.literal) {
    const std::string_view all = *from.literal;
    const std::string_view text =
        name == "read" ? all.substr(0, all.find('\n')) : all;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end =
          std::min(text.find_first_of(separators, begin), text.size());
      const std::string value(text.substr(begin, end - begin));
      begin = end + 1;
      if (value.empty()) continue;
      if (!is_array && fields.size() == names.size()) {
        fields.back() += separators[0] + value;
      } else if (fields.size() <= kMaxWords) {
        fields.push_back(value);
      }
    }
  }
  for (size_t i = 0; i < names.size(); ++i) {
    Variable& variable = state_.variables[names[i].text];
    variable.source = {.feeders = from.feeders, .reads = from.reads};
    variable.values.clear();
    if (from.literal && is_array) {
      for (const std::string& value : fields) {
        variable.values.push_back(KnownWord(value));
      }
      Bound(variable.values);
    } else if (from.literal) {
      variable.values = {KnownWord(i < fields.size() ? fields[i] : "")};
    } else if (from.roots.size() == 1 && names.size() == 1) {
      variable.values = {Below(from.roots[0])};
    } else {
      variable.values = {
          {.text = "$" + names[i].text, .known = false, .known_prefix = 0}};
    }
  }
}

void Walker::AddOutputs(const Words& words) {
  const Words downloads = FilesOfDownload(words);
  for (const Word& file : downloads) {
    if (const auto path = policy::PathIn(file, state_.directory, Here())) {
      state_.written[path->path] = {.feeders = {LineOf(words)}};
    }
  }
  AddOutputFiles(OutputsOf(words));
}

void Walker::AddOutputFiles(const Words& files) {
  for (const Word& file : files) {
    if (file.text == "-" || file.text == "/dev/null" ||
        file.text == "/dev/stdout" || file.text == "/dev/stderr") {
      continue;
    }
    AddPart(MakeCommand({KnownWord(">"), file}, {}, {}, {}));
  }
}

void Walker::RunTransfers(const Words& words, std::string_view text) {
  for (const auto line : std::views::split(text, '\n')) {
    const std::string one(line.begin(), line.end());
    for (const auto part : std::views::split(one, ';')) {
      Words command{words[0]};
      for (const auto piece : std::views::split(part, ' ')) {
        std::string word(piece.begin(), piece.end());
        if (!word.empty()) command.push_back(KnownWord(std::move(word)));
      }
      if (command.size() > 1) AddPart(MakeCommand(command, {}, {}, {}));
    }
  }
}

bool Walker::RunGitAlias(const Words& words, const Flow& in, const Flow& used) {
  size_t at = 1;
  std::map<std::string, std::string> own;
  while (at < words.size() && words[at].text.starts_with('-')) {
    if (words[at].text == "-c" && at + 1 < words.size()) {
      const std::string& setting = words[at + 1].text;
      const size_t equals = std::min(setting.find('='), setting.size() - 1);
      const std::string value = setting.substr(equals + 1);
      if (setting.starts_with("alias.")) {
        own["git " + setting.substr(6, equals - 6)] = value;
      } else {
        RunVariable(setting.substr(0, equals), KnownWord(value));
      }
    }
    at += words[at].text == "-C" || words[at].text == "-c" ? 2 : 1;
  }
  if (at >= words.size()) return false;
  if (words[at].text == "config") {
    for (size_t i = at + 1; i + 1 < words.size(); ++i) {
      if (!words[i].text.starts_with("alias.")) continue;
      state_.aliases["git " + words[i].text.substr(6)] = words[i + 1].text;
    }
    return false;
  }
  own.insert(state_.aliases.begin(), state_.aliases.end());
  const auto alias = own.find("git " + words[at].text);
  if (alias == own.end()) return false;
  const bool is_shell = alias->second.starts_with('!');
  Words all{
      KnownWord(is_shell ? alias->second.substr(1) : "git " + alias->second)};
  AppendTo(all, Words(words.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                      words.end()));
  RunText(Joined(all), in, used, "git");
  return true;
}

bool Walker::RunBuiltin(std::string_view name, const Words& words,
                        const Flow& in, Flow& out) {
  const Words arguments(words.begin() + 1, words.end());
  constexpr auto kOnlyRun = std::to_array<std::string_view>(
      {"eval", "trap", "alias", "unalias", "unset", "mapfile", "readarray",
       "export", "declare", "local", "readonly", "typeset"});
  reading_.parts.back().is_wrapper =
      std::ranges::find(kOnlyRun, name) != kOnlyRun.end();
  EvaluateArguments(name, arguments);
  if (name == "cd" || name == "pushd" || name == "chdir") {
    ChangeDirectory(words);
    out.literal = "";
    return true;
  }
  if (name == "popd") {
    state_.directory.clear();
    return true;
  }
  if (name == "eval") {
    RunText(Joined(arguments), in,
            {.feeders = reading_.parts.back().command.fed_by}, name);
    return true;
  }
  if (name == "trap") {
    if (arguments.size() > 1 && !arguments[0].text.starts_with('-')) {
      RunText(arguments[0], {}, {}, name);
    }
    return true;
  }
  if (name == "source" || name == ".") {
    if (!arguments.empty()) RunInput(words, in, {});
    return true;
  }
  if (name == "alias") {
    for (const Word& word : arguments) {
      const size_t equals = word.text.find('=');
      if (equals == std::string::npos || equals == 0) continue;
      state_.aliases[word.text.substr(0, equals)] =
          word.text.substr(equals + 1);
    }
    return true;
  }
  if (name == "unalias") {
    for (const Word& word : arguments) state_.aliases.erase(word.text);
    return true;
  }
  if (name == "read" || name == "mapfile" || name == "readarray") {
    ReadVariables(name, words, in);
    return true;
  }
  if (name == "unset") {
    for (const Word& word : arguments) {
      state_.variables[word.text].values = {KnownWord("")};
      if (word.text == "IFS") state_.variables.erase(word.text);
      state_.functions.erase(word.text);
    }
    return true;
  }
  if (name == "printf" && arguments.size() > 2 && arguments[0].text == "-v") {
    Words rest{words[0]};
    AppendTo(rest, Words(arguments.begin() + 2, arguments.end()));
    const auto value = LiteralOutput(rest, {}, "");
    state_.variables[arguments[1].text].values = {
        value ? KnownWord(*value)
              : Word{.text = "$" + arguments[1].text, .known = false}};
    return true;
  }
  if (name == "set") {
    const auto dashes = std::ranges::find(arguments, "--", &Word::text);
    if (dashes != arguments.end()) {
      state_.arguments.assign(dashes + 1, arguments.end());
    }
    return true;
  }
  if (name == "shift") {
    if (!state_.arguments.empty()) {
      state_.arguments.erase(state_.arguments.begin());
    }
    return true;
  }
  // Of a declaration with a name that is not literal.
  if (name == "export" || name == "declare" || name == "local" ||
      name == "readonly" || name == "typeset") {
    for (const Word& word : arguments) {
      const size_t equals = word.text.find('=');
      if (equals == std::string::npos) continue;
      Word value = word;
      value.text = word.text.substr(equals + 1);
      value.known_prefix -= std::min(equals + 1, value.known_prefix);
      state_.variables[word.text.substr(0, equals)].values = {value};
    }
    return true;
  }
  return false;
}

Walker::Words Walker::WithAdded(const Unwrapped& inner, const Flow& in) const {
  if (!inner.placeholder) return inner.words;
  Words added = inner.added;
  const Words& roots = inner.roots.empty() ? in.roots : inner.roots;
  if (added.empty() && inner.roots.empty() && in.literal) {
    for (const auto part : std::views::split(*in.literal, '\n')) {
      // With a placeholder, a line is one argument.
      if (!inner.placeholder->empty()) {
        const std::string line(part.begin(), part.end());
        if (!line.empty()) added.push_back(KnownWord(line));
        continue;
      }
      for (const auto piece : std::views::split(part, ' ')) {
        const std::string text(piece.begin(), piece.end());
        if (!text.empty()) added.push_back(KnownWord(text));
      }
    }
  } else if (added.empty()) {
    for (const Word& root : roots) {
      Word below = Below(root);
      // The names that find looks for stand for what it finds.
      if (!inner.name.empty() && below.text.ends_with("{}")) {
        below.text.replace(below.text.size() - 2, 2, inner.name);
      }
      added.push_back(std::move(below));
    }
    if (added.empty()) {
      added.push_back({.text = "{}", .known = false, .known_prefix = 0});
    }
  }
  Words words;
  if (inner.placeholder->empty()) {
    words = inner.words;
    AppendTo(words, added);
    return words;
  }
  for (const Word& word : inner.words) {
    const size_t at = word.text.find(*inner.placeholder);
    if (at == std::string::npos) {
      words.push_back(word);
      continue;
    }
    for (const Word& one : added) {
      Word replaced = one;
      replaced.text = word.text.substr(0, at) + one.text +
                      word.text.substr(at + inner.placeholder->size());
      replaced.known = one.known && word.known;
      replaced.known_prefix =
          replaced.known ? replaced.text.size() : at + one.known_prefix;
      words.push_back(std::move(replaced));
    }
  }
  return words;
}

Flow Walker::RunInner(const Unwrapped& inner, const Words& words,
                      const Flow& in, const Flow& used,
                      const std::vector<std::string>& environment) {
  const Level deeper(depth_);
  if (IsTooMuch()) return {};
  Flow out;
  const Frame outer = frame_;
  const std::string directory = state_.directory;
  frame_.via.emplace_back(BaseName(words[0].text));
  frame_.remote = frame_.remote || inner.remote;
  frame_.contained = frame_.contained || inner.contained;
  if (inner.contained) frame_.bindings = inner.bindings;
  if (inner.directory) ChangeDirectory({words[0], *inner.directory});
  Flow flow = in;
  const Words whole = WithAdded(inner, in);
  // What xargs reads, its command does not.
  if (inner.placeholder) flow.literal.reset();
  switch (inner.as) {
    case Unwrapped::As::kText: {
      const State before = state_;
      if (!inner.arguments.empty()) {
        state_.variables["$0"] = {.values = {inner.arguments[0]}, .source = {}};
        state_.arguments.assign(inner.arguments.begin() + 1,
                                inner.arguments.end());
      }
      RunText(Joined(whole), flow, used, BaseName(words[0].text));
      state_.variables = before.variables;
      state_.arguments = before.arguments;
      break;
    }
    case Unwrapped::As::kInput:
      RunInput({words[0]}, in, used);
      break;
    case Unwrapped::As::kArguments: {
      std::vector<std::string> all = environment;
      AppendTo(all, inner.environment);
      const State before = state_;
      out = Run(whole, all, flow, used);
      // Another process does not change this shell.
      const bool same_shell =
          words[0].text == "command" || words[0].text == "builtin";
      if (!same_shell) {
        const auto written = std::move(state_.written);
        state_ = before;
        state_.written = written;
      }
      break;
    }
  }
  state_.directory = words[0].text == "builtin" || words[0].text == "command"
                         ? state_.directory
                         : directory;
  frame_ = outer;
  return out;
}

void Walker::RunText(const Word& text, const Flow& in, const Flow& used,
                     std::string_view who) {
  if (!text.known && text.known_prefix == 0 && !reading_.parts.empty()) {
    const bool is_fed = !used.feeders.empty() || !in.feeders.empty();
    reading_.parts.back().command.script =
        is_fed ? Script::kInput : Script::kUnknown;
    Note("the text that " + std::string(who) +
         " runs is not known: " + text.text);
    return;
  }
  const bool is_eval = who == "eval";
  const State outer = state_;
  const bool here = is_eval || state_.aliases.contains(std::string(who));
  Parse(text.text, in);
  if (here) return;
  auto written = std::move(state_.written);
  state_ = outer;
  state_.written = std::move(written);
}

void Walker::RunInput(const Words& words, const Flow& in, const Flow& used) {
  const size_t part = reading_.parts.size() - 1;
  // A file that the text wrote before, or a process substitution.
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& text = words[i].text;
    if (text.starts_with('-')) continue;
    const Flow* known = WrittenTo(text);
    if (known == nullptr) {
      known = WrittenTo(policy::NormalPath(state_.directory, text));
    }
    if (known == nullptr) {
      const bool is_input = text == "-" || text == "/dev/stdin" ||
                            text == "/dev/fd/0" || text == "/proc/self/fd/0";
      const bool is_descriptor =
          text.starts_with("/dev/fd/") || text.starts_with("/proc/self/fd/");
      if (is_descriptor && !is_input)
        Note("the script " + text + " is not known");
      if (!in.literal && !is_input) return;
      continue;
    }
    const Flow content = *known;
    AppendTo(reading_.parts[part].command.fed_by, content.feeders);
    if (!content.literal) {
      reading_.parts[part].command.script = Script::kInput;
      Note("the script " + text + " is not known");
      return;
    }
    Parse(*content.literal, {});
    return;
  }
  if (in.literal) {
    const State outer = state_;
    Parse(*in.literal, {});
    state_ = outer;
    return;
  }
  AppendTo(reading_.parts[part].command.fed_by, in.feeders);
  reading_.parts[part].command.script = Script::kInput;
  if (!in.feeders.empty() || !used.feeders.empty() || !in.reads.empty()) {
    Note("the script on the standard input of " +
         std::string(BaseName(words[0].text)) + " is not known");
  }
}

void Walker::RunCode(Language language, const Words& words, const Flow& in,
                     const Flow& used) {
  const std::string_view name = BaseName(words[0].text);
  const bool is_run = (name == "deno" || name == "bun") && words.size() > 1 &&
                      words[1].text == "run";
  if (is_run) {
    Words rest = words;
    rest.erase(rest.begin() + 1);
    // Without a file it runs a task, or prints the tasks.
    if (rest.size() > 1) RunCode(language, rest, in, used);
    return;
  }
  const CodeSource source = SourceOfCode(language, words);
  const size_t part = reading_.parts.size() - 1;
  policy::Command& command = reading_.parts[part].command;
  if (source.is_input) {
    if (in.literal) {
      command.script = Script::kCode;
      RunEffects(language, *in.literal);
    } else if (!in.feeders.empty()) {
      command.script = Script::kInput;
      Note("the program on the standard input of " +
           std::string(BaseName(words[0].text)) + " is not known");
    }
    return;
  }
  if (source.texts.empty()) {
    RunCodeFile(language, words);
    return;
  }
  for (const Word& text : source.texts) {
    if (language == Language::kAwk) {
      RunEffects(language, text.text);
      continue;
    }
    reading_.parts[part].command.script =
        text.known || text.known_prefix > 0 ? Script::kCode
        : used.feeders.empty()              ? Script::kUnknown
                                            : Script::kInput;
    RunEffects(language, text.text);
  }
}

void Walker::RunCodeFile(Language language, const Words& words) {
  const auto file = std::ranges::find_if(
      words.begin() + 1, words.end(),
      [](const Word& word) { return !word.text.starts_with('-'); });
  if (file == words.end()) return;
  auto known = state_.written.find(file->text);
  if (known == state_.written.end()) {
    known =
        state_.written.find(policy::NormalPath(state_.directory, file->text));
  }
  if (known == state_.written.end()) return;
  const Flow content = known->second;
  policy::Command& command = reading_.parts.back().command;
  AppendTo(command.fed_by, content.feeders);
  command.script = content.literal ? Script::kCode : Script::kInput;
  if (content.literal) {
    RunEffects(language, *content.literal);
  } else {
    Note("the program " + file->text + " is not known");
  }
}

void Walker::RunEffects(Language language, std::string_view code) {
  const Level deeper(depth_);
  if (IsTooMuch()) return;
  const Frame outer = frame_;
  frame_.via.emplace_back("code");
  frame_.guess = true;
  for (const CodeEffect& effect : FindEffects(language, code)) {
    Words words;
    switch (effect.kind) {
      case CodeEffect::Kind::kText:
        RunText(effect.words[0], {}, {}, "code");
        continue;
      case CodeEffect::Kind::kArguments:
        Run(effect.words, {}, {}, {});
        continue;
      case CodeEffect::Kind::kRemove:
        words = {KnownWord("rm"), KnownWord("-f")};
        break;
      case CodeEffect::Kind::kRemoveTree:
        words = {KnownWord("rm"), KnownWord("-r"), KnownWord("-f")};
        break;
      case CodeEffect::Kind::kWrite:
        words = {KnownWord(">")};
        break;
      case CodeEffect::Kind::kRunDownload:
      case CodeEffect::Kind::kRunDecoded: {
        policy::Command command = MakeCommand({KnownWord("eval")}, {}, {}, {});
        command.script = Script::kInput;
        command.fed_by = {effect.kind == CodeEffect::Kind::kRunDownload
                              ? "curl"
                              : "base64 -d"};
        AddPart(std::move(command));
        continue;
      }
      case CodeEffect::Kind::kShellForPeer:
        words = {KnownWord("nc"), KnownWord("-e"), KnownWord("sh")};
        break;
      case CodeEffect::Kind::kSend:
        words = {KnownWord("curl"), KnownWord("-d")};
        break;
    }
    AppendTo(words, effect.words);
    // Outside of the workspace, the heuristic does not see what else goes.
    if (effect.kind == CodeEffect::Kind::kRemoveTree &&
        effect.words[0].text.starts_with('/') &&
        effect.words[0].text != kNewTemporary) {
      words.push_back({.text = "...", .known = false, .known_prefix = 0});
    }
    AddPart(MakeCommand(words, {}, {}, {}));
  }
  frame_ = outer;
}

}  // namespace txfs::cli
