#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "cli/plain/plain_use.h"

namespace txfs::cli {

// Programs, and those of their options that run nothing, and write to nothing
// but the operands. What is not here is not known. An option whose value may be
// left out is a flag: then the next word is looked at by itself.

struct PlainOptions {
  std::string_view flags;     ///< letters; '#': digits
  std::string_view values;    ///< letters that take the next word
  std::string_view attached;  ///< letters with a value that is no other word
  std::string_view long_flags;
  std::string_view long_values;
  bool any = false;  ///< all of its options are harmless
};

struct PlainProgram {
  enum class Kind : uint8_t {
    kReads,     ///< its operands are files
    kSays,      ///< its operands are no files
    kSearches,  ///< its first operand is a pattern
    kScripts,   ///< its first operand is a program
    kEnters,
    kWrapper,
    kChanges,  ///< its operands are files that it changes
  };
  std::string_view names;
  Kind kind = Kind::kReads;
  PlainOptions options;
  PlainUse::How how = PlainUse::How::kDirectory;
  size_t most = SIZE_MAX;  ///< operands
};

inline constexpr PlainOptions kAnyOption{.any = true};

inline constexpr auto kPrograms = std::to_array<PlainProgram>({
    {.names = "cat head tail cut nl stat df realpath readlink od cmp comm "
              "paste join fold fmt expand unexpand rev tac column look",
     .options = kAnyOption},
    // What a link below leads to is not listed.
    {.names = "ls",
     .options = {.flags = "aAbBcCdfFgGhiklmnNoOpqQrRsStuUvxX1@",
                 .values = "ITw",
                 .long_flags = "all almost-all human-readable recursive "
                               "reverse size inode directory classify "
                               "file-type group-directories-first full-time "
                               "no-group numeric-uid-gid color",
                 .long_values = "sort time time-style block-size ignore hide"}},
    // Files that lists in other files name are not read.
    {.names = "wc",
     .options = {.flags = "clmwL",
                 .long_flags = "bytes chars lines words max-line-length"}},
    {.names = "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum "
              "cksum",
     .options = {.flags = "btz", .long_flags = "binary text tag zero"}},
    {.names = "du",
     .options = {.flags = "abchkmsSx0",
                 .values = "d",
                 .long_flags = "all apparent-size bytes total human-readable "
                               "summarize one-file-system",
                 .long_values = "max-depth exclude"}},
    {.names = "pwd echo basename dirname sleep whoami uname nproc id which "
              "whereis type free uptime lscpu lsblk true false : expr seq "
              "tr cal locale",
     .kind = PlainProgram::Kind::kSays,
     .options = kAnyOption},
    {.names = "printf exit", .kind = PlainProgram::Kind::kSays},
    {.names = "command",
     .kind = PlainProgram::Kind::kSays,
     .options = {.flags = "vV"}},
    {.names = "hostname", .kind = PlainProgram::Kind::kSays, .most = 0},
    {.names = "ps",
     .kind = PlainProgram::Kind::kSays,
     .options = {.flags = "efAF", .values = "p"},
     .most = 1},
    {.names = "date",
     .kind = PlainProgram::Kind::kSays,
     .options = {.flags = "uR",
                 .values = "d",
                 .attached = "I",
                 .long_flags = "utc universal iso-8601 rfc-3339",
                 .long_values = "date"},
     .most = 1},
    {.names = "cd", .kind = PlainProgram::Kind::kEnters, .most = 1},
    {.names = "grep",
     .kind = PlainProgram::Kind::kSearches,
     .options =
         {.flags = "EFGPivwxcLlqsohHnrabzTUyI#",
          .values = "ABCmed",
          .long_flags =
              "extended-regexp fixed-strings basic-regexp perl-regexp "
              "ignore-case no-ignore-case invert-match word-regexp line-regexp "
              "count files-with-matches files-without-match quiet silent "
              "no-messages only-matching with-filename no-filename line-number "
              "recursive text null null-data initial-tab byte-offset color "
              "colour",
          .long_values = "after-context before-context context max-count "
                         "regexp include exclude exclude-dir binary-files "
                         "label"}},
    {.names = "rg",
     .kind = PlainProgram::Kind::kSearches,
     .options =
         {.flags = "nNilcwvFosSuUHIpqxPa0.",
          .values = "egtTABCmMdjr",
          .long_flags =
              "files-with-matches files-without-match hidden no-ignore "
              "no-ignore-vcs count count-matches line-number no-line-number "
              "heading no-heading ignore-case smart-case case-sensitive "
              "fixed-strings word-regexp line-regexp multiline "
              "multiline-dotall pcre2 only-matching json stats trim vimgrep "
              "column no-filename with-filename invert-match text quiet "
              "no-messages null unrestricted no-config files",
          .long_values =
              "glob iglob type type-not max-count max-depth context "
              "after-context before-context regexp color colors sort sortr "
              "replace max-columns threads max-filesize"}},
    {.names = "fd fdfind",
     .kind = PlainProgram::Kind::kSays,
     .options = {.flags = "HIsgFapiuq0#",
                 .values = "tedEcSj",
                 .long_flags = "hidden no-ignore glob fixed-strings full-path "
                               "absolute-path ignore-case case-sensitive "
                               "print0 unrestricted",
                 .long_values = "type extension max-depth min-depth "
                                "exact-depth exclude color size "
                                "changed-within changed-before max-results"},
     .most = 1},
    {.names = "sort",
     .options = {.flags = "bdfghiMnRrVcCmsuz",
                 .values = "kt",
                 .long_flags =
                     "reverse unique numeric-sort ignore-case version-sort "
                     "human-numeric-sort general-numeric-sort stable check "
                     "zero-terminated",
                 .long_values = "key field-separator"}},
    {.names = "uniq",
     .options = {.flags = "cdDuiz",
                 .values = "fsw",
                 .long_flags = "count repeated unique ignore-case"},
     .most = 1},
    {.names = "diff",
     .options = {.flags = "uqNbBwaistyEZp#",
                 .values = "UCIxW",
                 .long_flags = "unified brief ignore-all-space "
                               "ignore-space-change ignore-blank-lines "
                               "new-file side-by-side color text "
                               "report-identical-files",
                 .long_values = "exclude label"},
     .how = PlainUse::How::kFile},
    {.names = "tree",
     .options = {.flags = "adfshDigCnFpu",
                 .values = "LIP",
                 .long_flags = "noreport dirsfirst gitignore prune du"}},
    {.names = "file",
     .options = {.flags = "bihkINr0",
                 .long_flags = "brief mime mime-type mime-encoding"}},
    {.names = "xxd", .options = {.flags = "pub", .values = "lsgc"}, .most = 1},
    {.names = "sed",
     .kind = PlainProgram::Kind::kScripts,
     .options = {.flags = "nErsz",
                 .values = "e",
                 .long_flags = "quiet silent regexp-extended",
                 .long_values = "expression"}},
    {.names = "awk gawk mawk",
     .kind = PlainProgram::Kind::kScripts,
     .options = {.values = "Fv"}},
    {.names = "jq",
     .kind = PlainProgram::Kind::kScripts,
     .options = {.flags = "rcnsSRjaMC",
                 .long_flags = "raw-output compact-output null-input "
                               "exit-status slurp sort-keys raw-input "
                               "join-output tab",
                 .long_values = "indent"}},
    {.names = "nice",
     .kind = PlainProgram::Kind::kWrapper,
     .options = {.flags = "#", .values = "n"}},
    {.names = "timeout",
     .kind = PlainProgram::Kind::kWrapper,
     .options = {.flags = "v",
                 .values = "ks",
                 .long_flags = "preserve-status foreground verbose",
                 .long_values = "kill-after signal"}},
    {.names = "rm",
     .kind = PlainProgram::Kind::kChanges,
     .options = {.flags = "rRfvid", .long_flags = "recursive force verbose"},
     .how = PlainUse::How::kRemove},
    {.names = "rmdir unlink",
     .kind = PlainProgram::Kind::kChanges,
     .options = {.flags = "v", .long_flags = "verbose"},
     .how = PlainUse::How::kRemove},
    {.names = "mkdir",
     .kind = PlainProgram::Kind::kChanges,
     .options = {.flags = "pv", .long_flags = "parents verbose"},
     .how = PlainUse::How::kMake},
    {.names = "touch",
     .kind = PlainProgram::Kind::kChanges,
     .options = {.flags = "acm", .values = "dt", .long_values = "date"},
     .how = PlainUse::How::kWrite},
    {.names = "truncate",
     .kind = PlainProgram::Kind::kChanges,
     .options = {.flags = "c", .values = "s", .long_values = "size"},
     .how = PlainUse::How::kWrite},
    {.names = "tee",
     .kind = PlainProgram::Kind::kChanges,
     .options = {.flags = "ai", .long_flags = "append"},
     .how = PlainUse::How::kWrite},
    {.names = ">",
     .kind = PlainProgram::Kind::kChanges,
     .how = PlainUse::How::kWrite,
     .most = 1},
    {.names = "chmod",
     .kind = PlainProgram::Kind::kChanges,
     .options = {.flags = "vcf", .long_flags = "verbose"},
     .how = PlainUse::How::kMode},
    {.names = "cp",
     .kind = PlainProgram::Kind::kChanges,
     .options = {.flags = "rRapvfniud",
                 .long_flags = "recursive archive verbose force no-clobber "
                               "update"},
     .how = PlainUse::How::kCopy},
    {.names = "mv",
     .kind = PlainProgram::Kind::kChanges,
     .options = {.flags = "vfniu", .long_flags = "verbose force no-clobber"},
     .how = PlainUse::How::kMove},
});

/// A subcommand of git. Those that bring files from a commit, the index or the
/// stash are not here: no rule has been asked about these files.
struct PlainGit {
  std::string_view subcommands;
  PlainOptions options;
  bool changes = false;
  size_t most = SIZE_MAX;  ///< operands
};

inline constexpr std::string_view kGitFlags =
    "--no-pager -P --no-optional-locks --literal-pathspecs";

inline constexpr auto kGitCommands = std::to_array<PlainGit>({
    {.subcommands =
         "status log diff show ls-files ls-tree rev-parse rev-list "
         "describe shortlog cat-file show-ref for-each-ref name-rev merge-base "
         "whatchanged check-ignore count-objects version",
     .options =
         {.flags = "pusbwnzqcdotrlaivEFPhmekg#",
          .attached = "SGUMCBD",
          .long_flags =
              "oneline stat name-only name-status graph all decorate "
              "cached staged no-color color follow since until after "
              "before author committer grep pretty format abbrev abbrev-commit "
              "patch no-patch numstat shortstat dirstat summary check "
              "word-diff "
              "color-words ignore-space-change ignore-all-space reverse merges "
              "no-merges first-parent max-count skip date diff-filter unified "
              "no-ext-diff no-textconv raw find-renames find-copies short long "
              "porcelain branch branches tags remotes no-decorate "
              "untracked-files ignored show-toplevel abbrev-ref verify "
              "is-inside-work-tree show-prefix left-right topo-order "
              "date-order "
              "others modified deleted exclude-standard full-name "
              "error-unmatch "
              "count sort contains points-at merge-base minimal patience "
              "histogram function-context exit-code quiet always dirty match "
              "no-renames relative compact-summary heads "
              "is-ancestor symbolic-full-name source full-index name-rev"}},
    {.subcommands = "grep",
     .options = {.flags = "nilcwvEFPhHoqGL#",
                 .values = "eABC",
                 .long_flags =
                     "line-number ignore-case files-with-matches "
                     "files-without-match count word-regexp invert-match "
                     "extended-regexp fixed-strings perl-regexp cached "
                     "untracked name-only no-color color heading break "
                     "show-function column"}},
    {.subcommands = "blame",
     .options = {.flags = "lswetfnb",
                 .attached = "LMC",
                 .long_flags = "date since porcelain line-porcelain abbrev"}},
    {.subcommands = "branch tag",
     .options = {.flags = "arvl",
                 .long_flags = "list show-current all remotes sort contains "
                               "merged no-merged format"},
     .most = 0},
    {.subcommands = "add",
     .options = {.flags = "AuvnN",
                 .long_flags = "all update verbose intent-to-add dry-run"},
     .changes = true},
    {.subcommands = "commit",
     .options = {.flags = "aqvsn",
                 .values = "m",
                 .long_flags = "all quiet verbose signoff no-verify amend "
                               "no-edit allow-empty allow-empty-message author "
                               "date",
                 .long_values = "message"},
     .changes = true},
});

inline constexpr std::string_view kFindFlags =
    "! ( ) -not -o -or -a -and -print -print0 -prune -empty -ls -depth -xdev "
    "-mount -true -false -readable -writable -executable -nouser -nogroup "
    "-daystart";
inline constexpr std::string_view kFindValues =
    "-name -iname -type -maxdepth -mindepth -path -ipath -wholename -newer "
    "-size -mtime -mmin -atime -amin -ctime -cmin -regex -iregex -regextype "
    "-perm -user -group -links -printf -newermt";
inline constexpr std::string_view kTestOperators =
    "-e -f -d -r -w -x -s -L -h -n -z -eq -ne -lt -gt -le -ge -nt -ot -ef -a "
    "-o -p -S -b -c";
inline constexpr std::string_view kTestNumberOperators =
    "-eq -ne -lt -gt -le -ge";
/// What shells do themselves.
inline constexpr std::string_view kBuiltins =
    "> : [ cd command echo exit false printf pwd test true type";
inline constexpr std::string_view kHarmlessVariables =
    "LANG TZ NO_COLOR CLICOLOR FORCE_COLOR CI";
inline constexpr std::string_view kHarmlessAssignments =
    "GIT_PAGER=cat PAGER=cat GIT_OPTIONAL_LOCKS=0 GIT_TERMINAL_PROMPT=0 "
    "TERM=dumb";

}  // namespace txfs::cli
