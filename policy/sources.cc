#include "policy/sources.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "journal/support/case_folding.h"
#include "journal/support/file.h"
#include "journal/support/mutex.h"
#include "journal/support/unique_fd.h"
#include "policy/builtin.h"
#include "policy/node.h"

namespace txfs::policy {
namespace {

/// Moves what `from` has behind `to`, unless an id of it is one of `places`.
template <class Rules>
Status Collect(Rules& from, Rules& to, std::map<std::string, Place>& places) {
  for (auto& rule : from) {
    const auto [first, fresh] = places.try_emplace(rule.id, rule.place);
    if (!fresh) {
      return Fail(EINVAL, rule.place.ToString() + ": id \"" + rule.id +
                              "\" is already used in " +
                              first->second.ToString() +
                              "; expected an id that no other rule has");
    }
    to.push_back(std::move(rule));
  }
  return {};
}

/// Larger than any that somebody wrote.
constexpr size_t kMaxFile = size_t{4} << 20;

std::string Described(const SourceFile& source) {
  return "the " + source.what + " " + source.path;
}

Status CheckOwner(const struct stat& st, const SourceFile& source) {
  if (!S_ISREG(st.st_mode)) {
    return Fail(EPERM, Described(source) + " is not a regular file",
                "name a regular file");
  }
  if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Fail(EPERM, Described(source) + " is writable by other users",
                "check its content, then run chmod go-w on it");
  }
  if (st.st_uid != 0 && st.st_uid != ::geteuid()) {
    return Fail(EPERM, Described(source) + " belongs to another user",
                "change its owner to root or to yourself");
  }
  return {};
}

std::unexpected<Error> CannotRead(int code, const SourceFile& source) {
  return Fail(code, "cannot read " + Described(source),
              "name a file that you may read, or make it readable");
}

/// A step of the way to a file in the workspace: never through a link, nor to a
/// name that differs from `name` in case.
Result<UniqueFd> OpenStep(int directory, const std::string& name, int flags,
                          const SourceFile& source) {
  struct stat st{};
  if (::fstatat(directory, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
    return Fail(errno, name);
  }
  if (S_ISLNK(st.st_mode)) {
    return Fail(EPERM,
                Described(source) +
                    " is reached through a symbolic link in the workspace, " +
                    name,
                "put the file itself there, or remove the link");
  }
  // A device is not even opened.
  const bool is_last = (flags & O_DIRECTORY) == 0;
  if (is_last) TRY(CheckOwner(st, source));
  if (FoldsCase(directory) && !TRY(ListsName(directory, name))) {
    return Fail(ENOENT, name);
  }
  return OpenAt(directory, name,
                flags | O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
}

/// What `source` names below `workspace`, whatever is mounted over that.
Result<UniqueFd> OpenInWorkspace(int workspace, const SourceFile& source) {
  std::string_view rest = source.in_workspace;
  UniqueFd directory = TRY(OpenAt(workspace, ".", O_RDONLY | O_DIRECTORY));
  for (size_t slash = 0; (slash = rest.find('/')) != std::string_view::npos;) {
    directory =
        TRY(OpenStep(directory.get(), std::string(rest.substr(0, slash)),
                     O_DIRECTORY, source));
    rest.remove_prefix(slash + 1);
  }
  return OpenStep(directory.get(), std::string(rest), 0, source);
}

/// By another name it could be changed where nobody takes it for rules.
Status CheckOneName(const struct stat& st, const SourceFile& source) {
  if (st.st_nlink <= 1) return {};
  return Fail(EPERM, Described(source) + " has other names (hard links)",
              "copy it, and rename the copy to it");
}

}  // namespace

Result<std::optional<std::string>> ReadSource(const SourceFile& source,
                                              int workspace) {
  const bool inside = !source.in_workspace.empty();
  const auto fd = inside ? OpenInWorkspace(workspace, source)
                         : OpenAt(AT_FDCWD, source.path, O_RDONLY | O_NONBLOCK);
  if (!fd && fd.error().code == EPERM && inside) {
    return std::unexpected(fd.error());
  }
  if (!fd) {
    const int code = fd.error().code;
    const bool missing = code == ENOENT || code == ENOTDIR;
    if (missing && !source.required) return std::nullopt;
    return CannotRead(code, source);
  }
  struct stat st{};
  if (::fstat(fd->get(), &st) != 0) return CannotRead(errno, source);
  TRY(CheckOwner(st, source));
  if (inside) TRY(CheckOneName(st, source));
  // The file that was looked at, whatever has its name by now.
  auto text = ReadWholeFile(
      AT_FDCWD, "/proc/self/fd/" + std::to_string(fd->get()), kMaxFile);
  if (!text) return CannotRead(text.error().code, source);
  return *std::move(text);
}

namespace {

Result<Loaded> LoadText(const std::string& text, const std::string& file) {
  auto loaded = Load(text, file);
  if (!loaded && loaded.error().hint.empty()) {
    loaded.error().hint =
        "correct the line, or move the file away: until then txfs does not "
        "know all rules";
  }
  return loaded;
}

/// The ids of `rules`, of the built-in policy, that `text` does not have.
std::vector<std::string> LeftOut(const Node& rules, const std::string& text) {
  std::vector<std::string> ids;
  for (const Node& list : rules.items) {
    for (const Node& rule : list.items) {
      const Node* id = rule.Find("id");
      const bool is_there =
          id == nullptr || text.contains("\nid = \"" + id->text + "\"\n");
      if (!is_there) ids.push_back(id->text);
    }
  }
  return ids;
}

/// The built-in rules from when txfs was built, as far as `text` has them; none
/// if it has others, as the text of a daemon of another version.
std::optional<Node> FrozenAs(const std::string& text) {
  auto rules = DecodeNode(FrozenRules());
  if (!rules || text == BuiltinText()) return rules;
  const std::vector<std::string> left_out = LeftOut(*rules, text);
  const auto rest = BuiltinWithout(left_out);
  if (!rest || *rest != text) return std::nullopt;
  for (Node& list : rules->items) {
    std::erase_if(list.items, [&](const Node& rule) {
      const Node* id = rule.Find("id");
      return id != nullptr && std::ranges::count(left_out, id->text) != 0;
    });
  }
  // A list that is there has a rule.
  std::erase_if(rules->items, [](const Node& list) {
    return list.is_list() && list.items.empty();
  });
  return rules;
}

Result<Loaded> LoadBuiltin(const std::string& text, bool examples) {
  const std::string file(kBuiltinName);
  const auto frozen = examples ? std::nullopt : FrozenAs(text);
  return frozen ? Load(*frozen, text, file) : LoadText(text, file);
}

/// A file in the workspace comes with what is worked on, and must not have a
/// program run.
Status CheckRunsNothing(const SourceFile& source, const std::string& text) {
  if (source.in_workspace.empty()) return {};
  const Loaded loaded = TRY(LoadText(text, source.path));
  if (!loaded.settings.hook) return {};
  return Fail(EINVAL, loaded.settings.hook->place +
                          ": [hook] in a workspace's own rules is not "
                          "allowed, because it runs a program; expected it in "
                          "a file of the user or the machine");
}

/// Of several times the shortest holds. There is one hook at most.
Status Tighten(const Settings& file, Settings& all) {
  if (file.ask_timeout) {
    all.ask_timeout = std::min(*file.ask_timeout,
                               all.ask_timeout.value_or(*file.ask_timeout));
  }
  if (file.hook && all.hook) {
    return Fail(EINVAL, file.hook->place + ": [hook] is already set in " +
                            all.hook->place + "; expected one in all files");
  }
  if (file.hook) all.hook = file.hook;
  return {};
}

/// The policy that was compiled last, without examples. A run judges its
/// command by the rules of the mount that it then makes.
class LastPolicy {
 public:
  /// Null: it is of other texts.
  std::shared_ptr<const Policy> Of(const std::vector<SourceText>& texts) {
    const MutexLock lock(mutex_);
    return texts == texts_ ? policy_ : nullptr;
  }
  void Set(const std::vector<SourceText>& texts,
           std::shared_ptr<const Policy> policy) {
    const MutexLock lock(mutex_);
    texts_ = texts;
    policy_ = std::move(policy);
  }

 private:
  Mutex mutex_;
  std::vector<SourceText> texts_ GUARDED_BY(mutex_);
  std::shared_ptr<const Policy> policy_ GUARDED_BY(mutex_);
};

template <class SomeRule>
Status CheckHook(const std::vector<SomeRule>& rules, const Settings& settings) {
  const auto rule = std::ranges::find(rules, Action::kHook, &SomeRule::action);
  if (settings.hook || rule == rules.end()) return {};
  return Fail(EINVAL, rule->place.ToString() + ": action of " + rule->id +
                          " is \"hook\", but no file has a [hook]; expected "
                          "[hook] with a command");
}

}  // namespace

Result<std::string> BuiltinWithout(const std::vector<std::string>& without) {
  std::string text(BuiltinText());
  for (const std::string& id : std::set(without.begin(), without.end())) {
    const size_t at = text.find("\nid = \"" + id + "\"\n");
    if (at == std::string::npos) {
      return Fail(EINVAL, "no built-in rule has the id \"" + id + "\"",
                  "`txfs policy show` lists them");
    }
    const size_t begin = text.rfind("\n[[", at) + 1;
    const size_t end = std::min(text.find("\n\n", at), text.size());
    const auto lines =
        std::ranges::count(text.substr(begin, end - begin), '\n');
    text.replace(begin, end - begin, static_cast<size_t>(lines), '\n');
  }
  return text;
}

Result<std::vector<SourceText>> ReadSources(const Sources& sources,
                                            int workspace) {
  std::vector<SourceText> texts;
  std::string builtin = TRY(BuiltinWithout(sources.without));
  if (sources.builtin) {
    texts.push_back({std::string(kBuiltinName), std::move(builtin)});
  }
  for (const SourceFile& source : sources.files) {
    auto text = TRY(ReadSource(source, workspace));
    if (!text) continue;
    TRY(CheckRunsNothing(source, *text));
    texts.push_back({source.path, *std::move(text)});
  }
  return texts;
}

Result<std::shared_ptr<const Policy>> Compile(
    const std::vector<SourceText>& texts, bool examples) {
  if (texts.empty()) return nullptr;
  // Never destroyed: that takes as long as a tenth of the load.
  static LastPolicy& last = *new LastPolicy;
  if (!examples) {
    if (auto policy = last.Of(texts)) return policy;
  }
  std::vector<Loaded> files;
  for (const SourceText& source : texts) {
    files.push_back(TRY(source.file == kBuiltinName
                            ? LoadBuiltin(source.text, examples)
                            : LoadText(source.text, source.file)));
  }
  auto policy = TRY(Combine(std::move(files)));
  if (!examples) last.Set(texts, policy);
  return policy;
}

Result<std::shared_ptr<const Policy>> LoadSources(const Sources& sources,
                                                  int workspace) {
  const std::vector<SourceText> texts = TRY(ReadSources(sources, workspace));
  return Compile(texts, sources.examples);
}

Result<std::shared_ptr<const Policy>> Combine(std::vector<Loaded> files) {
  std::vector<Rule> rules;
  std::vector<Limit> limits;
  std::vector<ExecRule> exec_rules;
  std::map<std::string, Place> places;
  uint64_t hash = 0;
  Settings settings;
  for (Loaded& file : files) {
    TRY(Tighten(file.settings, settings));
    hash = std::rotl(hash, 1) ^ file.hash;
    TRY(Collect(file.rules, rules, places));
    TRY(Collect(file.limits, limits, places));
    TRY(Collect(file.exec_rules, exec_rules, places));
  }
  TRY(CheckHook(rules, settings));
  TRY(CheckHook(exec_rules, settings));
  return std::make_shared<const Policy>(
      std::move(rules), std::max<uint64_t>(hash, 1), std::move(limits),
      std::move(settings), std::move(exec_rules));
}

}  // namespace txfs::policy
