#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "policy/ascii.h"
#include "policy/content.h"

namespace txfs::policy {
namespace {

/// Reads the format as git's config.c does. What it takes for a setting must
/// be all that git takes for one. git goes on after some errors, so it reads
/// on after each.
class GitSettingReader {
 public:
  explicit GitSettingReader(std::string_view text) : text_(text) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  }

  std::vector<GitSetting> Run() {
    while (at_ < text_.size()) {
      const size_t start = at_;
      if (ReadOne()) continue;
      const size_t end = std::min(text_.find('\n', start), text_.size());
      settings_.push_back(
          {.section = "",
           .subsection = "",
           .name = "",
           .value = std::string(text_.substr(start, end - start))});
      at_ = end + 1;
    }
    return std::move(settings_);
  }

 private:
  static bool IsKeyChar(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '-';
  }
  static bool IsSpace(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
  }

  /// The next character; a newline at the end, and for "\r\n".
  char Next() {
    if (at_ >= text_.size()) {
      at_ = text_.size() + 1;
      return '\n';
    }
    const char c = text_[at_++];
    if (c == '\r' && at_ < text_.size() && text_[at_] == '\n') {
      ++at_;
      return '\n';
    }
    return c;
  }
  [[nodiscard]] bool IsAtEnd() const { return at_ > text_.size(); }

  /// One comment, section or setting; false: git rejects it.
  bool ReadOne() {
    const char c = Next();
    if (IsSpace(c)) return true;
    if (c == '#' || c == ';') {
      while (Next() != '\n') {
      }
      return true;
    }
    if (c == '[') return ReadSection();
    const bool is_letter = IsKeyChar(c) && c != '-' && !(c >= '0' && c <= '9');
    return is_letter && !section_.empty() && ReadSetting(c);
  }

  bool ReadSection() {
    section_.clear();
    subsection_.clear();
    for (;;) {
      const char c = Next();
      if (IsAtEnd()) return false;
      if (c == ']') return !section_.empty();
      if (IsSpace(c)) return !section_.empty() && ReadSubsection(c);
      if (!IsKeyChar(c) && c != '.') return false;
      section_ += ToLower(c);
    }
  }

  bool ReadSubsection(char c) {
    do {
      if (c == '\n') return false;
      c = Next();
    } while (IsSpace(c));
    if (c != '"') return false;
    for (;;) {
      c = Next();
      if (c == '\n') return false;
      if (c == '"') break;
      if (c == '\\') {
        c = Next();
        if (c == '\n') return false;
      }
      subsection_ += c;
    }
    return Next() == ']';
  }

  bool ReadSetting(char first) {
    std::string name(1, ToLower(first));
    char c = Next();
    while (IsKeyChar(c)) {
      name += ToLower(c);
      c = Next();
    }
    while (c == ' ' || c == '\t') c = Next();
    std::string value;
    if (c != '\n') {
      if (c != '=') return false;
      const auto read = ReadValue();
      if (!read) return false;
      value = *read;
    }
    settings_.push_back({section_, subsection_, std::move(name), value});
    SplitOldSection(settings_.back());
    return true;
  }

  /// "[section.sub]" is the old form of "[section "sub"]".
  static void SplitOldSection(GitSetting& setting) {
    const size_t dot = setting.section.find('.');
    if (dot == std::string::npos) return;
    std::string sub = setting.section.substr(dot + 1);
    if (!setting.subsection.empty()) sub += "." + setting.subsection;
    setting.section.resize(dot);
    setting.subsection = std::move(sub);
  }

  std::optional<std::string> ReadValue() {
    std::string value;
    size_t spaces = 0;
    bool quoted = false;
    bool comment = false;
    for (;;) {
      char c = Next();
      if (c == '\n') {
        if (quoted) return std::nullopt;
        return value;
      }
      if (comment) continue;
      if (IsSpace(c) && !quoted) {
        if (!value.empty()) ++spaces;
        continue;
      }
      if (!quoted && (c == ';' || c == '#')) {
        comment = true;
        continue;
      }
      value.append(spaces, ' ');
      spaces = 0;
      if (c == '"') {
        quoted = !quoted;
        continue;
      }
      if (c == '\\') {
        c = Next();
        if (c == '\n') {
          if (IsAtEnd()) return std::nullopt;
          continue;
        }
        if (c == 't')
          c = '\t';
        else if (c == 'b')
          c = '\b';
        else if (c == 'n')
          c = '\n';
        else if (c != '\\' && c != '"')
          return std::nullopt;
      }
      value += c;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string section_, subsection_;
  std::vector<GitSetting> settings_;
};

struct HarmlessSection {
  std::string_view section;
  bool has_subsection;
  /// Names after and before a space; "*": all.
  std::string_view names;
};

/// What git and its usual companions write themselves. A setting that is not
/// here is looked at by a person: git has more that run programs than anybody
/// remembers, and gets new ones.
constexpr std::array kHarmlessSections = std::to_array<HarmlessSection>({
    {"core", false,
     " repositoryformatversion filemode bare logallrefupdates ignorecase "
     "precomposeunicode protecthfs protectntfs symlinks autocrlf eol safecrlf "
     "whitespace abbrev compression loosecompression sparsecheckout "
     "sparsecheckoutcone quotepath excludesfile sharedrepository "
     "untrackedcache preloadindex trustctime checkstat commentchar "
     "bigfilethreshold deltabasecachelimit packedgitwindowsize "
     "packedgitlimit fsync fsyncmethod fsyncobjectfiles multipackindex "
     "commitgraph longpaths fscache usereplacerefs hidedotfiles "
     "splitindex createobject "},
    {"remote", true,
     " fetch push tagopt prune prunetags mirror skipdefaultupdate skipfetchall "
     "promisor partialclonefilter gh-resolved followremotehead "},
    {"branch", true,
     " merge rebase description vscode-merge-base github-pr-owner-number "
     "gh-merge-base "},
    {"branch", false, " autosetupmerge autosetuprebase sort "},
    {"user", false, " name email useconfigonly signingkey "},
    {"author", false, " name email "},
    {"committer", false, " name email "},
    {"submodule", true,
     " active branch ignore fetchrecursesubmodules shallow "},
    {"submodule", false,
     " active recurse fetchjobs propagatebranches alternatelocation "
     "alternateerrorstrategy "},
    {"pull", false, " rebase ff octopus twohead "},
    {"push", false,
     " default autosetupremote followtags recursesubmodules "
     "useforceifincludes negotiate "},
    {"fetch", false,
     " prune prunetags parallel writecommitgraph recursesubmodules all "
     "fsckobjects "},
    {"merge", false,
     " ff conflictstyle renames renamelimit stat log autostash "
     "directoryrenames "},
    {"rebase", false, " autosquash autostash updaterefs stat backend "},
    {"rerere", false, " * "},
    {"init", false, " defaultbranch "},
    {"commit", false, " gpgsign verbose status cleanup "},
    {"tag", false, " gpgsign sort "},
    {"log", false, " date decorate follow abbrevcommit "},
    {"status", false, " * "},
    {"color", false, " * "},
    {"color", true, " * "},
    {"column", false, " * "},
    {"advice", false, " * "},
    {"diff", false,
     " renames renamelimit algorithm colormoved colormovedws mnemonicprefix "
     "noprefix context submodule wserrorhighlight indentheuristic stat "
     "interhunkcontext suppressblankempty "},
    {"extensions", false,
     " objectformat refstorage worktreeconfig partialclone noop "
     "preciousobjects relativeworktrees compatobjectformat "},
    {"gc", false,
     " auto autodetach autopacklimit pruneexpire reflogexpire "
     "reflogexpireunreachable worktreepruneexpire aggressivedepth "
     "aggressivewindow packrefs bigpackthreshold cruftpacks "
     "writecommitgraph rerereresolved rerereunresolved "},
    {"index", false, " * "},
    {"pack", false, " * "},
    {"maintenance", false, " auto strategy autodetach "},
    {"maintenance", true, " * "},
    {"feature", false, " * "},
    {"transfer", false, " fsckobjects unpacklimit hiderefs "},
    {"receive", false,
     " denycurrentbranch denynonfastforwards denydeletes "
     "fsckobjects unpacklimit "},
    {"lfs", false, " repositoryformatversion "},
    {"grep", false, " linenumber patterntype extendedregexp column "},
    {"apply", false, " whitespace ignorewhitespace "},
    {"checkout", false, " defaultremote workers guess "},
    {"worktree", false, " guessremote userelativepaths "},
    {"clone", false, " defaultremotename rejectshallow "},
    {"stash", false, " showpatch showstat showincludeuntracked "},
    {"i18n", false, " commitencoding logoutputencoding "},
});

/// An address that git does not give to a program other than its own, and that
/// is no option. Colons in brackets are those of an address of IPv6.
bool IsPlainAddress(std::string_view address) {
  if (address.starts_with('-')) return false;
  const size_t colons = address.find("::");
  if (colons == std::string_view::npos) return true;
  const size_t bracket = address.find('[');
  const size_t scheme = address.find("://");
  return scheme < colons && scheme + 3 <= bracket && bracket < colons &&
         colons < address.find(']', bracket);
}

/// The values that `settings` have for one of `names` of the remote or branch.
std::vector<std::string_view> ValuesOf(
    const std::vector<GitSetting>& settings, std::string_view section,
    std::string_view subsection,
    std::initializer_list<std::string_view> names) {
  std::vector<std::string_view> values;
  for (const GitSetting& each : settings) {
    const bool is_one = each.section == section &&
                        each.subsection == subsection &&
                        std::ranges::find(names, each.name) != names.end();
    if (is_one) values.emplace_back(each.value);
  }
  return values;
}

/// Whether `value` is one of `known`, or nothing is.
bool IsKnown(std::string_view value,
             const std::vector<std::string_view>& known) {
  return known.empty() || std::ranges::find(known, value) != known.end();
}

bool IsAnyOf(std::string_view value,
             std::initializer_list<std::string_view> all) {
  return std::ranges::find(all, value) != all.end();
}

/// Of settings that are harmless with some values only; none: of others.
std::optional<bool> IsHarmlessValue(const GitSetting& setting,
                                    const std::vector<GitSetting>& before) {
  const std::string_view value = setting.value;
  const bool is_remote =
      setting.section == "remote" && !setting.subsection.empty();
  if (is_remote && IsAnyOf(setting.name, {"url", "pushurl"})) {
    // Another address for a remote that was there sends work elsewhere.
    return IsKnown(value, ValuesOf(before, "remote", setting.subsection,
                                   {"url", "pushurl"})) &&
           IsPlainAddress(value);
  }
  if (is_remote && IsAnyOf(setting.name, {"push", "mirror"})) {
    // What git pushes to a remote that was there, and what it removes.
    const bool was_there =
        !ValuesOf(before, "remote", setting.subsection, {"url"}).empty();
    const auto known =
        ValuesOf(before, "remote", setting.subsection, {setting.name});
    return !was_there || std::ranges::find(known, value) != known.end();
  }
  if (setting.section == "submodule" && !setting.subsection.empty()) {
    if (setting.name == "url") return IsPlainAddress(value);
    if (setting.name == "update") {
      return IsAnyOf(value, {"checkout", "rebase", "merge", "none"});
    }
  }
  const bool is_branch =
      setting.section == "branch" && !setting.subsection.empty();
  if (is_branch && IsAnyOf(setting.name, {"remote", "pushremote"})) {
    // It may be an address instead of a name, and a branch that was there had
    // another.
    if (!IsKnown(value, ValuesOf(before, "branch", setting.subsection,
                                 {"remote", "pushremote"}))) {
      return false;
    }
    return value == "." || value.find_first_of("/:") == std::string_view::npos;
  }
  if (setting.section == "core" && setting.subsection.empty()) {
    if (setting.name == "fsmonitor") {
      return IsAnyOf(value, {"", "true", "false", "1", "0", "yes", "no"});
    }
    if (setting.name == "worktree") return false;
  }
  return std::nullopt;
}

bool IsHarmless(const GitSetting& setting,
                const std::vector<GitSetting>& before) {
  if (const auto harmless = IsHarmlessValue(setting, before)) return *harmless;
  return std::ranges::any_of(
      kHarmlessSections, [&](const HarmlessSection& some) {
        if (some.section != setting.section) return false;
        if (some.has_subsection == setting.subsection.empty()) return false;
        return some.names == " * " ||
               some.names.find(" " + setting.name + " ") !=
                   std::string_view::npos;
      });
}

std::vector<GitSetting> RiskyIn(const std::vector<GitSetting>& settings,
                                const std::vector<GitSetting>& before) {
  std::vector<GitSetting> risky;
  for (const GitSetting& setting : settings) {
    if (!IsHarmless(setting, before)) risky.push_back(setting);
  }
  return risky;
}

/// Whether `some` can be had from `all` by leaving some out.
bool IsSubsequence(const std::vector<GitSetting>& some,
                   const std::vector<GitSetting>& all) {
  auto next = all.begin();
  for (const GitSetting& each : some) {
    next = std::find(next, all.end(), each);
    if (next == all.end()) return false;
    ++next;
  }
  return true;
}

}  // namespace

std::vector<GitSetting> ReadGitSettings(std::string_view text) {
  return GitSettingReader(text).Run();
}

std::vector<GitSetting> RiskySettings(std::string_view before,
                                      std::string_view after) {
  const std::vector<GitSetting> old = ReadGitSettings(before);
  const std::vector<GitSetting> risky = RiskyIn(ReadGitSettings(after), old);
  // Addresses that the former file has are harmless in it as such.
  std::vector<GitSetting> known;
  std::ranges::copy_if(
      old, std::back_inserter(known), [&](const GitSetting& setting) {
        return std::ranges::find(risky, setting) != risky.end();
      });
  if (IsSubsequence(risky, known)) return {};
  std::vector<GitSetting> fresh;
  for (const GitSetting& setting : risky) {
    if (std::ranges::find(old, setting) == old.end()) fresh.push_back(setting);
  }
  // The last of several counts, so another order is another setting.
  return fresh.empty() ? risky : fresh;
}

}  // namespace txfs::policy
