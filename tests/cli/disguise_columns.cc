#include "tests/cli/disguise_columns.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/output/text.h"

namespace txfs::cli {
namespace {

using Made = std::optional<std::string>;
using Strings = std::vector<std::string>;

std::string JoinQuoted(const Strings& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : " ") + QuoteShell(word);
  }
  return text;
}

std::string JoinPlain(const Strings& words, std::string_view between) {
  std::string text;
  for (const std::string& word : words) {
    if (&word != &words.front()) text += between;
    text += word;
  }
  return text;
}

bool IsOption(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && word != "--";
}

/// -abc, of letters only.
bool IsCluster(std::string_view word) {
  return IsOption(word) && std::ranges::all_of(word.substr(1), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
         });
}

/// Programs that read options as getopt_long(3) of GNU does. None of the
/// letters in the examples of their rules takes a value, except for those of
/// curl.
bool IsGnu(std::string_view program) {
  constexpr auto kPrograms = std::to_array<std::string_view>(
      {"rm", "unlink", "shred", "mv", "cp", "chmod", "wipefs", "rsync",
       "dropdb", "modprobe", "crontab"});
  return std::ranges::find(kPrograms, program) != kPrograms.end();
}

bool IsGit(const DisguiseRow& row) {
  return row.words[0] == "git" && row.words.size() > 2;
}

Made OfBusybox(const DisguiseRow& row) {
  constexpr auto kApplets = std::to_array<std::string_view>(
      {"rm", "mv", "cp", "dd", "chmod", "find", "sed", "tar", "killall5",
       "kill", "mount", "nc", "crontab", "sysctl", "reboot", "modprobe",
       "iptables"});
  if (std::ranges::find(kApplets, row.words[0]) == kApplets.end()) return {};
  return "busybox " + JoinQuoted(row.words);
}

Made AtPath(const DisguiseRow& row) {
  return "/usr/bin/" + JoinQuoted(row.words);
}

/// find(1) replaces "{}", and nothing else here.
Made OfFind(const DisguiseRow& row) {
  if (row.text.contains("{}")) return {};
  return "find . -maxdepth 0 -exec " + JoinQuoted(row.words) + " \\;";
}

Made InHex(const DisguiseRow& row) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "$'";
  for (const char c : row.words[0]) {
    const auto byte = static_cast<unsigned char>(c);
    text += "\\x";
    text += kDigits[byte / 16];
    text += kDigits[byte % 16];
  }
  return text + "' " +
         JoinQuoted(Strings(row.words.begin() + 1, row.words.end()));
}

/// Puts `mark` behind the first letter, and `end` behind the second.
Made Marked(const DisguiseRow& row, std::string_view mark,
            std::string_view end) {
  std::string program = row.words[0];
  program.insert(std::min<size_t>(program.size(), 2), end);
  program.insert(1, mark);
  return program + " " +
         JoinQuoted(Strings(row.words.begin() + 1, row.words.end()));
}

Made AsPattern(const DisguiseRow& row) {
  Strings words = row.words;
  const std::string last{'[', words[0].back(), ']'};
  words[0].pop_back();
  return "/usr/bin/" + words[0] + last + " " +
         JoinQuoted(Strings(words.begin() + 1, words.end()));
}

Made JoinedInPython(const DisguiseRow& row) {
  return "python3 -c \"import os; os.system('" + row.text.substr(0, 1) +
         "' + '" + row.text.substr(1) + "')\"";
}

Made WithoutBlanks(const DisguiseRow& row) {
  return JoinPlain(row.words, "${IFS}");
}

Made InBraces(const DisguiseRow& row) {
  if (row.words.size() < 2 || row.text.contains(',')) return {};
  return "{" + JoinPlain(row.words, ",") + "}";
}

Made SplitByComma(const DisguiseRow& row) {
  if (row.text.contains(',')) return {};
  return "IFS=,; X=" + JoinPlain(row.words, ",") + "; $X";
}

Made SplitFlags(const DisguiseRow& row) {
  if (!IsGnu(row.words[0]) && !IsGit(row)) return {};
  Strings words;
  for (const std::string& word : row.words) {
    if (!IsCluster(word)) {
      words.push_back(word);
      continue;
    }
    for (const char c : word.substr(1)) words.push_back({'-', c});
  }
  if (words.size() == row.words.size()) return {};
  return JoinQuoted(words);
}

/// Options that change nothing of what is at stake.
Made MoreFlags(const DisguiseRow& row) {
  if (!IsGnu(row.words[0]) || row.words[0] == "crontab") return {};
  Strings words = row.words;
  const auto cluster = std::ranges::find_if(words, IsCluster);
  if (cluster == words.end()) return {};
  cluster->insert(1, "v");
  return JoinQuoted(words);
}

Made BehindDashes(const DisguiseRow& row) {
  const Strings& words = row.words;
  if (!IsGnu(words[0]) || words.size() < 2 || IsOption(words.back())) return {};
  if (std::ranges::find(words, "--") != words.end()) return {};
  const Strings front(words.begin(), words.end() - 1);
  return JoinQuoted(front) + " -- " + QuoteShell(words.back());
}

Made OptionsLast(const DisguiseRow& row) {
  if (!IsGnu(row.words[0]) && !IsGit(row)) return {};
  if (std::ranges::find(row.words, "--") != row.words.end()) return {};
  Strings words = row.words;
  std::stable_partition(words.begin() + 1, words.end(),
                        [](const auto& word) { return !IsOption(word); });
  if (words == row.words) return {};
  return JoinQuoted(words);
}

/// The patterns of a rule that stand for one thing.
std::vector<Strings> GroupsOf(const policy::ExecRule& rule) {
  std::vector<Strings> groups;
  const auto add = [&](const std::vector<policy::TextPattern>& patterns) {
    Strings& group = groups.emplace_back();
    for (const auto& pattern : patterns) group.push_back(pattern.text());
  };
  add(rule.when.any_arg);
  for (const auto& patterns : rule.when.all_args) add(patterns);
  return groups;
}

char LowerOf(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// The long option for -`letter` in a pattern of the rule; "": there is none.
std::string LongOf(const policy::ExecRule& rule, char letter) {
  const std::string option{'-', letter};
  for (const Strings& group : GroupsOf(rule)) {
    if (std::ranges::find(group, option) == group.end()) continue;
    for (const std::string& one : group) {
      const bool is_long = one.size() > 3 && one.starts_with("--") &&
                           one.find_first_of("*?[=") == std::string::npos;
      if (is_long && one[2] == LowerOf(letter)) return one;
    }
  }
  return "";
}

Made OtherSpelling(const DisguiseRow& row) {
  Strings words = row.words;
  for (size_t i = 1; i < words.size(); ++i) {
    std::string& word = words[i];
    if (word.starts_with("--")) {
      if (word.size() < 4 || LongOf(*row.rule, word[2]) != word) continue;
      word = {'-', word[2]};
      return JoinQuoted(words);
    }
    if (!IsCluster(word)) continue;
    for (size_t at = 1; at < word.size(); ++at) {
      const std::string other = LongOf(*row.rule, word[at]);
      if (other.empty()) continue;
      word.erase(at, 1);
      if (word == "-") {
        word = other;
      } else {
        words.insert(words.begin() + static_cast<std::ptrdiff_t>(i), other);
      }
      return JoinQuoted(words);
    }
  }
  return {};
}

Made Abbreviated(const DisguiseRow& row) {
  if (!IsGnu(row.words[0]) && !IsGit(row)) return {};
  Strings words = row.words;
  for (std::string& word : words) {
    const size_t end = std::min(word.find('='), word.size());
    if (!word.starts_with("--") || end < 7) continue;
    word.erase(end - 1, 1);
    return JoinQuoted(words);
  }
  return {};
}

constexpr const char* kGnuOnly = "the program does not read options as GNU's";

std::vector<Disguise> MakeDisguises() {
  constexpr Needs kProgram = Needs::kProgram;
  constexpr Needs kPlain = Needs::kPlain;
  constexpr Needs kPlainText = Needs::kPlainText;
  constexpr Needs kName = Needs::kName;
  constexpr Needs kLine = Needs::kLine;
  return {
      {"sudo", "sudo %w", kProgram},
      {"sudo -u", "sudo -n -u root -- %w", kProgram},
      {"doas", "doas -u root %w", kProgram},
      {"gosu", "gosu root %w", kProgram},
      {"env", "env -i A=1 %w", kProgram},
      {"env -S", "env -S %q", kProgram},
      {"nice", "nice -n 5 %w", kProgram},
      {"timeout", "timeout -k 5 -s KILL 10 %w", kProgram},
      {"nohup", "nohup %w &", kProgram},
      {"setsid", "setsid -f %w", kProgram},
      {"stdbuf", "stdbuf -oL %w", kProgram},
      {"chroot", "chroot / %w", kProgram},
      {"unshare", "unshare -rm %w", kProgram},
      {"strace", "strace -f -o /tmp/t %w", kProgram},
      {"ssh-agent", "ssh-agent %w", kProgram},
      {"numactl", "numactl -N 0 %w", kProgram},
      {"cross-env", "cross-env A=1 %w", kProgram},
      {"doppler", "doppler run --config x -- %w", kProgram},
      {"mise", "mise exec node@20 -- %w", kProgram},
      {"conda", "conda run -n x %w", kProgram},
      {"bundle exec", "bundle exec %w", kProgram},
      {"flock", "flock /tmp/lock %w", kProgram},
      {"flock -c", "flock /tmp/lock -c %q"},
      {"time", "time %s"},
      {"command", "command %w", kProgram},
      {"exec", "exec %w", kProgram},
      {"three wrappers", "sudo env A=1 nice %w", kProgram},
      {"busybox", "", Needs::kOwn, OfBusybox, "busybox has no such applet"},
      {"busybox sh", "busybox sh -c %q"},
      {"xargs -I", "echo x | xargs -I% %w", kProgram},
      {"xargs", "echo %l | xargs %f", kPlain},
      {"xargs sh", "echo %q | xargs -d '\\n' -I{} sh -c '{}'", kLine},
      {"find -exec", "", Needs::kOwn, OfFind, "find replaces {} in it"},
      {"parallel", "parallel ::: ls %q"},
      {"parallel, piped", "echo %q | parallel", kLine},
      {"watch", "watch -n 1 %q"},
      {"hyperfine", "hyperfine -w 1 ls %q"},
      {"ssh", "ssh host %q"},
      {"docker exec", "docker exec c sh -c %q"},
      {"su -c", "su - root -c %q"},
      {"su, here-string", "su - x <<<%q"},
      {"script", "script -qc %q /dev/null"},
      {"tmux", "tmux new-session -d -s x %q"},
      {"screen", "screen -dmS x sh -c %q"},
      {"tmux send-keys", "tmux send-keys -t x %q Enter"},
      {"npx -c", "npx -c %q"},
      {"nix-shell", "nix-shell -p x --run %q"},
      {"git rebase -x", "git rebase -x %q main", kLine},
      {"git submodule", "git submodule foreach --recursive %q"},
      {"git bisect", "git bisect run %w", kProgram},
      {"git alias", "git config alias.x '!%s'; git x", kPlainText},
      {"make", "make -f - <<'END'\nall:\n\t@%s\nEND", kPlainText},
      {"python", "python3 -c \"import os; os.system(r'''%s''')\"", kPlainText},
      {"perl", "perl -e 'system(qw(%s))'", kPlain},
      {"node", "node -e \"require('child_process').execSync('%s')\"", kPlain},
      {"ruby", "ruby -e 'system(\"%s\")'", kPlain},
      {"awk", "awk 'BEGIN { \"%s\" | getline }'", kPlainText},
      {"php", "php -r 'exec(\"%s\");'", kPlainText},
      {"tclsh", "echo 'exec %s' | tclsh", kPlain},
      {"sed", "sed '1e %s' x", kPlainText},
      {"gdb", "gdb -batch -ex 'shell %s'", kPlainText},
      {"expect", "expect -c 'spawn %s'", kPlain},
      {"sh -c", "sh -c %q"},
      {"bash -c, options", "bash -o pipefail -euxc %q"},
      {"sh -c, arguments", "bash -c '\"$@\"' _ %w", kProgram},
      {"sh -c, its name", "sh -c 'eval \"$0\"' %q"},
      {"sh of a default", "${X:-sh} -c %q"},
      {"eval", "eval %q"},
      {"eval of a variable", "X=%q; eval \"$X\""},
      {"trap", "trap %q EXIT"},
      {"coproc", "coproc sh -c %q"},
      {"coproc, named", "coproc A { %s\n}"},
      {"pipe to sh", "printf '%s\\n' %q | sh"},
      {"base64 to sh", "echo %b | base64 -d | sh"},
      {"base64, argument", "sh -c \"$(echo %b | base64 --decode)\""},
      {"rev to sh", "echo %r | rev | bash", kLine},
      {"here-document", "bash <<'END'\n%s\nEND"},
      {"here-string", "sh <<<%q"},
      {"descriptor", "exec 3<<<%q; sh <&3"},
      {"source descriptor", "exec 3<<<%q; . /dev/fd/3"},
      {"descriptor, in place", "sh 4<<<%q <&4"},
      {"source /dev/stdin", ". /dev/stdin <<<%q"},
      {"file that is run", "echo %q > /tmp/x; sh /tmp/x"},
      {"process substitution", "bash <(echo %q)"},
      {"tee >(sh)", "echo %q | tee >(sh) >/dev/null"},
      {"loop that reads", "while read -r x; do eval \"$x\"; done <<<%q", kLine},
      {"mapfile", "mapfile -t x <<<%q; eval \"${x[0]}\"", kLine},
      {"function", "f() { %s\n}; f"},
      {"function, arguments", "f() { \"$@\"; }; f %w", kProgram},
      {"alias", "alias z=%p; z%a", kName},
      {"alias of all", "alias z=%q; z"},
      {"subshell", "(%s\n)"},
      {"substitution", "echo \"$(%s\n)\""},
      {"index", "x[$(%s\n)]=1"},
      {"index, read", "ls ${x[$(%s\n)]}"},
      {"branch", "if test -e x; then %s\nfi"},
      {"loop", "for i in 1 2; do %s\ndone"},
      {"list", "cd src && true && { %s\n}"},
      {"redirection first", "</dev/null %w", kProgram},
      {"absolute path", "", kName, AtPath},
      {"quoted program", "\"%p\"%a", kName},
      {"quoted letter", "", kName,
       [](const DisguiseRow& row) { return Marked(row, "'", "'"); }},
      {"empty quotes", "", kName,
       [](const DisguiseRow& row) { return Marked(row, "\"\"", ""); }},
      {"backslash", "\\%p%a", kName},
      {"broken line", "", kName,
       [](const DisguiseRow& row) { return Marked(row, "\\\n", ""); }},
      {"$'\\x..'", "", kName, InHex},
      {"variable, program", "P=%p; $P%a", kName},
      {"variable, default", "${X:-%p}%a", kName},
      {"variable, last word", "A=%l; %f \"$A\"", kPlain},
      {"variable, all", "X=%q; $X", kPlain},
      {"substring", "P=x%p; ${P:1}%a", kName},
      {"replacement", "P=x%p; ${P/x/}%a", kName},
      {"lower case", "P=%p; ${P,,}%a", kName},
      {"pattern", "", kName, AsPattern},
      {"joined in python", "", kPlain, JoinedInPython},
      {"array", "a=(%w); \"${a[@]}\"", kProgram},
      {"set --", "set -- %w; \"$@\"", kProgram},
      {"$(echo)", "$(echo %p)%a", kName},
      {"$IFS", "", kPlain, WithoutBlanks},
      {"IFS=,", "", kPlain, SplitByComma, "it has a comma"},
      {"braces", "", kPlain, InBraces, "it is one word, or has a comma"},
      {"--", "", Needs::kOwn, BehindDashes, kGnuOnly},
      {"options last", "", Needs::kOwn, OptionsLast, kGnuOnly},
      {"flags split", "", Needs::kOwn, SplitFlags, kGnuOnly},
      {"flags added", "", Needs::kOwn, MoreFlags, kGnuOnly},
      {"long for short", "", Needs::kOwn, OtherSpelling,
       "the rule does not name both"},
      {"abbreviation", "", Needs::kOwn, Abbreviated, kGnuOnly},
  };
}

bool Meets(Needs needs, const DisguiseRow& row) {
  if (needs == Needs::kText) return true;
  if (needs == Needs::kLine) return !row.text.contains('\n');
  if (row.words.empty()) return false;
  if (needs == Needs::kName) return !row.words[0].contains('/');
  if (needs != Needs::kPlain && needs != Needs::kPlainText) return true;
  return row.words.size() > 1 &&
         row.text.find_first_of("\\'\"{}*?[]$`|&;<>()!#%~") ==
             std::string::npos;
}

}  // namespace

const std::vector<Disguise>& Disguises() {
  static const std::vector<Disguise> kDisguises = MakeDisguises();
  return kDisguises;
}

std::string ReasonOf(const Disguise& disguise) {
  constexpr auto kReasons = std::to_array<std::string_view>(
      {"", "", "it is no single program with arguments",
       "it is no single program that is found by its name",
       "it is no single program with plain arguments",
       "it is no single program with plain arguments",
       "it is no single program with arguments"});
  std::string reason(kReasons[static_cast<size_t>(disguise.needs)]);
  if (!disguise.why.empty()) reason += ", or " + disguise.why;
  return reason;
}

bool RunsText(const Disguise& disguise) {
  return disguise.needs == Needs::kText || disguise.needs == Needs::kLine ||
         disguise.needs == Needs::kPlainText;
}

std::optional<std::string> Disguised(const Disguise& disguise,
                                     const DisguiseRow& row) {
  if (!Meets(disguise.needs, row)) return std::nullopt;
  if (disguise.make != nullptr) return disguise.make(row);
  return FilledIn(disguise, row);
}

std::string FilledIn(const Disguise& disguise, const DisguiseRow& row) {
  const Strings& words = row.words;
  std::string text;
  for (std::string_view rest = disguise.form; !rest.empty();) {
    const char kind = rest[0] == '%' && rest.size() > 1 ? rest[1] : '\0';
    std::string inserted;
    if (kind == 's' && !rest.starts_with("%s\\n")) inserted = row.text;
    if (kind == 'q') inserted = QuoteShell(row.text);
    if (kind == 'b') inserted = EncodeBase64(row.text);
    if (kind == 'w') inserted = JoinQuoted(words);
    if (kind == 'p') inserted = words[0];
    if (kind == 'l') inserted = words.back();
    if (kind == 'f') inserted = JoinQuoted({words.begin(), words.end() - 1});
    if (kind == 'r') {
      inserted = QuoteShell(std::string(row.text.rbegin(), row.text.rend()));
    }
    const bool is_arguments = kind == 'a';
    if (is_arguments && words.size() > 1) {
      inserted = " " + JoinQuoted({words.begin() + 1, words.end()});
    }
    const bool is_field = is_arguments || !inserted.empty();
    text += is_field ? inserted : std::string(1, rest[0]);
    rest.remove_prefix(is_field ? 2 : 1);
  }
  return text;
}

}  // namespace txfs::cli
