#include "cli/shell/wrappers.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cli/shell/option_words.h"

namespace txfs::cli {
namespace {

using policy::BaseName;
using policy::Word;

/// A program that runs the command in its arguments.
struct Wrapper {
  std::string_view name;
  std::string_view short_values = "";  ///< letters of options with a value
  std::string_view long_values = "";   ///< their long names, between blanks
  size_t operands = 0;                 ///< before the command
  bool assigns = false;                ///< NAME=VALUE before the command
  bool remote = false;
  /// Options after which it runs no command.
  std::string_view queries = "";
  /// Letters of options with which it starts a shell if there is no command;
  /// "*": it does so without an option.
  std::string_view shell = "";
};

constexpr auto kWrappers = std::to_array<Wrapper>({
    {.name = "sudo",
     .short_values = "ugpChrtTUDR",
     .long_values = " user group prompt close-from host role type "
                    "command-timeout other-user chdir chroot ",
     .assigns = true,
     .queries = "elvVkK",
     .shell = "si"},
    {.name = "doas", .short_values = "uC", .queries = "L", .shell = "s"},
    {.name = "pkexec", .long_values = " user "},
    {.name = "run0",
     .short_values = "ugD",
     .long_values = " user group chdir "},
    {.name = "env",
     .short_values = "uC",
     .long_values = " unset chdir ",
     .assigns = true},
    {.name = "nice", .short_values = "n", .long_values = " adjustment "},
    {.name = "ionice",
     .short_values = "cnpPu",
     .long_values = " class classdata pid "},
    {.name = "chrt", .short_values = "TPD", .operands = 1},
    {.name = "taskset", .operands = 1},
    {.name = "timeout",
     .short_values = "ks",
     .long_values = " kill-after signal ",
     .operands = 1},
    {.name = "nohup"},
    {.name = "setsid"},
    {.name = "stdbuf",
     .short_values = "ioe",
     .long_values = " input output error "},
    {.name = "unbuffer"},
    {.name = "time", .short_values = "fo", .long_values = " format output "},
    {.name = "strace", .short_values = "aeEIoOpPsSuUbX"},
    {.name = "ltrace", .short_values = "aeDFlnopsuwx"},
    {.name = "valgrind"},
    {.name = "chroot",
     .long_values = " userspec groups ",
     .operands = 1,
     .shell = "*"},
    {.name = "unshare",
     .short_values = "SGRw",
     .long_values = " root wd setuid setgid ",
     .shell = "*"},
    {.name = "nsenter",
     .short_values = "tSG",
     .long_values = " target setuid setgid ",
     .shell = "*"},
    {.name = "setpriv", .long_values = " reuid regid groups "},
    {.name = "setarch", .operands = 1},
    {.name = "linux32"},
    {.name = "linux64"},
    {.name = "prlimit"},
    {.name = "systemd-run",
     .short_values = "upMHdE",
     .long_values = " unit property description slice uid gid nice setenv "
                    "machine host working-directory on-active on-boot "
                    "on-startup on-calendar timer-property "},
    {.name = "systemd-inhibit", .long_values = " what who why mode "},
    {.name = "dbus-run-session"},
    {.name = "xvfb-run", .short_values = "aefnpsw"},
    {.name = "fakeroot", .short_values = "lsib", .shell = "*"},
    {.name = "proot", .short_values = "rbqwvR"},
    {.name = "firejail"},
    {.name = "runcon",
     .short_values = "turl",
     .long_values = " type user role range "},
    {.name = "aa-exec",
     .short_values = "pn",
     .long_values = " profile namespace "},
    {.name = "s6-setuidgid", .operands = 1},
    {.name = "with-contenv"},
    {.name = "chruby-exec", .operands = 1},
    // Queues of tasks, and terminals that stay.
    {.name = "tsp", .short_values = "LSDN"},
    {.name = "ts", .short_values = "LSDN"},
    {.name = "nq"},
    {.name = "dtach", .short_values = "acnANpeEr"},
    {.name = "abduco", .short_values = "acnANe"},
    {.name = "corepack"},
    {.name = "torsocks"},
    {.name = "proxychains"},
    {.name = "proxychains4", .short_values = "f"},
    {.name = "rlwrap"},
    {.name = "caffeinate", .short_values = "tw"},
    {.name = "cpulimit", .short_values = "lpe"},
    {.name = "command", .queries = "vV"},
    {.name = "builtin"},
    {.name = "exec", .short_values = "a"},
    {.name = "coproc"},
    {.name = "noglob"},
    {.name = "nocorrect"},
    {.name = "busybox"},
    {.name = "toybox"},
    {.name = "gosu", .operands = 1},
    {.name = "su-exec", .operands = 1},
    {.name = "setuidgid", .operands = 1},
    {.name = "envuidgid", .operands = 1},
    {.name = "chpst", .short_values = "ueUbm/nlL"},
    {.name = "softlimit", .short_values = "mdsl"},
    {.name = "tini", .short_values = "peg"},
    {.name = "dumb-init", .short_values = "r"},
    {.name = "catatonit"},
    {.name = "numactl",
     .short_values = "NmCip",
     .long_values = " cpunodebind membind physcpubind interleave preferred "},
    {.name = "eatmydata"},
    {.name = "systemd-cat",
     .short_values = "tp",
     .long_values = " identifier priority "},
    {.name = "ssh-agent", .short_values = "atPEO", .queries = "k"},
    {.name = "dbus-launch"},
    {.name = "faketime", .short_values = "f", .operands = 1},
    {.name = "cgexec", .short_values = "g"},
    {.name = "chronic"},
    {.name = "ifne"},
    {.name = "retry", .short_values = "tdnm"},
    {.name = "sshpass", .short_values = "pfdP"},
    {.name = "daemonize", .short_values = "acelopuv"},
    {.name = "pty"},
    {.name = "spawn"},
    {.name = "cross-env", .assigns = true},
    {.name = "cross-env-shell", .assigns = true},
    {.name = "env-cmd", .short_values = "fe"},
    {.name = "envchain", .operands = 1},
    {.name = "wsl",
     .short_values = "due",
     .long_values = " distribution user "},
    {.name = "watchexec",
     .short_values = "ewdfisW",
     .long_values =
         " exts watch debounce filter ignore signal delay-run shell "},
    {.name = "nodemon",
     .short_values = "ewixd",
     .long_values = " ext watch ignore exec delay "},
    {.name = "reflex", .short_values = "rRgGd"},
    {.name = "perf", .short_values = "eopr", .operands = 1},
    {.name = "rr", .operands = 1},
    {.name = "uftrace", .operands = 1},
    {.name = "heaptrack"},
    {.name = "memusage"},
    {.name = "pseudo"},
    {.name = "winpty"},
    {.name = "arch"},
    {.name = "torify"},
    {.name = "tsocks"},
    {.name = "sem", .short_values = "j"},
    {.name = "dotenv", .short_values = "fevcp"},
    {.name = "direnv", .operands = 2},
});

/// Whether `words`, without a command, have the wrapper start a shell.
bool StartsShell(const Wrapper& wrapper, WordSpan words) {
  if (wrapper.shell == "*") return true;
  return std::ranges::any_of(words.subspan(1), [&](const Word& word) {
    const std::string_view text = word.text;
    if (!text.starts_with('-') || text.size() < 2) return false;
    if (text.starts_with("--")) {
      return !wrapper.shell.empty() && (text == "--shell" || text == "--login");
    }
    return text.find_first_of(wrapper.shell, 1) != std::string_view::npos;
  });
}

std::vector<Unwrapped> OfWrapper(const Wrapper& wrapper, WordSpan words) {
  Unwrapped inner{.remote = wrapper.remote};
  WordSpan rest = words.subspan(1);
  size_t operands = wrapper.operands;
  while (!rest.empty()) {
    const Word& word = rest[0];
    if (word.text == "--") {
      rest = rest.subspan(1);
      // Behind it a wrapper may still have operands.
      while (operands > 0 && !rest.empty()) {
        rest = rest.subspan(1);
        --operands;
      }
      break;
    }
    if (IsOptionWord(word)) {
      const bool is_short = !word.text.starts_with("--");
      if (is_short &&
          word.text.find_first_of(wrapper.queries, 1) != std::string::npos) {
        return {};
      }
      if (wrapper.name == "env" &&
          (word.text == "-S" || word.text == "--split-string")) {
        inner.as = Unwrapped::As::kText;
        rest = rest.subspan(1);
        break;
      }
      if (wrapper.name == "env" && (word.text.starts_with("-S") ||
                                    word.text.starts_with("--split-string="))) {
        inner.as = Unwrapped::As::kText;
        inner.words.push_back(
            Tail(word, is_short ? 2 : word.text.find('=') + 1));
        for (const Word& more : rest.subspan(1)) inner.words.push_back(more);
        return {inner};
      }
      const size_t size =
          SizeOfOption(word, wrapper.short_values, wrapper.long_values);
      const bool is_directory =
          (wrapper.name == "env" &&
           (word.text == "-C" || word.text == "--chdir")) ||
          (wrapper.name == "sudo" &&
           (word.text == "-D" || word.text == "--chdir"));
      if (is_directory && rest.size() > 1) inner.directory = rest[1];
      rest = rest.subspan(std::min(size, rest.size()));
      continue;
    }
    if (wrapper.assigns && IsAssignment(word)) {
      inner.environment.push_back(word.text);
      rest = rest.subspan(1);
      continue;
    }
    if (operands == 0) break;
    --operands;
    rest = rest.subspan(1);
  }
  if (rest.empty()) {
    if (!StartsShell(wrapper, words)) return {};
    inner.words = {policy::KnownWord("sh")};
    return {inner};
  }
  inner.words = Copy(rest);
  return {inner};
}

std::vector<Unwrapped> OfXargs(WordSpan words) {
  Unwrapped inner{.placeholder = ""};
  WordSpan rest = words.subspan(1);
  while (!rest.empty() && IsOptionWord(rest[0]) && rest[0].text != "--") {
    const std::string& text = rest[0].text;
    if (text == "-I" && rest.size() > 1) inner.placeholder = rest[1].text;
    if (text.starts_with("-I") && text.size() > 2) {
      inner.placeholder = text.substr(2);
    }
    if (text == "-i" || text == "--replace") inner.placeholder = "{}";
    if (text.starts_with("--replace=")) inner.placeholder = text.substr(10);
    const size_t size = SizeOfOption(
        rest[0], "ILnPsadE",
        " arg-file delimiter max-args max-lines max-procs max-chars "
        "process-slot-var ");
    rest = rest.subspan(std::min(size, rest.size()));
  }
  if (!rest.empty() && rest[0].text == "--") rest = rest.subspan(1);
  if (rest.empty()) return {};
  inner.words = Copy(rest);
  return {inner};
}

std::vector<Unwrapped> OfParallel(WordSpan words) {
  const WordSpan rest = BehindOptions(
      words.subspan(1), "jaSINnLdCs",
      " jobs arg-file sshlogin max-args delay timeout retries colsep results "
      "joblog tmpdir workdir wd basefile max-replace-args ");
  const auto separator = std::ranges::find_if(
      rest, [](const Word& word) { return word.text.starts_with(":::"); });
  Unwrapped inner{.as = Unwrapped::As::kText, .placeholder = ""};
  inner.words.assign(rest.begin(), separator);
  for (auto it = separator; it != rest.end(); ++it) {
    if (!it->text.starts_with(":::")) inner.added.push_back(*it);
  }
  inner.remote = !ValuesOf(words, 'S', "sshlogin").empty();
  if (inner.words.empty()) {
    // Its arguments, or what it reads, are the commands.
    if (inner.added.empty()) {
      return {Unwrapped{.as = Unwrapped::As::kInput, .remote = inner.remote}};
    }
    std::vector<Unwrapped> commands;
    for (const Word& text : inner.added) {
      commands.push_back({.as = Unwrapped::As::kText,
                          .words = {text},
                          .remote = inner.remote});
    }
    return commands;
  }
  for (const Word& word : inner.words) {
    if (word.text.contains("{}")) inner.placeholder = "{}";
  }
  return {inner};
}

/// The directories in which find looks.
std::vector<Word> RootsOfFind(WordSpan words) {
  std::vector<Word> roots;
  for (const Word& word : words.subspan(1)) {
    const std::string_view text = word.text;
    const bool is_mode = text == "-H" || text == "-L" || text == "-P";
    if (is_mode) continue;
    if (text.starts_with('-') || text == "(" || text == "!") break;
    roots.push_back(word);
  }
  if (roots.empty()) roots.push_back(policy::KnownWord("."));
  return roots;
}

std::vector<Unwrapped> OfFind(WordSpan words) {
  constexpr std::array<std::string_view, 4> kActions{"-exec", "-execdir", "-ok",
                                                     "-okdir"};
  std::vector<Unwrapped> commands;
  for (size_t i = 1; i < words.size(); ++i) {
    if (std::ranges::find(kActions, words[i].text) == kActions.end()) continue;
    Unwrapped inner{.placeholder = "{}", .roots = RootsOfFind(words)};
    const auto name = std::ranges::find_if(words, [](const Word& word) {
      return word.text == "-name" || word.text == "-iname";
    });
    if (words.end() - name > 1) inner.name = (name + 1)->text;
    while (++i < words.size()) {
      const std::string& text = words[i].text;
      const bool ends = text == ";" || (text == "+" && !inner.words.empty() &&
                                        inner.words.back().text == "{}");
      if (ends) break;
      inner.words.push_back(words[i]);
    }
    if (!inner.words.empty()) commands.push_back(std::move(inner));
  }
  return commands;
}

constexpr Wrapper kLoader{
    .name = "ld.so",
    .long_values = " library-path inhibit-rpath audit preload argv0 "};

/// Options of bwrap that take two values, and those that take one.
std::vector<Unwrapped> OfBwrap(WordSpan words) {
  constexpr std::string_view kTwo =
      " --bind --bind-try --dev-bind --dev-bind-try --ro-bind --ro-bind-try "
      "--symlink --setenv --file --bind-data --ro-bind-data --chmod "
      "--overlay ";
  constexpr std::string_view kNone =
      " --unshare-all --share-net --unshare-user --unshare-user-try "
      "--unshare-ipc --unshare-pid --unshare-net --unshare-uts "
      "--unshare-cgroup --unshare-cgroup-try --clearenv --new-session "
      "--die-with-parent --as-pid-1 --disable-userns ";
  WordSpan rest = words.subspan(1);
  while (!rest.empty() && IsOptionWord(rest[0])) {
    const std::string option = " " + rest[0].text + " ";
    const size_t values = kTwo.contains(option)    ? 2
                          : kNone.contains(option) ? 0
                                                   : 1;
    const bool is_end = rest[0].text == "--";
    rest = rest.subspan(std::min(is_end ? 1 : values + 1, rest.size()));
    if (is_end) break;
  }
  if (rest.empty()) return {};
  return {Unwrapped{.words = Copy(rest)}};
}

std::vector<Unwrapped> OfFd(WordSpan words) {
  constexpr std::array<std::string_view, 4> kActions{"-x", "-X", "--exec",
                                                     "--exec-batch"};
  for (size_t i = 1; i < words.size(); ++i) {
    if (std::ranges::find(kActions, words[i].text) == kActions.end()) continue;
    Unwrapped inner{.placeholder = "{}", .roots = {}};
    // Behind the pattern, the operands are directories.
    WordSpan before = words.subspan(1, i - 1);
    for (size_t operands = 0; !before.empty();) {
      const bool is_option = IsOptionWord(before[0]);
      const size_t size = !is_option ? 1
                                     : SizeOfOption(before[0], "tedEcSjo",
                                                    " type extension depth "
                                                    "max-depth min-depth "
                                                    "exclude color size "
                                                    "owner threads ");
      if (!is_option && ++operands > 1) inner.roots.push_back(before[0]);
      before = before.subspan(std::min(size, before.size()));
    }
    if (inner.roots.empty()) inner.roots.push_back(policy::KnownWord("."));
    inner.words = Copy(words.subspan(i + 1));
    if (inner.words.empty()) return {};
    if (std::ranges::none_of(inner.words, [](const Word& word) {
          return word.text.contains("{}");
        })) {
      inner.placeholder = "";
    }
    return {inner};
  }
  return {};
}

std::vector<Unwrapped> OfFlock(WordSpan words) {
  const WordSpan rest = BehindOptions(words.subspan(1), "wE",
                                      " timeout wait conflict-exit-code ");
  if (rest.size() < 2) return {};
  if (rest[1].text == "-c" || rest[1].text == "--command") {
    return {
        Unwrapped{.as = Unwrapped::As::kText, .words = Copy(rest.subspan(2))}};
  }
  return {Unwrapped{.words = Copy(rest.subspan(1))}};
}

std::vector<Unwrapped> OfSsh(WordSpan words) {
  WordSpan rest = BehindOptions(words.subspan(1), "BbcDEeFIiJLlmOopQRSWw", "");
  if (rest.size() < 2) {
    // A shell reads the commands there.
    if (rest.empty()) return {};
    return {Unwrapped{.as = Unwrapped::As::kInput, .remote = true}};
  }
  rest = BehindOptions(rest.subspan(1), "BbcDEeFIiJLlmOopQRSWw", "");
  if (rest.empty()) return {};
  return {Unwrapped{
      .as = Unwrapped::As::kText, .words = Copy(rest), .remote = true}};
}

/// su -c TEXT, script -c TEXT: text in the value of an option.
std::vector<Unwrapped> OfCommandOption(WordSpan words, std::string_view name) {
  const std::vector<Word> texts = ValuesOf(words.subspan(1), 'c', "command");
  if (!texts.empty()) {
    return {Unwrapped{.as = Unwrapped::As::kText, .words = {texts.front()}}};
  }
  if (name == "script" || name == "sg") return {};
  const WordSpan rest =
      BehindOptions(words.subspan(1), "ugGsw", " user group shell ");
  if (name != "runuser" || rest.empty()) {
    return {Unwrapped{.as = Unwrapped::As::kInput}};
  }
  return {Unwrapped{.words = Copy(rest)}};
}

std::vector<Unwrapped> OfShell(WordSpan words) {
  size_t i = 1;
  bool has_text = false;
  for (; i < words.size(); ++i) {
    const std::string_view text = words[i].text;
    const bool is_option =
        text.size() > 1 && (text.starts_with('-') || text.starts_with('+'));
    if (!is_option || text == "--") {
      if (text == "--") ++i;
      break;
    }
    if (text.starts_with("--")) {
      if (text == "--rcfile" || text == "--init-file") ++i;
      if (text == "--command") has_text = true;
      continue;
    }
    // It only checks the syntax.
    if (text.starts_with('-') && text.contains('n')) return {};
    has_text = has_text || text.contains('c');
    if (text.contains('s') && !has_text) {
      return {Unwrapped{.as = Unwrapped::As::kInput}};
    }
    if (text.ends_with('o') || text.ends_with('O')) ++i;
  }
  if (has_text && i < words.size()) {
    return {Unwrapped{.as = Unwrapped::As::kText,
                      .words = {words[i]},
                      .arguments = Copy(words.subspan(i + 1))}};
  }
  const bool reads_input = i >= words.size() || words[i].text == "-" ||
                           words[i].text == "/dev/stdin";
  const bool is_question = words.size() == 2 && (words[1].text == "--version" ||
                                                 words[1].text == "--help");
  if (!has_text && reads_input && !is_question) {
    return {Unwrapped{.as = Unwrapped::As::kInput}};
  }
  return {};
}

}  // namespace

bool IsShell(std::string_view name) {
  constexpr auto kShells = std::to_array<std::string_view>(
      {"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish",
       "hush", "yash", "csh", "tcsh", "iex"});
  return std::ranges::find(kShells, name) != kShells.end();
}

bool OnlyParses(const std::vector<Word>& words) {
  for (const Word& word : WordSpan(words).subspan(1)) {
    const std::string_view text = word.text;
    if (text.size() < 2 || !text.starts_with('-') || text == "--") return false;
    if (!text.starts_with("--") && text.contains('n')) return true;
  }
  return false;
}

Word Joined(const std::vector<Word>& words) {
  Word joined;
  for (const Word& word : words) {
    if (&word != &words.front()) joined.text += ' ';
    if (joined.known && !word.known) {
      joined.known = false;
      joined.known_prefix = joined.text.size() + word.known_prefix;
    }
    joined.text += word.text;
  }
  if (joined.known) joined.known_prefix = joined.text.size();
  return joined;
}

std::vector<Unwrapped> Unwrap(const std::vector<Word>& all) {
  if (all.empty()) return {};
  const WordSpan words = all;
  std::string_view name = BaseName(words[0].text);
  if (name.ends_with(".exe")) name.remove_suffix(4);
  if (IsShell(name)) return OfShell(words);
  if (name == "xargs" || name == "gxargs") return OfXargs(words);
  if (name == "parallel") return OfParallel(words);
  if (name == "find" || name == "gfind") return OfFind(words);
  if (name == "fd" || name == "fdfind") return OfFd(words);
  if (name == "flock") return OfFlock(words);
  constexpr auto kSsh = std::to_array<std::string_view>(
      {"ssh", "autossh", "rsh", "plink", "dbclient", "remsh"});
  if (std::ranges::find(kSsh, name) != kSsh.end()) return OfSsh(words);
  if (name == "capsh") {
    // Behind "--", the arguments of bash.
    WordSpan rest = words;
    while (!rest.empty() && rest[0].text != "--" && rest[0].text != "==") {
      rest = rest.subspan(1);
    }
    if (rest.empty()) return {};
    std::vector<Word> bash = Copy(rest);
    bash[0] = policy::KnownWord("bash");
    return {Unwrapped{.words = std::move(bash)}};
  }
  if (name == "newgrp") return {Unwrapped{.as = Unwrapped::As::kInput}};
  if (name == "su" || name == "script" || name == "runuser" || name == "sg") {
    return OfCommandOption(words, name);
  }
  if (name == "watch" || name == "entr") {
    const WordSpan options = words.subspan(1);
    const WordSpan rest = BehindOptions(options, "n", " interval ");
    if (rest.empty()) return {};
    const bool is_text = name == "watch" || (options[0].text.starts_with('-') &&
                                             options[0].text.contains('s'));
    return {Unwrapped{
        .as = is_text ? Unwrapped::As::kText : Unwrapped::As::kArguments,
        .words = Copy(rest)}};
  }
  if (name == "bwrap") return OfBwrap(words);
  // The loader of programs.
  if (name.starts_with("ld-linux") || name.starts_with("ld-musl") ||
      name == "ld.so") {
    return OfWrapper(kLoader, words);
  }
  if (auto inner = UnwrapTool(all); !inner.empty()) return inner;
  for (const Wrapper& wrapper : kWrappers) {
    if (wrapper.name == name) return OfWrapper(wrapper, words);
  }
  return {};
}

}  // namespace txfs::cli
