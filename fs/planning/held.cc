#include "fs/planning/held.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "fs/diff/change_list.h"
#include "fs/overlay/linked_names.h"
#include "fs/veto/policy_check.h"
#include "journal/support/bytes.h"
#include "journal/support/file.h"
#include "policy/ascii.h"
#include "policy/policy.h"

namespace txfs {
namespace {

using policy::Action;
using policy::ContentKind;
using policy::Effect;
using policy::Event;
using policy::Layer;
using policy::Rule;

/// Bounds of a report: what an agent makes must neither fill a reply nor hide
/// what another rule holds.
constexpr size_t kMaxOfRule = 50;
constexpr size_t kMaxWhole = 100'000;
constexpr size_t kMaxHeldLines = 5;
constexpr size_t kMaxHeldLine = 160;
/// Of files that no patch has, in a whole report.
constexpr size_t kMaxWholeLines = 2000;
constexpr size_t kMaxWholeLine = 4096;
/// So many blanks may stand in a line.
constexpr size_t kMaxBlanks = 16;
/// Content that is looked at.
constexpr uint64_t kMaxLookedAt = uint64_t{1} << 20;

bool IsEmptyFile(const ChangeSide& side) {
  return side.attr.type == FileType::kRegular && side.attr.size == 0;
}

policy::Op OpThatMakes(FileType type) {
  switch (type) {
    case FileType::kRegular:
      return policy::Op::kCreate;
    case FileType::kDirectory:
      return policy::Op::kMkdir;
    case FileType::kSymlink:
      return policy::Op::kSymlink;
    default:
      return policy::Op::kMknod;
  }
}

/// The net effects of one change, as if single operations had had them. The
/// views are into the change.
class NetEvents {
 public:
  explicit NetEvents(const NetChange& change, std::string_view old_end = {},
                     std::string_view new_end = {})
      : change_(change), old_end_(old_end), new_end_(new_end) {}

  std::vector<Event> List() {
    switch (change_.kind) {
      case ChangeKind::kAdded:
        Make();
        break;
      case ChangeKind::kDeleted:
        Remove(change_.path);
        break;
      case ChangeKind::kTypeChanged:
        Remove(change_.path);
        Make();
        break;
      case ChangeKind::kRenamed:
        Make();
        Remove(change_.old_path);
        [[fallthrough]];
      case ChangeKind::kModified:
        Alter();
        break;
    }
    return std::move(events_);
  }

 private:
  void Make() {
    const FileType type = change_.after->attr.type;
    const bool moved = change_.kind == ChangeKind::kRenamed;
    Event& event = Add(Effect::kMake, change_.path, type,
                       moved ? policy::Op::kRename : OpThatMakes(type));
    event.layer = IsEmptyFile(*change_.after) ? Layer::kEmpty : Layer::kNew;
    event.other_end = old_end_;
  }

  void Remove(std::string_view path) {
    const FileType type = change_.before->attr.type;
    const bool moved = change_.kind == ChangeKind::kRenamed;
    Event& event = Add(Effect::kRemove, path, type,
                       moved                          ? policy::Op::kRename
                       : type == FileType::kDirectory ? policy::Op::kRmdir
                                                      : policy::Op::kUnlink);
    event.moved = moved;
    event.other_end = new_end_;
  }

  void Alter() {
    const FileType type = change_.after->attr.type;
    // Another target is another link.
    if (change_.content && type == FileType::kSymlink) Make();
    if (change_.content && type == FileType::kRegular) {
      Add(Effect::kContent, change_.path, type, policy::Op::kWrite);
    }
    if (change_.attributes) {
      Add(Effect::kAttributes, change_.path, type, policy::Op::kChmod);
    }
  }

  Event& Add(Effect effect, std::string_view path, FileType type,
             policy::Op op) {
    events_.push_back({.op = op,
                       .effect = effect,
                       .path = path,
                       .layer = Layer::kBase,
                       .type = JudgedType(type),
                       .exe = {},
                       .uid = {}});
    return events_.back();
  }

  const NetChange& change_;
  /// Of what moves with a directory.
  const std::string_view old_end_, new_end_;
  std::vector<Event> events_;
};

std::string_view WordOf(Effect effect) {
  switch (effect) {
    case Effect::kMake:
      return "added";
    case Effect::kRemove:
      return "removed";
    case Effect::kContent:
      return "changed";
    case Effect::kAttributes:
      return "attributes";
    case Effect::kRead:
      break;  // changes nothing
  }
  return "";
}

std::string OctalMode(uint32_t mode) {
  std::string text;
  for (int shift = 9; shift >= 0; shift -= 3) {
    text += static_cast<char>('0' + ((mode >> shift) & 7));
  }
  return text;
}

/// Blanks must not push the rest of a line out of sight.
std::string WithoutLongBlanks(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r";
  std::string text;
  while (!line.empty()) {
    const size_t end = std::min(line.find_first_of(kBlanks), line.size());
    text += line.substr(0, end);
    line.remove_prefix(end);
    const size_t blanks =
        std::min(line.find_first_not_of(kBlanks), line.size());
    if (blanks > kMaxBlanks && blanks < line.size()) {
      text += " [" + std::to_string(blanks) + " blanks] ";
    } else if (blanks < line.size()) {
      text += line.substr(0, blanks);
    }
    line.remove_prefix(blanks);
  }
  return text;
}

/// A line as it is reported: the end of a long one is not looked at.
std::string Shortened(std::string_view line, size_t max = kMaxHeldLine) {
  std::string text = WithoutLongBlanks(line);
  if (text.size() <= max) return text;
  size_t cut = max;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) {
    --cut;
  }
  text.resize(cut);
  return text + "...";
}

/// Whether no patch has the file.
bool IsBelowGit(std::string_view path) {
  const std::string whole = "/" + policy::Lowered(path) + "/";
  return whole.contains("/.git/");
}

std::string SizeText(uint64_t bytes) {
  return std::to_string(bytes) + " bytes";
}

class HeldFinder {
 public:
  HeldFinder(Frozen& frozen, const policy::Policy& policy,
             const HeldQuery& query)
      : frozen_(frozen),
        policy_(policy),
        query_(query),
        workspace_(PathOfFd(frozen.base.root())) {}

  Status Run(const Selection* selection) {
    std::optional<std::set<std::string>> paths;
    // A changed file may have names that nobody looked up yet.
    NoteNamesBelow(frozen_.tree, frozen_.base, {""});
    if (selection != nullptr) paths = PathsOf(frozen_, *selection);
    TRY(ReadRedirects());
    ChangeList list = TRY(ChangeList::Collect(frozen_, false));
    const auto is_part = [&](const std::string& path) {
      return !path.empty() && (!paths || paths->contains(path));
    };
    list.Keep([&](const NetChange& change) {
      if (change.after) shown_.insert(change.path);
      return (is_part(change.path) || is_part(change.old_path)) &&
             MayBeHeld(change);
    });
    const auto changes = TRY(std::move(list).Settle(frozen_));
    for (const NetChange& change : changes) {
      TRY(Judge(change, NetEvents(change)));
    }
    for (const Moved& moved : MovedDirectories()) {
      if (!is_part(moved.from) && !is_part(moved.to)) continue;
      has_open_ = false;
      TRY(JudgeBelow(moved));
      if (!has_open_) continue;
      // It is the directory that stays where it was.
      open_.insert(moved.from);
      open_.insert(moved.to);
    }
    return {};
  }

  std::vector<HeldChange> Take() { return std::move(held_); }
  std::set<std::string> TakeOpen() { return std::move(open_); }

 private:
  struct Moved {
    std::string from, to;  ///< path in the base, and in the overlay
  };

  /// The directories of the base that have another name now. The net changes
  /// do not list what is in them.
  std::vector<Moved> MovedDirectories() {
    std::vector<Moved> moved;
    PathMemo memo;
    frozen_.tree.ForEachUpper([&](Inode& inode) {
      if (!inode.IsDirectory() || !inode.record.base) return;
      const bool has_own_name =
          std::ranges::any_of(inode.links, [&](const Inode::Link& link) {
            const Inode* parent = frozen_.tree.Find(link.parent);
            return parent != nullptr && parent->UpperSlot(link.name) != nullptr;
          });
      if (!has_own_name) return;
      const std::string& from = inode.record.base->path;
      auto to = frozen_.tree.VisiblePath(inode, {}, &memo);
      if (to && *to != from) moved.push_back({from, std::move(*to)});
    });
    return moved;
  }

  /// Also those of the place that the base's configuration of git puts the path
  /// into.
  [[nodiscard]] std::vector<const Rule*> HoldingRules(
      const Event& event) const {
    std::vector<const Rule*> rules = policy_.Matching(event);
    if (const std::string place = PlaceForGit(event.path); !place.empty()) {
      Event other = event;
      other.path = place;
      other.other_end = {};
      for (const Rule* rule : policy_.Matching(other)) {
        if (std::ranges::find(rules, rule) == rules.end()) {
          rules.push_back(rule);
        }
      }
    }
    std::erase_if(rules, [&](const Rule* rule) {
      const bool is_about_directories =
          std::ranges::find(rule->when.types, policy::Type::kDirectory) !=
          rule->when.types.end();
      return rule->action != Action::kHold ||
             (event.type == policy::Type::kDirectory && !is_about_directories);
    });
    return rules;
  }

  Status ReadRedirects() {
    constexpr const char* kConfig = ".git/config";
    auto object = FindObject(frozen_.base, kConfig);
    if (!object || !*object) return {};
    const std::string text = TRY(ReadIfSmall(SideOf(std::move(**object))));
    redirects_ =
        policy::RedirectsOf(text, {.path = kConfig, .workspace = workspace_});
    return {};
  }

  /// "": git does not look there for hooks or settings.
  [[nodiscard]] std::string PlaceForGit(std::string_view path) const {
    for (const std::string& directory : redirects_.hooks) {
      if (!IsAtOrBelow(path, directory)) continue;
      return ".git/hooks" + std::string(path.substr(directory.size()));
    }
    const auto& files = redirects_.settings;
    const bool is_settings = std::ranges::find(files, path) != files.end();
    return is_settings ? ".git/config" : "";
  }

  /// Before it is known whether content and attributes differ.
  [[nodiscard]] bool MayBeHeld(const NetChange& change) const {
    NetChange most = change;
    most.content = most.attributes = true;
    const std::vector<Event> events = NetEvents(most).List();
    return std::ranges::any_of(events, [&](const Event& event) {
      return !HoldingRules(event).empty();
    });
  }

  Status Judge(const NetChange& change, NetEvents net) {
    std::vector<const Rule*> judged;
    for (const Event& event : net.List()) {
      if (IsWithoutContent(change, event)) continue;
      for (const Rule* rule : HoldingRules(event)) {
        if (std::ranges::find(judged, rule) != judged.end()) continue;
        judged.push_back(rule);
        TRY(Hold(change, event, *rule));
      }
    }
    return {};
  }

  /// Nothing comes of an empty file, and nothing is lost with one.
  static bool IsWithoutContent(const NetChange& change, const Event& event) {
    const bool was_empty = !change.before || IsEmptyFile(*change.before);
    if (event.effect == Effect::kRemove) return was_empty;
    return was_empty && change.after && IsEmptyFile(*change.after);
  }

  Status Hold(const NetChange& change, const Event& event, const Rule& rule) {
    HeldChange held{.path = std::string(event.path),
                    .change = std::string(WordOf(event.effect)),
                    .rule = rule.id,
                    .reason = rule.reason,
                    .suggest = rule.suggest};
    if (change.old_path != event.path) held.old_path = change.old_path;
    held.accepted = IsAccepted(held);
    const bool gets_content =
        event.effect == Effect::kMake || event.effect == Effect::kContent;
    if (gets_content) {
      const bool holds = TRY(AddLines(change, rule, held));
      if (!holds) return {};
    } else if (event.effect == Effect::kAttributes) {
      const uint32_t before = change.before->attr.mode;
      const uint32_t after = change.after->attr.mode;
      if (before != after) {
        held.lines.push_back("mode " + OctalMode(before) + " -> " +
                             OctalMode(after));
      }
    }
    Add(std::move(held));
    return {};
  }

  /// False: with this content the rule does not hold the file.
  Result<bool> AddLines(const NetChange& change, const Rule& rule,
                        HeldChange& held) {
    const ChangeSide& after = *change.after;
    if (rule.content == ContentKind::kGitBare) {
      return AddBareLines(change, rule, held);
    }
    const bool is_python = rule.content == ContentKind::kPythonPath;
    if (is_python && !HasDirectoryOf(change.path)) return false;
    if (after.attr.type == FileType::kSymlink) {
      held.lines.push_back("-> " + Shortened(after.symlink));
      // Others are often links to models.
      return !is_python || IsInSitePackages(change.path);
    }
    if (after.attr.type != FileType::kRegular) return true;
    const bool is_any = rule.content == ContentKind::kAny;
    if (after.attr.size > kMaxLookedAt) {
      held.lines.push_back("(" + SizeText(after.attr.size) +
                           ": too large to be shown)");
      return !is_python || IsInSitePackages(change.path);
    }
    // Of what is not listed anyway no lines are needed.
    if (is_any && counts_[{rule.id, held.accepted}] >= kMaxOfRule) return true;
    const std::string text = TRY(ReadText(after));
    // What is moved is new at its place, but for the settings of a repository
    // that moves.
    const bool is_moved = change.kind == ChangeKind::kRenamed ||
                          change.kind == ChangeKind::kAdded;
    const bool is_new_here =
        is_moved && (rule.content != ContentKind::kGitConfig ||
                     !IsAbout(rule, change.old_path));
    std::string before;
    if (!is_new_here) before = TRY(ReadIfSmall(change.before));
    if (is_any && text.find('\0') != std::string::npos) {
      held.lines.push_back("(" + SizeText(text.size()) + ", no text)");
      return true;
    }
    return SetLines(rule, change.path, before, text, held) || is_any;
  }

  /// Whether `rule` would look into a file at `path`.
  [[nodiscard]] bool IsAbout(const Rule& rule, const std::string& path) const {
    const std::vector<const Rule*> rules =
        HoldingRules({.op = policy::Op::kWrite,
                      .effect = Effect::kContent,
                      .path = path,
                      .layer = Layer::kBase,
                      .type = policy::Type::kFile,
                      .exe = {},
                      .uid = {}});
    return std::ranges::find(rules, &rule) != rules.end();
  }

  /// A directory becomes a repository by its HEAD, which may come before or
  /// after the settings, and after the file that leads to others.
  Result<bool> AddBareLines(const NetChange& change, const Rule& rule,
                            HeldChange& held) {
    const std::string_view name = BaseName(change.path);
    const std::string parent(ParentPath(change.path));
    const std::string old = change.before ? change.before->base_path : "";
    const bool was_repository =
        !old.empty() && BaseHas(JoinPath(ParentPath(old), "HEAD"));
    if (name == "HEAD") {
      if (was_repository) return false;
      // One that is changed is a change of its own.
      if (BaseHas(JoinPath(parent, "commondir"))) return true;
      return AddBaseSettings(JoinPath(parent, "config"), rule, held);
    }
    const bool is_repository = was_repository ||
                               shown_.contains(JoinPath(parent, "HEAD")) ||
                               BaseHas(JoinPath(parent, "HEAD"));
    if (!is_repository) return false;
    const FileType type = change.after->attr.type;
    if (type == FileType::kSymlink) {
      held.lines.push_back("-> " + Shortened(change.after->symlink));
    }
    if (name != "config" || type != FileType::kRegular) {
      return type != FileType::kDirectory;
    }
    const std::string after = TRY(ReadIfSmall(change.after));
    const std::string before =
        was_repository ? TRY(ReadIfSmall(change.before)) : std::string();
    const bool is_large = change.after->attr.size > kMaxLookedAt;
    return SetLines(rule, change.path, before, after, held) || is_large;
  }

  /// What the base has as `path` is new as settings.
  Result<bool> AddBaseSettings(const std::string& path, const Rule& rule,
                               HeldChange& held) {
    auto object = FindObject(frozen_.base, path);
    if (!object || !*object) return false;
    const ChangeSide side = SideOf(std::move(**object));
    if (side.attr.type != FileType::kRegular) {
      return side.attr.type == FileType::kSymlink;
    }
    return SetLines(rule, path, "", TRY(ReadIfSmall(side)), held);
  }

  [[nodiscard]] bool BaseHas(const std::string& path) const {
    return frozen_.base.Stat(path).has_value();
  }

  Result<std::string> ReadIfSmall(const std::optional<ChangeSide>& side) {
    const bool is_read = side && side->attr.type == FileType::kRegular &&
                         side->attr.size <= kMaxLookedAt;
    return is_read ? ReadText(*side) : std::string();
  }

  /// False: no line of `after` matters to `rule`.
  bool SetLines(const Rule& rule, const std::string& path,
                const std::string& before, const std::string& after,
                HeldChange& held) {
    const std::vector<std::string> lines = policy::LinesThatMatter(
        rule.content, before, after, {.path = path, .workspace = workspace_});
    const size_t all = lines.size();
    const bool is_whole = query_.whole && IsBelowGit(path);
    for (const std::string& line : lines) {
      if (held.lines.size() == (is_whole ? kMaxWholeLines : kMaxHeldLines)) {
        break;
      }
      held.lines.push_back(
          Shortened(line, is_whole ? kMaxWholeLine : kMaxHeldLine));
    }
    held.more_lines = all - held.lines.size();
    return all != 0;
  }

  /// Whether the base has the directory that `path` is in. A whole new
  /// environment is run only by its own interpreter.
  [[nodiscard]] bool HasDirectoryOf(const std::string& path) const {
    const auto st = frozen_.base.Stat(std::string(ParentPath(path)));
    return st && S_ISDIR(st->st_mode);
  }

  static bool IsInSitePackages(const std::string& path) {
    const std::string_view directory = BaseName(ParentPath(path));
    return directory == "site-packages" || directory == "dist-packages";
  }

  Result<std::string> ReadText(const ChangeSide& side) {
    std::string text(side.attr.size, '\0');
    const MutableByteSpan out = std::as_writable_bytes(std::span(text));
    size_t done = 0;
    while (done < text.size()) {
      auto read = ReadSide(frozen_, side, done, out.subspan(done));
      // Only a file of the base can be out of reach, and moves as it is.
      const bool is_away = !read && (IsClosedOrGone(read.error()) ||
                                     read.error().code == ESTALE);
      if (is_away) break;
      const size_t n = TRY(std::move(read));
      if (n == 0) break;
      done += n;
    }
    text.resize(done);
    return text;
  }

  /// The names of the base that a moved directory takes along.
  Status JudgeBelow(const Moved& top) {
    std::vector<Moved> waiting{top};
    while (!waiting.empty()) {
      const Moved moved = std::move(waiting.back());
      waiting.pop_back();
      const Inode* directory = frozen_.tree.FindBaseDirectory(moved.from);
      for (const BaseEntry& entry : TRY(ListIfOpen(frozen_.base, moved.from))) {
        // What the transaction did to a name is a change of its own.
        if (directory != nullptr &&
            directory->UpperSlot(entry.name) != nullptr) {
          continue;
        }
        Moved next{JoinPath(moved.from, entry.name),
                   JoinPath(moved.to, entry.name)};
        TRY(JudgeMoved(entry, next));
        if (entry.type == FileType::kDirectory) {
          waiting.push_back(std::move(next));
        }
      }
    }
    return {};
  }

  Status JudgeMoved(const BaseEntry& entry, const Moved& moved) {
    // Where something else is in its place, that is a change of its own. If it
    // is not accepted, the base also keeps what is there.
    const bool is_replaced = shown_.contains(moved.from);
    if (is_replaced && open_.contains(moved.from)) has_open_ = true;
    NetChange change{
        .kind = is_replaced ? ChangeKind::kAdded : ChangeKind::kRenamed,
        .path = moved.to,
        .old_path = moved.from};
    change.before.emplace();
    change.before->attr.type = entry.type;
    change.before->attr.size = 1;  // not known yet
    change.before->base_path = moved.from;
    change.after = change.before;
    const NetEvents net(change, moved.from, moved.to);
    const std::vector<Event> events = NetEvents(net).List();
    const bool may_be_held = std::ranges::any_of(
        events,
        [&](const Event& event) { return !HoldingRules(event).empty(); });
    if (!may_be_held) return {};
    auto object = FindObject(frozen_.base, moved.from);
    if (!object || !*object) return {};
    change.before = SideOf(std::move(**object));
    change.after = change.before;
    return Judge(change, net);
  }

  [[nodiscard]] bool IsAccepted(const HeldChange& held) const {
    const auto is_in = [&](const std::string& root) {
      return IsAtOrBelow(held.path, root);
    };
    return std::ranges::find(query_.rules, held.rule) != query_.rules.end() ||
           std::ranges::any_of(query_.paths, is_in);
  }

  void Add(HeldChange held) {
    if (!held.accepted) {
      has_open_ = true;
      open_.insert(held.path);
      if (!held.old_path.empty()) open_.insert(held.old_path);
    }
    // A file that was changed in a moved directory comes by both.
    const bool is_new = known_.emplace(held.path, held.rule).second;
    if (is_new) ++counts_[{held.rule, held.accepted}];
    if (is_new) held_.push_back(std::move(held));
  }

  Frozen& frozen_;
  const policy::Policy& policy_;
  const HeldQuery& query_;
  const std::string workspace_;
  policy::GitRedirects redirects_;  ///< of the base
  std::vector<HeldChange> held_;
  std::set<std::string> shown_;  ///< paths at which the change has an object
  std::set<std::pair<std::string, std::string>> known_;    ///< path, rule
  std::map<std::pair<std::string, bool>, size_t> counts_;  ///< rule, accepted
  std::set<std::string> open_;
  bool has_open_ = false;  ///< something was held since this was reset
};

Status CheckAcceptedPaths(const std::vector<HeldChange>& held,
                          const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const bool is_any = std::ranges::any_of(held, [&](const HeldChange& each) {
      return IsAtOrBelow(each.path, path);
    });
    if (is_any) continue;
    return Fail(ErrorKind::kUsage, 0,
                "no rule holds a change at " + ShownPath(path),
                "`txfs diff --held` shows what is held; a path is relative to "
                "the working directory, or to that of -C");
  }
  return {};
}

/// Takes out all but the first of each rule, and counts them.
void Shorten(HeldReport& report, bool whole) {
  std::map<std::string, size_t> listed;
  std::map<std::string, HeldRest> rest;
  size_t all = 0;
  std::erase_if(report.changes, [&](const HeldChange& each) {
    const bool is_listed =
        whole ? ++all <= kMaxWhole : ++listed[each.rule] <= kMaxOfRule;
    if (is_listed) return false;
    HeldRest& of_rule = rest[each.rule];
    of_rule.rule = each.rule;
    ++(each.accepted ? of_rule.accepted : of_rule.open);
    return true;
  });
  for (auto& [rule, of_rule] : rest) report.more.push_back(std::move(of_rule));
}

}  // namespace

Result<HeldReport> FindHeld(Frozen& frozen, const Selection* selection,
                            const HeldQuery& query,
                            std::set<std::string>* open) {
  HeldReport report;
  const std::shared_ptr<const policy::Policy> policy = frozen.SharedPolicy();
  const auto holds = [](const Rule& rule) {
    return rule.action == Action::kHold;
  };
  std::vector<HeldChange> held;
  if (policy != nullptr && std::ranges::any_of(policy->rules(), holds)) {
    HeldFinder finder(frozen, *policy, query);
    TRY(finder.Run(selection));
    held = finder.Take();
    if (open != nullptr) *open = finder.TakeOpen();
  }
  TRY(CheckAcceptedPaths(held, query.paths));
  std::ranges::stable_sort(held, {}, [](const HeldChange& each) {
    return std::tie(each.accepted, each.path);
  });
  report.changes = std::move(held);
  Shorten(report, query.whole);
  return report;
}

}  // namespace txfs
