#include <algorithm>
#include <array>
#include <utility>

#include "cli/shell/option_words.h"
#include "cli/shell/walker.h"

namespace txfs::cli {
namespace {

using policy::BaseName;
using policy::KnownWord;
using policy::Word;

/// Of a command, with those of the files that it names.
constexpr size_t kMaxReads = 256;

bool IsIn(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool IsStandardInput(std::string_view text) {
  return text == "-" || text == "/dev/stdin" || text == "/dev/fd/0";
}

/// Clients and editors whose commands are on the standard input, unless one of
/// these options has them.
constexpr auto kClients = std::to_array<std::string_view>(
    {"psql", "mysql", "mariadb", "sqlite3", "duckdb", "mongosh", "mongo",
     "redis-cli", "clickhouse-client", "sqlcmd", "cqlsh", "ed", "ex"});
constexpr auto kClientOptions = std::to_array<std::string_view>(
    {"-c", "-e", "-f", "-Q", "-q", "--command", "--execute", "--file", "--eval",
     "--query"});
/// Interpreters of a file, or of the standard input.
constexpr auto kInterpreters = std::to_array<std::string_view>(
    {"osascript", "julia", "Rscript", "R", "groovy", "scala", "ghci", "runghc",
     "elixir", "nix-shell"});
/// Those with an option for the file.
constexpr auto kWithFile = std::to_array<std::string_view>(
    {"make", "gmake", "awk", "gawk", "mawk", "sed", "gsed", "gdb"});

/// Programs that pack what they are told to, or change its form.
constexpr auto kPackers = std::to_array<std::string_view>(
    {"tar", "gtar", "bsdtar", "zip", "7z", "7za", "rar", "ar", "openssl", "gpg",
     "gpg2", "age"});
constexpr auto kMovers = std::to_array<std::string_view>(
    {"cp", "mv", "install", "ln", "dd", "rsync"});

/// Whether the program that wrote a file prints the environment.
bool PrintsEnvironment(std::string_view feeder) {
  constexpr auto kPrograms = std::to_array<std::string_view>(
      {"env", "printenv", "set", "export", "declare", "typeset", "compgen",
       "history"});
  return IsIn(kPrograms, feeder.substr(0, feeder.find(' ')));
}

}  // namespace

bool ReadsProgram(const std::vector<Word>& words) {
  const std::string_view name = BaseName(words[0].text);
  const WordSpan rest = WordSpan(words).subspan(1);
  if (IsIn(kClients, name)) {
    // sqlite3 FILE COMMAND
    const bool has_file = name == "sqlite3" || name == "duckdb";
    const bool has_command =
        has_file && std::ranges::count_if(rest, [](const Word& word) {
                      return !IsOptionWord(word);
                    }) > 1;
    if (has_command) return false;
    return std::ranges::none_of(rest, [](const Word& word) {
      return IsIn(kClientOptions,
                  std::string_view(word.text).substr(0, word.text.find('=')));
    });
  }
  const auto is_input = [](const Word& word) {
    return IsStandardInput(word.text);
  };
  if (IsIn(kInterpreters, name)) {
    return std::ranges::any_of(rest, is_input) ||
           std::ranges::all_of(rest, IsOptionWord);
  }
  if (!IsIn(kWithFile, name)) return false;
  const std::vector<Word> files = ValuesOf(rest, 'f', "file");
  const std::vector<Word> commands = ValuesOf(rest, 'x', "command");
  return std::ranges::any_of(files, is_input) ||
         (name == "gdb" && std::ranges::any_of(commands, is_input)) ||
         std::ranges::find(rest, "-f-", &Word::text) != rest.end();
}

void Walker::FollowBindings(policy::Command& command) const {
  for (policy::PathArgument& path : command.paths) {
    for (const Binding& binding : frame_.bindings) {
      const std::string_view text = path.path;
      const bool is_below = text.starts_with(binding.target) &&
                            (text.size() == binding.target.size() ||
                             text[binding.target.size()] == '/');
      if (!is_below) continue;
      path.path = policy::NormalPath(
          state_.directory,
          binding.source + std::string(text.substr(binding.target.size())));
      path.region = policy::RegionOf(path.path, surroundings_);
      command.contained = false;
      command.remote = false;
      break;
    }
  }
}

void Walker::AddContents(policy::Command& command) const {
  const std::vector<policy::PathArgument> paths = command.paths;
  for (const policy::PathArgument& path : paths) {
    for (const auto* files : {&contents_, &state_.written}) {
      const auto known = files->find(path.path);
      if (known == files->end()) continue;
      for (policy::PathArgument held : known->second.reads) {
        const bool is_new = command.reads.size() < kMaxReads &&
                            std::ranges::find(command.reads, held.path,
                                              &policy::PathArgument::path) ==
                                command.reads.end();
        if (!is_new) continue;
        held.argument = path.argument;
        command.reads.push_back(std::move(held));
      }
      for (const std::string& feeder : known->second.feeders) {
        const bool is_new =
            std::ranges::find(command.fed_by, feeder) == command.fed_by.end();
        if (is_new && PrintsEnvironment(feeder)) {
          command.fed_by.push_back(feeder);
        }
      }
    }
  }
}

void Walker::KeepContents(const Words& words, const policy::Command& command) {
  const std::string_view name = BaseName(words[0].text);
  std::vector<std::string> targets;
  if (IsIn(kMovers, name)) {
    if (command.paths.size() > 1) targets.push_back(command.paths.back().path);
  } else if (IsIn(kPackers, name)) {
    // Which one is the archive, the options tell; the others hold themselves.
    for (const auto& path : command.paths) targets.push_back(path.path);
  }
  for (const std::string& target : targets) {
    Flow& flow = contents_[target];
    flow.feeders = command.fed_by;
    flow.reads = command.reads;
    for (const policy::PathArgument& path : command.paths) {
      if (path.path != target) flow.reads.push_back(path);
    }
  }
}

void Walker::RunProgramFile(const Words& words, size_t part) {
  const std::string_view name = BaseName(words[0].text);
  if (!IsIn(kClients, name) && !IsIn(kWithFile, name)) return;
  const bool is_make = name == "make" || name == "gmake";
  for (const Word& file :
       ValuesOf(WordSpan(words).subspan(1), name == "gdb" ? 'x' : 'f',
                name == "gdb" ? "command" : "file")) {
    const Flow* known =
        WrittenTo(policy::NormalPath(state_.directory, file.text));
    if (known == nullptr) continue;
    if (known->literal && !is_make) continue;
    const Flow content = *known;
    if (!content.literal) {
      policy::Command& command = reading_.parts[part].command;
      command.fed_by.insert(command.fed_by.end(), content.feeders.begin(),
                            content.feeders.end());
      command.script = policy::Script::kInput;
      Note("the program " + file.text + " is not known");
      continue;
    }
    for (const std::string& recipe : RecipesIn(*content.literal)) {
      RunText(KnownWord(recipe), {}, {}, name);
    }
  }
}

void Walker::AddEmptied(const Word& file) {
  const auto path = policy::PathIn(file, state_.directory, Here());
  const bool is_outside = path && (path->region == policy::Region::kHome ||
                                   path->region == policy::Region::kOutside);
  if (!is_outside) return;
  AddPart(MakeCommand({KnownWord("truncate"), file}, {}, {}, {}));
}

}  // namespace txfs::cli
