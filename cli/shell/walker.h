#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/output/json.h"
#include "cli/shell/code.h"
#include "cli/shell/letters.h"
#include "cli/shell/part.h"
#include "cli/shell/reader.h"
#include "cli/shell/syntax.h"
#include "cli/shell/wrappers.h"
#include "policy/command.h"

namespace txfs::cli {

/// What flows from one command to the next one in a pipe, or into a script.
struct Flow {
  /// Programs with their arguments whose output it is.
  std::vector<std::string> feeders;
  std::vector<policy::PathArgument> reads;  ///< files that they read
  std::optional<std::string> literal;       ///< the bytes, if they are known
  bool is_file = false;                     ///< a redirection reads it
  /// Directories below which the names in it lie (find).
  std::vector<policy::Word> roots;

  void Add(const Flow& other);
};

/// Walks over syntax trees of shfmt and collects the parts of the text. Used
/// once.
class Walker {
 public:
  explicit Walker(const ShellStart& start);
  Walker(const Walker&) = delete;
  Walker& operator=(const Walker&) = delete;

  void WalkText(std::string_view text);
  /// The words are known.
  void WalkWords(const std::vector<std::string>& words);
  [[nodiscard]] ShellReading Take();

 private:
  using Words = std::vector<policy::Word>;
  struct Function {
    const Json* body = nullptr;
    const std::string* source = nullptr;
  };
  struct Variable {
    Words values;
    Flow source;  ///< feeders and reads: where it is from
    bool operator==(const Variable& other) const;
  };
  /// What statements change, and subshells do not change for their parents.
  struct State {
    std::map<std::string, Variable> variables;
    std::map<std::string, Function> functions;
    std::map<std::string, std::string> aliases;
    /// Files, and what was written to them; descriptors as /dev/fd/N.
    std::map<std::string, Flow> written;
    std::optional<Flow> input;  ///< of what follows: `exec <FILE`
    std::string directory;      ///< "": unknown
    Words arguments;            ///< $1, $2, ...
    bool knows_arguments = true;
    std::set<std::string> exported;  ///< variables
  };
  /// How a part is run.
  struct Frame {
    std::vector<std::string> via;
    bool remote = false;
    bool contained = false;
    std::vector<Binding> bindings;  ///< of the container
    bool guess = false;
    bool beside = false;  ///< in a pipe or in the background
  };
  /// Counts a level as long as it lives.
  class Level {
   public:
    explicit Level(size_t& depth) : depth_(depth) { ++depth_; }
    ~Level() { --depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    size_t& depth_;
  };

  // Statements.
  Flow Parse(std::string_view text, const Flow& in);
  Flow Statements(const Json& list, const Flow& in);
  Flow Statement(const Json& statement, const Flow& in);
  Flow RunCommand(const Json& command, const Flow& in);
  Flow Call(const Json& call, const Flow& in);
  Flow Pipe(const Json& command, const Flow& in);
  Flow InSubshell(const Json& list, const Flow& in);
  Flow If(const Json& clause, const Flow& in);
  Flow Loop(const Json& clause, const Flow& in);
  Flow While(const Json& clause, const Flow& in);
  Flow Case(const Json& clause, const Flow& in);
  void Declare(const Json& clause);
  void Assign(const Json& assign, Flow& outer);
  /// Evaluates the substitutions in `json`, whatever it is.
  void Search(const Json& json, const Flow& in, size_t levels);
  /// Evaluates the substitutions in `tree` that the walk did not come to, other
  /// than those in functions, which are walked where they are called.
  void SearchRest(const Json& tree);
  /// Runs the substitutions in `text`, of which bash does so when it evaluates
  /// it as an index or a prompt.
  void Evaluate(std::string_view text);
  void EvaluateValue(const std::string& name);
  /// The same for the literals and variables in an arithmetic expression.
  void EvaluateArithmetic(const Json& node);
  /// What the builtin `name` evaluates of its arguments.
  void EvaluateArguments(std::string_view name, const Words& arguments);
  /// Of a variable with a prompt or a command, runs that.
  void RunVariable(std::string_view name, const policy::Word& value);
  /// Variables that differ from `before` are not known from here on.
  void Forget(const State& before);

  // Redirections.
  struct Redirected {
    Flow in;
    std::vector<policy::Word> writes;
    bool reads = false;                 ///< from a file or a text
    std::vector<policy::Word> emptied;  ///< of `writes`, those with > before
  };
  Redirected Redirect(const Json& statement, const Flow& in);
  Flow HereDocument(const Json& redirect);
  /// The input from `file`, in whose name `used` was used.
  Flow FileInput(const policy::Word& file, const Flow& used);
  /// What the text wrote to a file or gave a descriptor; null: nothing.
  [[nodiscard]] const Flow* WrittenTo(const std::string& path) const;
  void AddWrites(const std::vector<policy::Word>& files, const Flow& content);

  // Words.
  /// Most words of a command, an array or a list. Later words are not read.
  static constexpr size_t kMaxWords = 4096;
  /// Adds the words of `letters` to `words`, up to kMaxWords in all.
  void AddWords(const Letters& letters, Words& words);
  /// Cuts `words` to kMaxWords, and notes it.
  void Bound(Words& words);
  Letters Expand(const Json& word, Flow& used);
  void ExpandPart(const Json& part, bool in_quotes, Letters& letters,
                  Flow& used);
  void ExpandParameter(const Json& part, bool in_quotes, Letters& letters,
                       Flow& used);
  /// The value of `name`; none: it is not known.
  [[nodiscard]] std::optional<Words> ValueOf(const std::string& name) const;
  Words Fields(const Json& words, Flow& used);
  /// Adds the text of an expansion, which is split at $IFS without quotes.
  void AddExpansion(std::string_view text, bool in_quotes, Letters& letters);
  /// The same for `raw`, written without quotes in an expansion.
  void AddUnquoted(std::string_view raw, Letters& letters);
  [[nodiscard]] std::string SourceOf(const Json& node) const;
  /// The operator at the position `key` of `node`.
  [[nodiscard]] std::string_view OperatorAt(const Json& node,
                                            const char* key) const;

  // Commands.
  Flow Run(const Words& words, const std::vector<std::string>& environment,
           const Flow& in, const Flow& used);
  Flow RunFunction(const Function& function, const Words& words,
                   const Flow& in);
  bool RunBuiltin(std::string_view name, const Words& words, const Flow& in,
                  Flow& out);
  /// What the command in the arguments of a wrapper writes.
  Flow RunInner(const Unwrapped& inner, const Words& words, const Flow& in,
                const Flow& used, const std::vector<std::string>& environment);
  /// Adds what a wrapper adds to the words of `inner`.
  [[nodiscard]] Words WithAdded(const Unwrapped& inner, const Flow& in) const;
  void RunText(const policy::Word& text, const Flow& in, const Flow& used,
               std::string_view who);
  void RunInput(const Words& words, const Flow& in, const Flow& used);
  void RunCode(Language language, const Words& words, const Flow& in,
               const Flow& used);
  /// A file that the text wrote before.
  void RunCodeFile(Language language, const Words& words);
  void RunEffects(Language language, std::string_view code);
  void ChangeDirectory(const Words& words);
  /// `read` and `mapfile`.
  void ReadVariables(std::string_view name, const Words& words, const Flow& in);
  /// Puts the paths of the machine in the place of those that a container has
  /// of it: what the command does to them stays.
  void FollowBindings(policy::Command& command) const;
  /// Adds to `command` what is in the files that it names, as far as the text
  /// put it there.
  void AddContents(policy::Command& command) const;
  void KeepContents(const Words& words, const policy::Command& command);
  /// Of a program that an option has it read from a file, such as `make -f`,
  /// what the text wrote there.
  void RunProgramFile(const Words& words, size_t part);
  /// Of a file outside that is emptied, adds that part.
  void AddEmptied(const policy::Word& file);
  /// Files that options name, and downloads.
  void AddOutputs(const Words& words);
  /// Adds a part that writes to each of `files`.
  void AddOutputFiles(const Words& files);
  /// The commands of a client of FTP in `text`, one a line.
  void RunTransfers(const Words& words, std::string_view text);
  /// Aliases that the text sets for git, and their use. True: it was one.
  bool RunGitAlias(const Words& words, const Flow& in, const Flow& used);
  policy::Command MakeCommand(const Words& words,
                              const std::vector<std::string>& environment,
                              const Flow& in, const Flow& used) const;
  /// Also records the start of the program.
  policy::Command& AddPart(policy::Command command);
  void Note(const std::string& sentence);
  /// Notes a bound of the walk, and that what is beyond it was not read.
  void NoteBound(const std::string& sentence);
  [[nodiscard]] bool IsTooMuch();
  [[nodiscard]] policy::Surroundings Here() const;

  const policy::Surroundings surroundings_;
  State state_;
  /// Files with what was copied or packed into them: where that is from.
  std::map<std::string, Flow> contents_;
  Frame frame_;
  ShellReading reading_;
  std::set<std::string> noted_;
  std::deque<Json> trees_;
  std::deque<std::string> sources_;
  const std::string* source_ = nullptr;
  std::set<const Json*> searched_;  ///< substitutions
  const Flow* piped_ = nullptr;     ///< what the command reads that is expanded
  std::vector<const Json*> running_;  ///< bodies of functions
  bool has_unread_ = false;           ///< a bound was exceeded
  size_t depth_ = 0;    ///< of scripts, functions and substitutions
  size_t nesting_ = 0;  ///< of the syntax
  size_t steps_ = 0;
  size_t parses_ = 0;
  ParserBudget parser_;  ///< its deadline is also that of the walk
};

/// Whether `words` have a client or an interpreter take its commands from the
/// standard input. Not those of shells and of the languages in code.h.
[[nodiscard]] bool ReadsProgram(const std::vector<policy::Word>& words);
/// Whether nodes of this type have arithmetic expressions.
[[nodiscard]] bool IsArithmetic(std::string_view type);
/// A name below `root`, which is not known.
[[nodiscard]] policy::Word Below(const policy::Word& root);
/// The files that `patch` names (FilesInPatch).
[[nodiscard]] std::vector<policy::Word> FilesOfPatch(std::string_view patch);
/// The files that options of `words` have it write, or it downloads.
[[nodiscard]] std::vector<policy::Word> OutputsOf(
    const std::vector<policy::Word>& words);
/// The files that a download is saved in, as far as the options tell.
[[nodiscard]] std::vector<policy::Word> FilesOfDownload(
    const std::vector<policy::Word>& words);
/// Whether `source`, a word behind the option `before`, proves to a server who
/// asks: what it is made of is meant for that server.
[[nodiscard]] bool IsCredential(std::string_view before,
                                std::string_view source);
/// Whether what reads `file` is `grep KEY FILE`: the value of one key of the
/// settings of the project, and not the file.
[[nodiscard]] bool SelectsValue(const std::vector<std::string>& feeders,
                                std::string_view file);

/// What `command` writes to its standard output, if it only passes on literals.
[[nodiscard]] std::optional<std::string> LiteralOutput(
    const std::vector<policy::Word>& words,
    const std::optional<std::string>& input, const std::string& directory);

}  // namespace txfs::cli
