#include "fs/overlay/overlay.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <iterator>
#include <random>

#include "fs/overlay/base_follower.h"
#include "fs/posix/checks.h"
#include "fs/tree/check_tree.h"
#include "fs/veto/base_count.h"

namespace txfs {
namespace {

std::string ExecutableOf(uint32_t pid) {
  // A caller in another PID namespace has no PID here.
  if (pid == 0) return {};
  const std::string link = "/proc/" + std::to_string(pid) + "/exe";
  // Every change calls this: avoid a large heap allocation.
  std::array<char, PATH_MAX> path;
  const ssize_t n = ::readlink(link.c_str(), path.data(), path.size());
  return n < 0 ? std::string()
               : std::string(path.data(), static_cast<size_t>(n));
}

uint64_t RandomSeed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

FilesystemOptions WithDefaults(FilesystemOptions options) {
  if (!options.exe_of) options.exe_of = ExecutableOf;
  if (!options.rights_of) {
    options.rights_of = [](const Caller& caller) {
      return ReadFileRights(static_cast<pid_t>(caller.pid));
    };
  }
  return options;
}

/// Whether `change` moves a directory that `tree` has.
bool MayMoveDirectories(const Change& change, const Tree& tree) {
  if (change.op == Op::kCommit || change.op == Op::kDiscard) return true;
  if (change.op != Op::kRename && change.op != Op::kExchange) return false;
  return std::ranges::any_of(change.edits, [&](const Edit& edit) {
    const auto* name = std::get_if<DentryEdit>(&edit);
    if (name == nullptr || name->after.kind != DentryKind::kInode) return false;
    const Inode* inode = tree.Find(name->after.ino);
    return inode != nullptr && inode->IsDirectory();
  });
}

/// Errors of the store, not of the request: there is nothing to log.
bool IsStoreError(int code) {
  return code == ENOSPC || code == EDQUOT || code == EIO || code == EROFS;
}

/// Path of `entry` in directory `ino`, or of `ino` itself without an entry.
std::string PathIn(const Tree& tree, Ino ino, std::string_view entry) {
  const Inode* inode = tree.Find(ino);
  if (inode == nullptr) return std::string(entry);
  return entry.empty() ? tree.PathOf(*inode) : tree.PathOf(*inode, entry);
}

/// Those of `inos` whose lookups may be in flight; adds their directories to
/// `parents`.
std::vector<Ino> FindRecent(const Tree& tree, const std::vector<Ino>& inos,
                            std::set<Ino>& parents) {
  const uint64_t now = Clock::System().Steady();
  std::vector<Ino> recent;
  for (const Ino ino : inos) {
    const Inode* inode = tree.Find(ino);
    if (inode == nullptr || !MayBeInFlight(*inode, now)) continue;
    recent.push_back(ino);
    for (const Inode::Link& link : inode->links) parents.insert(link.parent);
  }
  return recent;
}

/// The object `name` in the directory of the base that the transaction knows as
/// `path`, and that is at `place`.
Result<std::optional<BaseObject>> Probe(const BaseDirectory& base,
                                        std::string_view path,
                                        std::string_view place,
                                        std::string_view name) {
  auto object = TRY(FindObject(base, JoinPath(place, name)));
  if (object && path != place) object->path = JoinPath(path, name);
  return object;
}

/// Probe of each of `names`; `stats` are of the first of them.
std::vector<Result<std::optional<BaseObject>>> ProbeEach(
    const BaseDirectory& base, const PlaceOfDirectory& directory,
    std::span<const std::string_view> names, LookAhead::Stats stats) {
  std::vector<Result<std::optional<BaseObject>>> found;
  found.reserve(names.size());
  if (stats.size() < names.size()) {
    std::ranges::move(
        base.StatEach(directory.place, names.subspan(stats.size())),
        std::back_inserter(stats));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (stats[i] && S_ISLNK(stats[i]->st_mode)) {
      found.push_back(Probe(base, directory.path, directory.place, names[i]));
    } else if (stats[i]) {
      found.emplace_back(
          BaseObject{JoinPath(directory.path, names[i]), *stats[i], {}});
    } else if (stats[i].error().code == ENOENT) {
      found.emplace_back(std::nullopt);
    } else {
      found.emplace_back(std::unexpected(std::move(stats[i]).error()));
    }
  }
  return found;
}

}  // namespace

Result<std::unique_ptr<Filesystem>> Filesystem::Open(
    UniqueFd base, std::unique_ptr<Journal> journal,
    FilesystemOptions options) {
  return TRY(OverlayFilesystem::Open(std::move(base), std::move(journal),
                                     std::move(options)));
}

namespace {

/// Checks the tables as a whole first, because the tree relies on their
/// consistency.
Status LoadTree(Journal& journal, Tree& tree) {
  if (journal.last_lsn() == kNoLsn) return {};
  Image image;
  TRY(journal.Load(image));
  TRY(CheckServable(image));
  tree.Load(std::move(image));
  return {};
}

}  // namespace

Result<std::unique_ptr<OverlayFilesystem>> OverlayFilesystem::Open(
    UniqueFd base, std::unique_ptr<Journal> journal,
    FilesystemOptions options) {
  struct stat root{};
  if (::fstat(base.get(), &root) != 0) return Fail(errno, "stat workspace");
  std::unique_ptr<OverlayFilesystem> filesystem(new OverlayFilesystem(
      std::move(base), root, std::move(journal), std::move(options)));
  const WriterLock gate(filesystem->gate_);
  const WriterLock lock(filesystem->tree_mutex_);
  TRY(LoadTree(*filesystem->journal_, filesystem->tree_));
  filesystem->tree_.ReserveInos(filesystem->journal_->highest_ino());
  filesystem->tree_.RelinkUpper(LookAt(filesystem->base_));
  NoteLostDirectories(filesystem->tree_, filesystem->base_);
  filesystem->origins_.moved().Expect(FilesReadFrom(filesystem->tree_));
  return filesystem;
}

OverlayFilesystem::OverlayFilesystem(UniqueFd base, const struct stat& root,
                                     std::unique_ptr<Journal> journal,
                                     FilesystemOptions options)
    : base_(std::move(base)),
      options_(WithDefaults(std::move(options))),
      cookie_seed_(RandomSeed()),
      tree_(root, root.st_dev),
      judge_(base_, options_.clock, options_.policy),
      journal_(std::move(journal)),
      origins_(base_,
               [this](Ino ino, const Told& told, const struct stat& now,
                      int fd) { return CheckTold(ino, told, now, fd); }) {}

// --- lookups ---------------------------------------------------------------

Result<Inode*> OverlayFilesystem::FindInode(Ino ino) {
  Inode* inode = tree_.Find(ino);
  if (inode == nullptr) return Fail(ESTALE, "inode");
  return inode;
}

Result<Inode*> OverlayFilesystem::FindDirectory(Ino ino) {
  Inode* inode = TRY(FindInode(ino));
  if (!inode->IsDirectory()) return Fail(ENOTDIR, "directory");
  return inode;
}

Node OverlayFilesystem::Hold(Inode& inode, uint64_t now) {
  ++inode.lookups;
  inode.looked_up = now;
  return {inode.ino, AnswerStat(inode), inode.names->generation};
}

StaleCaches OverlayFilesystem::InFlight(const StaleCaches& stale) {
  const ReaderLock gate(gate_);
  const ReaderLock lock(tree_mutex_);
  std::set<Ino> parents;
  StaleCaches recent;
  recent.inodes = FindRecent(tree_, stale.inodes, parents);
  recent.attributes = FindRecent(tree_, stale.attributes, parents);
  for (const Ino parent : parents) recent.names.push_back({parent, ""});
  return recent;
}

struct stat OverlayFilesystem::AnswerStat(Inode& inode) const {
  if (inode.told_size != inode.attr().size) inode.told_size = inode.attr().size;
  if (!inode.attr_told) inode.attr_told = true;
  doubts_.Tell(inode.ino);
  return tree_.StatOf(inode);
}

Result<std::optional<PlaceOfDirectory>> OverlayFilesystem::CheckedPlace(
    Ino ino) {
  PlaceOfDirectory found;
  std::optional<Told> told;
  {
    const ReaderLock lock(tree_mutex_);
    const Inode* inode = TRY(FindDirectory(ino));
    if (!inode->record.base) return std::nullopt;
    found = {inode->record.base->path, TRY(PlaceInBase(*inode))};
    if (IsGuarded(*inode)) told = Told::Of(*inode->record.base);
  }
  if (told) TRY(CheckDirectory(ino, *told, found.place));
  return found;
}

Result<std::optional<BaseObject>> OverlayFilesystem::ProbeBase(
    Ino parent, std::string_view name) {
  const auto directory = TRY(CheckedPlace(parent));
  if (!directory) return std::nullopt;
  return Probe(base_, directory->path, directory->place, name);
}

Result<std::string> OverlayFilesystem::PlaceInBase(const Inode& inode) const {
  const std::string& before = inode.record.base->path;
  if (!halted_ || inode.lost || inode.IsOrphan()) return before;
  const auto after = tree_.VisiblePath(inode);
  if (after == before) return before;
  for (const auto& path : {std::optional(before), after}) {
    const auto st = path ? base_.Stat(*path) : Fail(ENOENT, "");
    if (st && tree_.IsOrigin(inode, *st)) return *path;
  }
  return Fail(EIO, "commit stopped half-way");
}

Inode* OverlayFilesystem::Child(Inode& directory, std::string_view name,
                                const std::optional<BaseObject>& probe) {
  if (Tree::IsDecided(directory, name)) return tree_.FindChild(directory, name);
  if (!probe) return nullptr;
  return &tree_.AdoptBase(directory, name, *probe);
}

Result<Node> OverlayFilesystem::Lookup(Ino parent, std::string_view name) {
  if (name.size() > kMaxName) return Fail(ENAMETOOLONG, "name");
  return std::move(LookupAll(parent, {&name, 1}).front());
}

std::vector<Result<Node>> OverlayFilesystem::LookupAll(
    Ino parent, std::span<const std::string_view> names) {
  const ReaderLock gate(gate_);
  std::vector<Result<Node>> nodes(names.size(), Fail(ENOENT, "lookup"));
  const Status done = LookUpInto(nodes, parent, names);
  if (!done) std::ranges::fill(nodes, std::unexpected(done.error()));
  return nodes;
}

// What the base answers holds until the next refresh, which takes the gate
// exclusively, drops the answers, and looks again at what the tree has by then.
void OverlayFilesystem::ExpectLookups(Ino parent,
                                      std::span<const std::string_view> names) {
  const ReaderLock gate(gate_);
  const auto above = CheckedPlace(parent);
  if (!above || !*above) return;
  LookAhead::Entries entries{.directory = parent,
                             .time = Clock::System().Steady(),
                             .names = {names.begin(), names.end()},
                             .stats = {}};
  entries.stats = base_.StatEach((*above)->place, names);
  ahead_.Put(std::move(entries));
}

// The lookups are counted last, when nothing can fail any more.
Status OverlayFilesystem::LookUpInto(std::vector<Result<Node>>& nodes,
                                     Ino parent,
                                     std::span<const std::string_view> names) {
  const uint64_t now = Clock::System().Steady();
  {
    const ReaderLock lock(tree_mutex_);
    const Inode* directory = TRY(FindDirectory(parent));
    const bool is_known =
        std::ranges::all_of(names, [&](std::string_view name) {
          return Tree::IsDecided(*directory, name);
        });
    for (size_t i = 0; is_known && i < names.size(); ++i) {
      Inode* child = tree_.FindChild(*directory, names[i]);
      if (child != nullptr) nodes[i] = Hold(*child, now);
    }
    if (is_known) return {};
  }
  const auto above = TRY(CheckedPlace(parent));
  std::vector<std::optional<BaseObject>> probes(names.size());
  if (above) {
    auto found =
        ProbeEach(base_, *above, names, ahead_.Take(parent, now, names));
    for (size_t i = 0; i < names.size(); ++i) {
      if (found[i]) {
        probes[i] = std::move(*found[i]);
      } else {
        nodes[i] = std::unexpected(std::move(found[i]).error());
      }
    }
  }
  std::vector<Inode*> children(names.size());
  const WriterLock lock(tree_mutex_);
  Inode* directory = TRY(FindDirectory(parent));
  for (size_t i = 0; i < names.size(); ++i) {
    children[i] = Child(*directory, names[i], probes[i]);
  }
  const uint64_t held = Clock::System().Steady();
  for (size_t i = 0; i < names.size(); ++i) {
    if (children[i] != nullptr) nodes[i] = Hold(*children[i], held);
  }
  return {};
}

// A refresh lists a directory to find the names that came.
bool OverlayFilesystem::ReportsNames(Ino directory) {
  const ReaderLock gate(gate_);
  std::string path;
  {
    const ReaderLock lock(tree_mutex_);
    const Inode* inode = tree_.Find(directory);
    if (inode == nullptr || !inode->record.base) return true;
    path = inode->record.base->path;
  }
  const auto opened = base_.OpenDirectory(path);
  return !opened || (::fcntl((*opened)->get(), F_GETFL) & O_PATH) == 0;
}

void OverlayFilesystem::Forget(Ino ino, uint64_t lookups) {
  const ReaderLock gate(gate_);
  std::shared_ptr<Journal> retired;
  std::vector<Extent> freed;
  {
    const WriterLock lock(tree_mutex_);
    freed = tree_.Forget(ino, lookups, &retired);
    if (!retired) judge_.GiveBack(freed);
    if (tree_.Find(ino) == nullptr) origins_.files().Drop(ino);
  }
  // Extents of an ended transaction go with its journal.
  if (!retired) ReleaseAll(*journal_, freed, journal_->last_lsn());
  promised_space_.Trim(*journal_);
}

// --- journal ---------------------------------------------------------------

Plan OverlayFilesystem::StartPlan(Op op, const Caller& caller) const {
  std::string exe = caller.known ? options_.exe_of(caller.pid) : std::string();
  return {op, caller, std::move(exe), options_.clock->Now()};
}

Result<Lsn> OverlayFilesystem::Accept(Change change,
                                      const StagedContent* content) {
  TRY(judge_.CheckLimits(change, tree_));
  TRY(budget_.TakeNotes(change));
  const Lsn lsn = TRY(AppendAndApply(change, content));
  judge_.Count();
  return lsn;
}

Result<Lsn> OverlayFilesystem::AppendAndApply(const Change& change,
                                              const StagedContent* content) {
  if (halted_) {
    return Fail(EROFS, "a commit or discard stopped half-way; run it again");
  }
  TRY(JournalFollowed());
  touch_watches_.Note(change, MayMoveDirectories(change, tree_));
  const Lsn lsn = TRY(journal_->Append(change, content));
  ApplyToTree(change);
  return lsn;
}

void OverlayFilesystem::ApplyToTree(const Change& change) {
  Apply(change, tree_);
  if (MayMoveDirectories(change, tree_)) judge_.ForgetMoves();
}

Status OverlayFilesystem::JournalFollowed() {
  size_t appended = 0;
  Status done;
  for (; appended < followed_.size() && done; ++appended) {
    const auto lsn = journal_->Append(followed_[appended]);
    if (!lsn) done = std::unexpected(lsn.error());
  }
  if (!done) --appended;
  followed_.erase(followed_.begin(),
                  followed_.begin() + static_cast<ptrdiff_t>(appended));
  return done;
}

Result<Lsn> OverlayFilesystem::Accept(Plan&& plan) {
  Inquiry* const inquiry = plan.inquiry();
  Change change = std::move(plan).Finish();
  TRY(judge_.CheckAnswered(inquiry, change, tree_));
  return Accept(std::move(change));
}

Result<Lsn> OverlayFilesystem::AcceptFor(Inode& inode, Plan&& plan,
                                         const StagedContent* content) {
  Inquiry* const inquiry = plan.inquiry();
  Change change = std::move(plan).Finish();
  TRY(judge_.CheckAnswered(inquiry, change, tree_));
  if (!inode.IsOrphan()) return Accept(std::move(change), content);
  // The opening process would take the write as saved, but no diff would show
  // it.
  if (inode.orphan->taken) {
    return Fail(ESTALE, "the base no longer has this file under a known name");
  }
  // Content of an ended transaction does not count for this one.
  if (!inode.orphan->retired) {
    TRY(judge_.CheckLimits(change, tree_));
    judge_.Count();
  }
  for (const Edit& edit : change.edits) {
    if (const auto* attr = std::get_if<AttrEdit>(&edit)) {
      tree_.SetAttr(attr->ino, attr->after);
    } else if (const auto* extents = std::get_if<ExtentEdit>(&edit)) {
      Tree::ReplaceExtents(inode, *extents);
    } else if (const auto* xattr = std::get_if<XattrEdit>(&edit)) {
      tree_.SetXattr(xattr->ino, xattr->name, xattr->after);
    }
  }
  return journal_->last_lsn();
}

std::shared_ptr<const TouchedInodes> OverlayFilesystem::Watch() {
  const ReaderLock gate(gate_);
  const WriterLock lock(tree_mutex_);
  return touch_watches_.Watch();
}

void OverlayFilesystem::UsePolicy(
    std::shared_ptr<const policy::Policy> policy) {
  const WriterLock gate(gate_);
  const WriterLock lock(tree_mutex_);
  judge_.Use(std::move(policy));
}

Status OverlayFilesystem::CountBaseAhead() {
  if (!judge_.HasFractions()) return {};
  std::vector<const policy::Limit*> wanting;
  {
    const WriterLock lock(tree_mutex_);
    wanting = judge_.meters().Wanting(tree_);
  }
  if (wanting.empty()) return {};
  const std::vector<uint64_t> totals = TRY(CountBase(base_, wanting));
  const WriterLock lock(tree_mutex_);
  judge_.meters().SetTotals(wanting, totals);
  return {};
}

void OverlayFilesystem::LogRefusal(Op op, const Caller& caller, Ino parent,
                                   std::string_view name, Ino new_parent,
                                   std::string_view new_name,
                                   const Error& error) {
  if (error.rule.empty() && IsStoreError(error.code)) return;
  Plan plan = StartPlan(op, caller);
  Change& change = plan.change();
  change.result = error.code;
  change.rule = error.rule;
  if (!error.rule.empty()) {
    change.reason = error.message;
    change.suggest = error.hint;
  }
  const ReaderLock mutation(write_gate_);
  const ReaderLock gate(gate_);
  const WriterLock lock(tree_mutex_);
  change.path = PathIn(tree_, parent, name);
  if (new_parent != kNoIno)
    change.new_path = PathIn(tree_, new_parent, new_name);
  const bool is_named =
      error.because == change.path || error.because == change.new_path;
  if (!is_named) change.because = error.because;
  // A denial has a policy, even a denial by the rules of txfs when no policy is
  // in force.
  if (!error.rule.empty()) change.policy = 1;
  if (judge_.policy()) change.policy = judge_.policy()->hash();
  // The refusal stands whether or not the log can take it.
  std::ignore = journal_->Append(std::move(plan).Finish());
}

std::shared_ptr<Journal> OverlayFilesystem::journal() {
  const ReaderLock gate(gate_);
  return journal_;
}

Status OverlayFilesystem::Sync() {
  const ReaderLock gate(gate_);
  return journal_->Sync();
}

Result<struct statvfs> OverlayFilesystem::StatFs() {
  struct statvfs st{};
  if (::fstatvfs(base_.root(), &st) != 0) return Fail(errno, "statfs");
  st.f_namemax = kMaxName;
  return st;
}

}  // namespace txfs
