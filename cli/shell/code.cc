#include "cli/shell/code.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <utility>

#include "cli/shell/code_tokens.h"
#include "cli/shell/tcl.h"

namespace txfs::cli {
namespace {

using policy::KnownWord;
using policy::Word;
using Kind = CodeEffect::Kind;

/// Of one call.
constexpr size_t kMaxTokens = 512;

/// The arguments of a call.
struct CallArguments {
  std::vector<Word> words;  ///< literals; what is none is an unknown word
  bool is_list = false;     ///< the first one is a list
  bool any_literal = false;
};

/// From behind the name: "(...)", or without parentheses up to the end of the
/// statement.
CallArguments ArgumentsOf(std::span<const Token> tokens) {
  CallArguments arguments;
  int depth = 0;
  bool pending = false;
  const auto flush = [&]() {
    if (pending) {
      arguments.words.push_back(
          {.text = "...", .known = false, .known_prefix = 0});
    }
    pending = false;
  };
  bool literal_before = false;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    if (token.kind == Token::Kind::kString ||
        token.kind == Token::Kind::kBackticks) {
      // "a" "b" and "a" + b are not one known text.
      if (literal_before && !arguments.words.empty()) {
        arguments.words.back().known = false;
      } else {
        arguments.words.push_back(KnownWord(token.text));
        if (pending) {
          arguments.words.back().known = false;
          arguments.words.back().known_prefix = 0;
        }
      }
      arguments.any_literal = true;
      literal_before = true;
      pending = false;
      continue;
    }
    const std::string& text = token.text;
    if (text == "(" || text == "[" || text == "{") {
      if (text == "[" && arguments.words.empty()) arguments.is_list = true;
      ++depth;
      continue;
    }
    if (text == ")" || text == "]" || text == "}") {
      flush();
      if (--depth <= 0) break;
      continue;
    }
    if (depth == 0 && (text == ";" || text == "}")) break;
    if (text == ",") {
      flush();
      literal_before = false;
      continue;
    }
    if (text == ":") {
      // args: ["a"]
      pending = false;
    } else if (literal_before && !arguments.words.empty()) {
      arguments.words.back().known = false;
    } else if (text != "r" && text != "f" && text != "b") {
      pending = true;
    }
  }
  flush();
  return arguments;
}

bool IsOneOf(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

constexpr auto kRunText = std::to_array<std::string_view>(
    {"system", "popen", "getoutput", "getstatusoutput", "exec", "execSync",
     "shell_exec", "script", "passthru", "proc_open", "spawn", "syscmd"});
constexpr auto kRunEither =
    std::to_array<std::string_view>({"run",
                                     "call",
                                     "check_call",
                                     "check_output",
                                     "Popen",
                                     "spawnSync",
                                     "execFile",
                                     "execFileSync",
                                     "execa",
                                     "execaSync",
                                     "execaCommand",
                                     "execaCommandSync",
                                     "Command",
                                     "capture2",
                                     "capture2e",
                                     "capture3",
                                     "popen3",
                                     "spawnp",
                                     "create_subprocess_shell",
                                     "create_subprocess_exec",
                                     "fork_exec",
                                     "pcntl_exec"});
/// Those whose arguments begin with the program, and then its own name for it.
constexpr auto kRunNamed = std::to_array<std::string_view>(
    {"execv", "execve", "execvp", "execvpe", "execl", "execle", "execlp",
     "execlpe", "spawnv", "spawnve", "spawnvp", "spawnvpe", "spawnl", "spawnle",
     "spawnlp", "spawnlpe", "posix_spawn", "posix_spawnp"});
constexpr auto kDecode = std::to_array<std::string_view>(
    {"b64decode", "b32decode", "decode_base64", "base64_decode", "unhexlify",
     "fromhex", "atob", "decode64", "gzinflate", "str_rot13", "gzuncompress",
     "unpack", "base64"});
constexpr auto kRemoveFile = std::to_array<std::string_view>(
    {"remove", "unlink", "unlinkSync", "removedirs", "delete", "truncate",
     "truncateSync"});
constexpr auto kRemoveAll = std::to_array<std::string_view>(
    {"rmtree", "rm_rf", "rm_r", "rm_f", "rmSync", "rm", "rimraf", "rmdirSync",
     "rmdir", "remove_tree", "remove_entry", "remove_entry_secure",
     "emptyDirSync", "removeSync", "remove_dir_all"});
constexpr auto kWriteFile = std::to_array<std::string_view>(
    {"writeFileSync", "writeFile", "appendFileSync", "appendFile", "write_text",
     "write_bytes", "file_put_contents", "copyfile", "createWriteStream"});

/// They call the function that their first argument names.
constexpr auto kCallbacks = std::to_array<std::string_view>(
    {"array_map", "array_walk", "call_user_func", "call_user_func_array"});

bool OpensToWrite(const CallArguments& arguments) {
  return arguments.words.size() > 1 && arguments.words[1].known &&
         !arguments.words[1].text.empty() &&
         std::string_view("wax>").contains(arguments.words[1].text[0]);
}

/// os.execvp("git", ["git", "push"]), os.spawnlp(os.P_WAIT, "git", ...)
std::optional<CodeEffect> EffectOfExec(std::string_view name,
                                       std::vector<Word> words) {
  if (name.starts_with("spawn") && !words.empty()) words.erase(words.begin());
  if (words.empty()) return std::nullopt;
  if (words.size() > 1 && words[1].known) {
    // The program's own name for it, or the path that is not known.
    words.erase(words.begin() + (words[0].known ? 1 : 0));
  }
  if (!words[0].known) return std::nullopt;
  return CodeEffect{.kind = Kind::kArguments, .words = std::move(words)};
}

/// open(F, "|COMMAND"), open(F, "-|", "PROGRAM", ...)
std::optional<CodeEffect> EffectOfPipe(const std::vector<Word>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view text = words[i].text;
    if (!words[i].known || text.size() < 2) continue;
    if (text == "|-" || text == "-|") {
      std::vector<Word> command(
          words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
      if (command.empty()) return std::nullopt;
      const Kind kind = command.size() > 1 ? Kind::kArguments : Kind::kText;
      return CodeEffect{.kind = kind, .words = std::move(command)};
    }
    const bool is_to = text.front() == '|';
    if (!is_to && text.back() != '|') continue;
    return CodeEffect{.kind = Kind::kText,
                      .words = {KnownWord(std::string(
                          text.substr(is_to ? 1 : 0, text.size() - 1)))}};
  }
  return std::nullopt;
}

/// The effect of a call of `name`; none: it has none that is known.
std::optional<CodeEffect> EffectOfCall(std::string_view name,
                                       CallArguments arguments,
                                       const std::string& literal_before) {
  CodeEffect effect;
  if (IsOneOf(name, kRunNamed)) return EffectOfExec(name, arguments.words);
  if (name == "open") {
    auto piped = EffectOfPipe(arguments.words);
    if (piped) return piped;
  }
  const bool runs_either = IsOneOf(name, kRunEither);
  if (IsOneOf(name, kRunText) || runs_either) {
    if (arguments.words.empty() || !arguments.any_literal) return std::nullopt;
    effect.kind =
        arguments.is_list || (runs_either && arguments.words.size() > 1)
            ? Kind::kArguments
            : Kind::kText;
    // system("rm", "-rf", "/") of Perl and Ruby, spawn("rm", ["-rf"]).
    const bool is_several =
        arguments.words.size() > 1 && arguments.words[0].known &&
        !arguments.words[0].text.contains(' ') && arguments.words[1].known;
    if (is_several) effect.kind = Kind::kArguments;
    if (arguments.words[0].text.contains(' ')) effect.kind = Kind::kText;
    effect.words = std::move(arguments.words);
    return effect;
  }
  const bool removes_all = IsOneOf(name, kRemoveAll);
  const bool writes = IsOneOf(name, kWriteFile);
  const bool opens = name == "open" && OpensToWrite(arguments);
  if (!removes_all && !writes && !opens && !IsOneOf(name, kRemoveFile)) {
    return std::nullopt;
  }
  effect.kind = removes_all       ? Kind::kRemoveTree
                : writes || opens ? Kind::kWrite
                                  : Kind::kRemove;
  const bool names_none = !arguments.any_literal && arguments.words.empty();
  if (names_none && literal_before.empty()) return std::nullopt;
  if (names_none || (writes && name.starts_with("write_"))) {
    // Path("x").unlink(), Path("x").write_text(...)
    effect.words.push_back(KnownWord(literal_before));
  } else {
    effect.words.push_back(std::move(arguments.words[0]));
  }
  return effect;
}

bool IsOther(std::span<const Token> tokens, size_t i, std::string_view text) {
  return i < tokens.size() && tokens[i].kind == Token::Kind::kOther &&
         tokens[i].text == text;
}

/// "": there is no token at `i`.
std::string_view TextAt(std::span<const Token> tokens, size_t i) {
  return i < tokens.size() ? std::string_view(tokens[i].text)
                           : std::string_view();
}

/// The literal that the code assigns to the name before the "=" at `equals`; a
/// new temporary directory counts as one.
std::optional<std::string> AssignedLiteral(std::span<const Token> tokens,
                                           size_t equals) {
  constexpr auto kMakeTemporary = std::to_array<std::string_view>(
      {"mkdtemp", "mkdtempSync", "mktmpdir", "tempdir"});
  constexpr auto kContinues = std::to_array<std::string_view>(
      {"if", "or", "and", "unless", "x", "for", "in"});
  size_t at = equals + 1;
  // tempfile.mkdtemp(...), fs.mkdtempSync(...)
  const size_t function = IsOther(tokens, at + 1, ".") ? at + 2 : at;
  if (IsOther(tokens, function + 1, "(") &&
      IsOneOf(tokens[function].text, kMakeTemporary)) {
    return kNewTemporary;
  }
  const bool is_path = IsOther(tokens, at + 1, "(") &&
                       tokens[at].kind == Token::Kind::kName &&
                       tokens[at].text == "Path";
  at += is_path ? 2 : 0;
  const size_t behind = at + (is_path ? 2 : 1);
  if (at >= tokens.size() || tokens[at].kind != Token::Kind::kString) {
    return std::nullopt;
  }
  const bool ends = behind >= tokens.size() || IsOther(tokens, behind, ";") ||
                    (tokens[behind].kind == Token::Kind::kName &&
                     !IsOneOf(tokens[behind].text, kContinues));
  if (!ends) return std::nullopt;
  return tokens[at].text;
}

/// The names to which the code assigns a literal once, and nothing else.
std::map<std::string, std::optional<std::string>> LiteralsOfNames(
    std::span<const Token> tokens) {
  std::map<std::string, std::optional<std::string>> literals;
  const auto bind = [&](const std::string& name,
                        const std::optional<std::string>& literal) {
    const auto [at, is_new] = literals.try_emplace(name, literal);
    if (!is_new) at->second.reset();
  };
  bool in_parameters = false;
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    // def f(NAME), function (NAME), lambda NAME:
    const std::string& text = tokens[i].text;
    if (text == "def" || text == "function" || text == "lambda" ||
        text == "sub") {
      in_parameters = true;
    }
    if (text == ")" || text == ":") in_parameters = false;
    if (tokens[i].kind != Token::Kind::kName) continue;
    const bool is_bound =
        in_parameters ||
        (i > 0 && (tokens[i - 1].text == "for" || tokens[i - 1].text == "as"));
    const bool is_member = i > 0 && tokens[i - 1].text == ".";
    const bool assigns = !is_member && IsOther(tokens, i + 1, "=") &&
                         !IsOther(tokens, i + 2, "=") &&
                         !IsOther(tokens, i + 2, "~");
    // NAME += ..., NAME := ..., A, NAME = ...
    const bool changes =
        tokens[i + 1].kind == Token::Kind::kOther &&
        std::string_view("+-*/.|:,").contains(tokens[i + 1].text) &&
        IsOther(tokens, i + 2, "=");
    const bool is_one_of_several = i > 0 && IsOther(tokens, i - 1, ",");
    if (assigns && is_one_of_several) {
      // A, B = ...
      for (size_t k = i; k >= 2 && IsOther(tokens, k - 1, ","); k -= 2) {
        bind(tokens[k - 2].text, std::nullopt);
      }
    }
    if (assigns && !is_one_of_several) {
      bind(text, AssignedLiteral(tokens, i + 1));
    } else if (is_bound || changes || assigns) {
      bind(text, std::nullopt);
    }
  }
  return literals;
}

/// Puts the literal in the place of a name that stands alone as an argument:
/// `d = "a"; remove(d)`.
void ReplaceNames(std::vector<Token>& tokens) {
  const auto literals = LiteralsOfNames(tokens);
  for (size_t i = 1; i + 1 < tokens.size(); ++i) {
    if (tokens[i].kind != Token::Kind::kName) continue;
    // Behind the sigil of Perl and PHP.
    const size_t before = i > 1 && IsOther(tokens, i - 1, "$") ? i - 2 : i - 1;
    const bool is_argument =
        (IsOther(tokens, before, "(") || IsOther(tokens, before, ",")) &&
        (IsOther(tokens, i + 1, ")") || IsOther(tokens, i + 1, ","));
    const auto literal = literals.find(tokens[i].text);
    if (!is_argument || literal == literals.end() || !literal->second) continue;
    tokens[i] = {Token::Kind::kString, *literal->second};
  }
}

bool Runs(std::string_view name) {
  return IsOneOf(name, kRunText) || IsOneOf(name, kRunEither) ||
         IsOneOf(name, kRunNamed);
}

/// Other names of functions: `const {execSync: e} =`, `import system as s`.
std::map<std::string, std::string> OtherNames(std::span<const Token> tokens) {
  std::map<std::string, std::string> names;
  bool imports = false;
  for (size_t i = 0; i + 2 < tokens.size(); ++i) {
    if (tokens[i].text == "import") imports = true;
    if (tokens[i].text == ";") imports = false;
    const bool is_renamed = tokens[i].kind == Token::Kind::kName &&
                            tokens[i + 2].kind == Token::Kind::kName &&
                            Runs(tokens[i].text) && !Runs(tokens[i + 2].text);
    if (!is_renamed) continue;
    size_t end = i + 3;
    while (end < tokens.size() && !IsOther(tokens, end, "}") &&
           !IsOther(tokens, end, "(")) {
      ++end;
    }
    const bool unpacks = IsOther(tokens, i + 1, ":") &&
                         IsOther(tokens, end, "}") &&
                         IsOther(tokens, end + 1, "=");
    if (unpacks || (imports && tokens[i + 1].text == "as")) {
      names[tokens[i + 2].text] = tokens[i].text;
    }
  }
  return names;
}

/// Whether the call whose "(" is the first of `tokens` decodes its argument.
bool DecodesArgument(std::span<const Token> tokens) {
  int depth = 0;
  for (const Token& token : tokens) {
    if (token.kind == Token::Kind::kOther && token.text == "(") ++depth;
    if (token.kind == Token::Kind::kOther && token.text == ")" &&
        --depth == 0) {
      return false;
    }
    // Buffer.from(x, "base64"), but not the module base64
    const bool decodes = token.kind == Token::Kind::kString
                             ? token.text == "base64"
                             : IsOneOf(token.text, kDecode) &&
                                   token.text != "base64" &&
                                   token.text != "unpack";
    if (decodes) return true;
  }
  return false;
}

/// What a program as a whole does, by the names in it.
class Traits {
 public:
  explicit Traits(Language language, std::span<const Token> tokens)
      : language_(language) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      const std::string_view name = tokens[i].text;
      if (tokens[i].kind == Token::Kind::kString) {
        const std::string_view program = name.substr(0, name.find(' '));
        fetches_ = fetches_ || IsOneOf(name, kFetch) || program == "curl" ||
                   program == "wget";
        decodes_ = decodes_ || name == "base64";
        removes_ = removes_ || name == "unlink";
        connects_ = connects_ || name == "net";
        const bool is_url = name.starts_with("http://") ||
                            name.starts_with("https://") ||
                            name.starts_with("ftp://");
        names_url_ = names_url_ || is_url;
        // The function whose argument it is.
        const size_t before = i > 0 && tokens[i - 1].text.size() == 1 ? 2 : 1;
        const std::string_view function =
            i < before ? "" : std::string_view(tokens[i - before].text);
        includes_ = includes_ || (is_url && IsOneOf(function, kInclude));
        if (IsOneOf(function, kFind)) {
          found_.push_back(
              KnownWord(DirectoryBefore(tokens, i) + tokens[i].text));
        }
        names_shell_ = names_shell_ || policy::BaseName(program) == "sh" ||
                       policy::BaseName(program) == "bash";
      }
      reads_ = reads_ || tokens[i].kind == Token::Kind::kBackticks;
      if (tokens[i].kind != Token::Kind::kName) continue;
      tells_all_ = tells_all_ || IsWholeEnvironment(tokens, i);
      sends_ = sends_ || IsOneOf(name, kSends);
      const bool is_method = i > 0 && tokens[i - 1].text == ".";
      fetches_ = fetches_ || IsOneOf(name, kFetch) ||
                 (language == Language::kPerl && name == "get");
      duplicates_ = duplicates_ || name == "dup2" || name == "pty";
      decodes_ = decodes_ || IsOneOf(name, kDecode);
      connects_ = connects_ || IsOneOf(name, kConnect);
      starts_ = starts_ || IsOneOf(name, kStart);
      reads_ = reads_ || IsOneOf(name, kRead);
      removes_ =
          removes_ || IsOneOf(name, kRemoveFile) || IsOneOf(name, kRemoveAll);
      evaluates_ = evaluates_ || (!is_method && Evaluates(name));
    }
  }
  void AddTo(std::vector<CodeEffect>& effects,
             std::span<const Token> tokens) const {
    const bool fetches = fetches_ || (reads_ && names_url_);
    if ((fetches && evaluates_) || includes_) {
      effects.push_back({Kind::kRunDownload, {}});
    }
    if (removes_ && !found_.empty()) effects.push_back({Kind::kRemove, found_});
    if (decodes_ && evaluates_) effects.push_back({Kind::kRunDecoded, {}});
    if (connects_ && (duplicates_ || (starts_ && names_shell_)))
      effects.push_back({Kind::kShellForPeer, {}});
    const bool reaches =
        fetches_ || connects_ || (language_ == Language::kPhp && fetches);
    const bool tells = tells_all_ && sends_;
    if ((!reads_ && !tells) || !reaches) return;
    CodeEffect sends{.kind = Kind::kSend, .words = {}};
    if (tells) sends.words.push_back(KnownWord("@/proc/self/environ"));
    for (const Token& token : tokens) {
      if (!reads_) break;
      if (token.kind == Token::Kind::kBackticks) {
        const size_t blank = token.text.rfind(' ');
        sends.words.push_back(KnownWord("@" + token.text.substr(blank + 1)));
      }
      if (token.kind != Token::Kind::kString || token.text.contains("://")) {
        continue;
      }
      sends.words.push_back(KnownWord("@" + token.text));
    }
    if (!sends.words.empty()) effects.push_back(std::move(sends));
  }

 private:
  static constexpr auto kFetch = std::to_array<std::string_view>(
      {"urlopen", "requests", "urllib", "urllib2", "httpx", "fetch", "axios",
       "https", "http", "LWP", "open_uri", "URI", "HTTP", "curl_exec",
       "HTTPSConnection", "HTTPConnection", "aiohttp", "getstore"});
  /// Those of a request with a body.
  static constexpr auto kSends = std::to_array<std::string_view>(
      {"post", "put", "patch", "Post", "POST", "data", "json", "body", "method",
       "send", "sendall", "Content"});
  /// Those that load the program at a URL.
  static constexpr auto kInclude = std::to_array<std::string_view>(
      {"include", "include_once", "require", "require_once", "import",
       "importScripts", "from"});
  /// Those that list the files of a pattern or of a directory.
  static constexpr auto kFind = std::to_array<std::string_view>(
      {"glob", "iglob", "rglob", "Dir", "children", "scandir", "listdir",
       "readdir", "readdirSync", "globSync"});
  static constexpr auto kConnect = std::to_array<std::string_view>(
      {"socket", "Socket", "fsockopen", "TCPSocket", "create_connection",
       "createConnection", "stream_socket_client", "net", "SOCK_STREAM"});
  static constexpr auto kStart = std::to_array<std::string_view>(
      {"exec", "spawn", "system", "popen", "Popen", "execve", "proc_open",
       "call", "shell_exec", "execl"});
  static constexpr auto kRead = std::to_array<std::string_view>(
      {"open", "readFileSync", "readFile", "read_text", "read_bytes",
       "file_get_contents", "read", "File", "slurp", "createReadStream"});

  /// Whether the name at `i` stands for all variables, and not for one of them.
  [[nodiscard]] static bool IsWholeEnvironment(std::span<const Token> tokens,
                                               size_t i) {
    const std::string_view name = tokens[i].text;
    const std::string_view before = TextAt(tokens, i - 1);
    const bool is_node = name == "env" && i > 1 && before == "." &&
                         tokens[i - 2].text == "process";
    const bool is_that = is_node || name == "environ" ||
                         (name == "ENV" && before != "$" && before != "{");
    if (!is_that) return false;
    if (name == "ENV" && before == "%") return true;
    const std::string_view next = TextAt(tokens, i + 1);
    if (next == "." && i + 2 < tokens.size()) {
      constexpr auto kAll = std::to_array<std::string_view>(
          {"items", "to_h", "to_a", "to_json", "inspect", "map", "values"});
      return IsOneOf(tokens[i + 2].text, kAll);
    }
    // {env: process.env}, {...process.env, X: 1} and {**os.environ} are the
    // environment of a child.
    const size_t first = is_node ? i - 2 : i;
    const bool is_for_child = first > 0 && (IsOther(tokens, first - 1, ":") ||
                                            IsOther(tokens, first - 1, "*"));
    return !is_for_child && (next == ")" || next == "}");
  }

  /// Path("DIR").glob("*"): "DIR/" before the literal at `i`.
  [[nodiscard]] static std::string DirectoryBefore(
      std::span<const Token> tokens, size_t i) {
    const bool is_path = i >= 7 && tokens[i - 3].text == "." &&
                         tokens[i - 4].text == ")" &&
                         tokens[i - 5].kind == Token::Kind::kString &&
                         tokens[i - 7].text == "Path";
    return is_path ? tokens[i - 5].text + "/" : "";
  }

  [[nodiscard]] bool Evaluates(std::string_view name) const {
    switch (language_) {
      case Language::kPython:
        return name == "exec" || name == "eval";
      case Language::kNode:
        return name == "eval" || name == "Function" ||
               name == "runInThisContext";
      case Language::kLua:
        return name == "load" || name == "loadstring" || name == "dostring";
      default:
        return name == "eval" || name == "instance_eval" || name == "assert";
    }
  }

  const Language language_;
  bool fetches_ = false;
  bool decodes_ = false;
  bool connects_ = false;
  bool starts_ = false;
  bool duplicates_ = false;
  bool names_shell_ = false;
  bool reads_ = false;
  bool evaluates_ = false;
  bool includes_ = false;
  bool removes_ = false;
  bool names_url_ = false;
  bool tells_all_ = false;
  bool sends_ = false;
  std::vector<Word> found_;
};

/// awk: `"CMD" | getline`, `print "TEXT" | "sh"`, `print > "FILE"`.
void AddPipes(std::span<const Token> tokens, std::vector<CodeEffect>& effects) {
  for (size_t i = 1; i + 1 < tokens.size(); ++i) {
    if (tokens[i].kind != Token::Kind::kOther) continue;
    const bool names_file = tokens[i].text == ">" &&
                            tokens[i + 1].kind == Token::Kind::kString &&
                            tokens[i + 1].text.contains('/');
    if (names_file) {
      effects.push_back({Kind::kWrite, {KnownWord(tokens[i + 1].text)}});
    }
    if (tokens[i].text != "|") continue;
    const Token& before = tokens[i - 1];
    const Token& behind = tokens[i + 1];
    const bool reads = behind.text == "getline";
    const bool writes = behind.kind == Token::Kind::kString;
    if (writes) effects.push_back({Kind::kText, {KnownWord(behind.text)}});
    if (before.kind == Token::Kind::kString && (reads || writes)) {
      effects.push_back({Kind::kText, {KnownWord(before.text)}});
    }
  }
}

/// Names that other objects have, too: they count only with an argument that is
/// a literal, or behind the name of the module.
bool IsCommonName(std::string_view name) {
  return IsOneOf(name, std::to_array<std::string_view>(
                           {"remove", "delete", "run", "call", "rm", "exec",
                            "spawn", "truncate"}));
}

}  // namespace

std::optional<Language> LanguageOf(std::string_view name) {
  struct Named {
    std::string_view prefix;
    Language language;
  };
  static constexpr auto kNames =
      std::to_array<Named>({{"python", Language::kPython},
                            {"pypy", Language::kPython},
                            {"perl", Language::kPerl},
                            {"ruby", Language::kRuby},
                            {"nodejs", Language::kNode},
                            {"node", Language::kNode},
                            {"bun", Language::kNode},
                            {"deno", Language::kNode},
                            {"php", Language::kPhp},
                            {"gawk", Language::kAwk},
                            {"mawk", Language::kAwk},
                            {"awk", Language::kAwk},
                            {"tclsh", Language::kTcl},
                            {"wish", Language::kTcl},
                            {"expect", Language::kTcl},
                            // Their literals and comments are like Ruby's.
                            {"Rscript", Language::kRuby},
                            {"julia", Language::kRuby},
                            {"osascript", Language::kRuby},
                            {"luajit", Language::kLua},
                            {"lua", Language::kLua}});
  for (const Named& known : kNames) {
    if (!name.starts_with(known.prefix)) continue;
    // "python3.11", not "python-config".
    const std::string_view version = name.substr(known.prefix.size());
    if (version.find_first_not_of("0123456789.") == std::string_view::npos) {
      return known.language;
    }
  }
  return std::nullopt;
}

CodeSource SourceOfCode(Language language, const std::vector<Word>& words) {
  CodeSource source;
  if (language == Language::kAwk) {
    for (size_t i = 1; i < words.size(); ++i) {
      const std::string& text = words[i].text;
      if (text == "-f") return source;
      if (text == "-v" || text == "-F") {
        ++i;
      } else if (!text.starts_with('-')) {
        source.texts.push_back(words[i]);
        return source;
      }
    }
    return source;
  }
  constexpr std::string_view kTakesValue = "WXmIrv";
  const bool is_c = language == Language::kPython || language == Language::kTcl;
  const std::string_view letters = is_c                          ? "c"
                                   : language == Language::kNode ? "ep"
                                   : language == Language::kPhp  ? "rBRE"
                                                                 : "eE";
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string_view text = words[i].text;
    if (language == Language::kNode && i == 1 && text == "eval") {
      if (words.size() > 2) source.texts.push_back(words.back());
      return source;
    }
    if (text == "-") {
      source.is_input = true;
      return source;
    }
    if (text == "--") {
      source.is_input = i + 1 == words.size() || language == Language::kPhp;
      return source;
    }
    if (!text.starts_with('-')) {
      source.is_input = text == "/dev/stdin";
      return source;
    }
    if (text.starts_with("--eval=") || text.starts_with("--print=")) {
      Word code = words[i];
      code.text = code.text.substr(text.find('=') + 1);
      source.texts.push_back(std::move(code));
      continue;
    }
    // `-ne`, and not the end of `-MLWP::Simple`.
    const bool has_modules =
        language == Language::kPerl || language == Language::kRuby;
    const size_t first_value = text.find_first_of("MmIrC", 1);
    const bool is_code =
        text == "--eval" || text == "--print" ||
        (!text.starts_with("--") &&
         text.find_first_of(letters, 1) == text.size() - 1 &&
         (!has_modules || first_value == std::string_view::npos));
    if (is_code && i + 1 < words.size()) {
      source.texts.push_back(words[++i]);
      if (language == Language::kPython) return source;
      continue;
    }
    const size_t joined = text.starts_with("--")
                              ? std::string_view::npos
                              : text.find_first_of(letters, 1);
    // `perl -ne'...'`
    const bool is_joined =
        joined != std::string_view::npos && text.size() > joined + 1 &&
        (joined == 1 ||
         text.substr(1, joined - 1).find_first_not_of("nplaw0s") ==
             std::string_view::npos);
    if (is_joined && language != Language::kNode) {
      Word code = words[i];
      code.text = code.text.substr(joined + 1);
      source.texts.push_back(std::move(code));
      continue;
    }
    if (language == Language::kPython && text == "-m") return source;
    if (text == "--version" || text == "--help" || text == "-V" ||
        text == "-h") {
      return source;
    }
    if (text.size() == 2 && kTakesValue.contains(text[1]) &&
        language != Language::kPerl) {
      ++i;
    }
  }
  source.is_input = source.texts.empty() && !words.empty();
  return source;
}

std::vector<CodeEffect> FindEffects(Language language, std::string_view code) {
  if (language == Language::kTcl) return EffectsOfTcl(code);
  std::vector<CodeEffect> effects;
  std::vector<Token> tokens = Tokens(language, code);
  ReplaceNames(tokens);
  const std::map<std::string, std::string> other_names = OtherNames(tokens);
  std::string literal_before;
  for (size_t i = 0; i < tokens.size() && effects.size() < kMaxCodeEffects;
       ++i) {
    const Token& token = tokens[i];
    if (token.kind == Token::Kind::kString) literal_before = token.text;
    if (token.kind == Token::Kind::kBackticks) {
      effects.push_back({Kind::kText, {KnownWord(token.text)}});
    }
    if (token.kind != Token::Kind::kName || i + 1 >= tokens.size()) continue;
    const Token& next = tokens[i + 1];
    const bool is_call =
        next.text == "(" ||
        (next.kind == Token::Kind::kString && language != Language::kPython &&
         language != Language::kNode);
    if (!is_call) continue;
    CallArguments arguments = ArgumentsOf(std::span(tokens).subspan(
        i + 1, std::min(kMaxTokens, tokens.size() - i - 1)));
    const bool is_method =
        i > 0 && (tokens[i - 1].text == "." || tokens[i - 1].text == ":");
    const bool is_lua = language == Language::kLua && token.text == "execute";
    if (is_lua && !arguments.words.empty() && arguments.words[0].known) {
      effects.push_back({Kind::kText, {arguments.words[0]}});
      continue;
    }
    // Of AppleScript and of Deno; other objects have such names, too.
    const bool is_foreign =
        (token.text == "script" &&
         (language != Language::kRuby || is_method)) ||
        (token.text == "Command" && (i < 2 || tokens[i - 2].text != "Deno"));
    if (is_foreign) continue;
    const bool decodes =
        Runs(token.text) && DecodesArgument(std::span(tokens).subspan(i + 1));
    if (IsCommonName(token.text) && !arguments.any_literal) {
      if (decodes) effects.push_back({Kind::kRunDecoded, {}});
      continue;
    }
    // A list's remove, a set's delete: their objects are no modules.
    const bool is_vague =
        is_method && (token.text == "remove" || token.text == "delete" ||
                      token.text == "truncate");
    if (is_vague) {
      const std::string owner = i > 1 ? tokens[i - 2].text : "";
      const bool is_module = owner == "os" || owner == "File" ||
                             owner == "fs" || owner == "Dir" ||
                             owner == "shutil";
      if (!is_module) continue;
    }
    const auto other = other_names.find(token.text);
    std::string name = other == other_names.end() ? token.text : other->second;
    if (IsOneOf(name, kCallbacks) && arguments.words.size() > 1) {
      name = arguments.words[0].text;
      arguments.words.erase(arguments.words.begin());
      arguments.is_list = false;
    }
    auto effect = EffectOfCall(name, std::move(arguments), literal_before);
    if (effect) effects.push_back(*std::move(effect));
    if (decodes) effects.push_back({Kind::kRunDecoded, {}});
  }
  if (language == Language::kAwk) AddPipes(tokens, effects);
  Traits(language, tokens).AddTo(effects, tokens);
  return effects;
}

}  // namespace txfs::cli
