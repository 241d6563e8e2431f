#include "tests/conformance/power_cut.h"

#include <fcntl.h>
#include <linux/limits.h>
#include <signal.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <ranges>
#include <set>

namespace txfs::testing {
namespace {

using Kind = DiskCall::Kind;

constexpr uint64_t kSector = 512;
/// Moves of directories from one to another keep their order: another one
/// could make a circle.
constexpr uint64_t kMovesOfDirectories = 0;

std::string ProcPath(int handle) {
  return "/proc/self/fd/" + std::to_string(handle);
}

/// What cannot be taken back makes an image that no disk has.
void Demand(bool done, std::string_view what) {
  if (done) return;
  std::cerr << "power cut: " << what << ": " << std::strerror(errno)
            << std::endl;
  ::_exit(1);
}

UniqueFd OpenHandle(int directory, const std::string& name) {
  return UniqueFd(
      ::openat(directory, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
}

}  // namespace

PowerCut::PowerCut(std::string root, std::string graves, uint64_t seed,
                   uint64_t at)
    : DiskWatch(std::move(root)),
      graves_(std::move(graves)),
      random_(seed),
      at_(at) {
  Begin();
}

PowerCut::~PowerCut() { End(); }

// --- what is there ---------------------------------------------------------

PowerCut::Attributes PowerCut::Read(int handle) {
  Attributes attributes;
  Demand(::fstat(handle, &attributes.st) == 0, "stat");
  const std::string path = ProcPath(handle);
  std::string names(XATTR_LIST_MAX, '\0');
  const ssize_t size = ::listxattr(path.c_str(), names.data(), names.size());
  for (ssize_t at = 0; at < size;) {
    const std::string name = names.c_str() + at;
    at += static_cast<ssize_t>(name.size()) + 1;
    if (!name.starts_with("user.")) continue;
    std::string value(XATTR_SIZE_MAX, '\0');
    const ssize_t length =
        ::getxattr(path.c_str(), name.c_str(), value.data(), value.size());
    Demand(length >= 0, "getxattr");
    value.resize(static_cast<size_t>(length));
    attributes.xattrs[name] = value;
  }
  return attributes;
}

uint64_t PowerCut::Know(UniqueFd handle, bool made_just_now) {
  struct stat st{};
  if (!handle.valid() || ::fstat(handle.get(), &st) != 0) return 0;
  const auto [node, is_new] = nodes_.try_emplace(st.st_ino);
  if (!is_new) return st.st_ino;
  if (!made_just_now) {
    node->second.versions.push_back({std::nullopt, Read(handle.get())});
  }
  node->second.handle = std::move(handle);
  return st.st_ino;
}

int PowerCut::HandleOf(uint64_t ino) const {
  return nodes_.at(ino).handle.get();
}

bool PowerCut::IsDirectory(uint64_t ino) const {
  struct stat st{};
  return ::fstat(HandleOf(ino), &st) == 0 && S_ISDIR(st.st_mode);
}

PowerCut::Spot PowerCut::Find(const std::string& path) {
  const size_t slash = path.rfind('/');
  Spot spot{.name = path.substr(slash + 1)};
  spot.directory = Know(OpenHandle(AT_FDCWD, path.substr(0, slash)));
  if (spot.directory == 0) return spot;
  spot.ino = Know(OpenHandle(HandleOf(spot.directory), spot.name));
  return spot;
}

uint64_t PowerCut::ObjectOf(const DiskCall& call) {
  if (call.fd < 0) return Know(OpenHandle(AT_FDCWD, call.path));
  return Know(UniqueFd(::open(ProcPath(call.fd).c_str(), O_PATH | O_CLOEXEC)));
}

// --- a call ----------------------------------------------------------------

int PowerCut::Before(DiskCall& call) {
  if (++calls_ == at_ || cut_next_) Cut();
  made_ = {};
  pending_ = Foresee(call);
  return 0;
}

std::optional<PowerCut::Change> PowerCut::Foresee(const DiskCall& call) {
  switch (call.kind) {
    case Kind::kMake: {
      const Spot spot = Find(call.path);
      if (spot.ino == 0) return MakeName(spot);
      if ((call.flags & O_TRUNC) == 0) return std::nullopt;
      return ChangeData(call, spot.ino);
    }
    case Kind::kMakeDir:
    case Kind::kMakeNode:
      return MakeName(Find(call.path));
    case Kind::kLink: {
      const Spot from = Find(call.path);
      Change change = MakeName(Find(call.new_path));
      change.chains.push_back({from.ino});
      return change;
    }
    case Kind::kRemove:
      return Remove(Find(call.path));
    case Kind::kRename:
      return Rename(call);
    case Kind::kWrite:
    case Kind::kAllocate:
    case Kind::kTruncate:
      return ChangeData(call, ObjectOf(call));
    case Kind::kAttributes: {
      const uint64_t ino = ObjectOf(call);
      if (ino == 0) return std::nullopt;
      return Change{.chains = {{ino, !IsDirectory(ino)}}, .nodes = {ino}};
    }
    case Kind::kSync:
    case Kind::kSyncAll:
      return std::nullopt;
  }
  return std::nullopt;
}

void PowerCut::TouchDirectory(Change& change, uint64_t ino) {
  change.chains.push_back({ino});
  change.nodes.push_back(ino);
}

PowerCut::Change PowerCut::MakeName(const Spot& spot) {
  Change change;
  made_ = spot;
  if (spot.directory == 0) return change;
  TouchDirectory(change, spot.directory);
  change.take_back = [this, spot] {
    const int directory = HandleOf(spot.directory);
    const char* name = spot.name.c_str();
    const bool gone =
        ::unlinkat(directory, name, 0) == 0 ||
        (errno == EISDIR && ::unlinkat(directory, name, AT_REMOVEDIR) == 0);
    Demand(gone, "take back " + spot.name);
  };
  return change;
}

/// Keeps what may lose its last name; returns what gives it the name back.
std::function<void()> PowerCut::Bury(const Spot& spot) {
  if (IsDirectory(spot.ino)) {
    return [this, spot] {
      const int directory = HandleOf(spot.directory);
      Demand(::mkdirat(directory, spot.name.c_str(), 0700) == 0, "mkdir");
      nodes_.at(spot.ino).handle = OpenHandle(directory, spot.name);
    };
  }
  struct stat st{};
  Demand(::fstat(HandleOf(spot.ino), &st) == 0, "stat");
  if (st.st_nlink == 1) {
    const std::string grave = graves_ + "/" + std::to_string(++buried_);
    Demand(::linkat(HandleOf(spot.directory), spot.name.c_str(), AT_FDCWD,
                    grave.c_str(), 0) == 0,
           "bury " + spot.name);
  }
  return [this, spot] {
    Demand(::linkat(AT_FDCWD, ProcPath(HandleOf(spot.ino)).c_str(),
                    HandleOf(spot.directory), spot.name.c_str(),
                    AT_SYMLINK_FOLLOW) == 0,
           "bring back " + spot.name);
  };
}

std::optional<PowerCut::Change> PowerCut::Remove(const Spot& spot) {
  if (spot.directory == 0 || spot.ino == 0) return std::nullopt;
  Change change;
  TouchDirectory(change, spot.directory);
  change.chains.push_back({spot.ino});
  change.take_back = Bury(spot);
  return change;
}

std::optional<PowerCut::Change> PowerCut::Rename(const DiskCall& call) {
  const Spot from = Find(call.path);
  const Spot to = Find(call.new_path);
  const bool does_nothing = from.ino == 0 || from.ino == to.ino;
  if (does_nothing || to.directory == 0) return std::nullopt;
  Change change;
  TouchDirectory(change, from.directory);
  TouchDirectory(change, to.directory);
  change.chains.push_back({from.ino});
  if (to.ino != 0) change.chains.push_back({to.ino});
  if (IsDirectory(from.ino) && from.directory != to.directory) {
    change.chains.push_back({kMovesOfDirectories});
  }
  const bool exchanges = (call.flags & RENAME_EXCHANGE) != 0;
  std::function<void()> bring_back;
  if (to.ino != 0 && !exchanges) bring_back = Bury(to);
  change.take_back = [this, from, to, exchanges, bring_back] {
    Demand(::renameat2(HandleOf(to.directory), to.name.c_str(),
                       HandleOf(from.directory), from.name.c_str(),
                       exchanges ? RENAME_EXCHANGE : RENAME_NOREPLACE) == 0,
           "rename " + to.name + " back to " + from.name);
    if (bring_back) bring_back();
  };
  return change;
}

std::optional<PowerCut::Change> PowerCut::ChangeData(const DiskCall& call,
                                                     uint64_t ino) {
  if (ino == 0) return std::nullopt;
  struct stat st{};
  Demand(::fstat(HandleOf(ino), &st) == 0, "stat");
  if (!S_ISREG(st.st_mode)) return std::nullopt;
  const auto size = static_cast<uint64_t>(st.st_size);
  Data data{.ino = ino, .offset = call.offset};
  if (call.kind == Kind::kWrite) {
    data.before.resize(call.size);
  } else if (call.kind == Kind::kAllocate) {
    data.before.resize(std::min(call.size, size - std::min(size, call.offset)));
  } else {
    data.cut = true;
    data.offset = call.kind == Kind::kTruncate ? std::min(call.size, size) : 0;
    data.before.resize(size - data.offset);
  }
  const UniqueFd file(
      ::open(ProcPath(HandleOf(ino)).c_str(), O_RDONLY | O_CLOEXEC));
  Demand(file.valid() &&
             ::pread(file.get(), data.before.data(), data.before.size(),
                     static_cast<off_t>(data.offset)) >= 0,
         "read " + call.path);
  return Change{
      .chains = {{ino, true}}, .nodes = {ino}, .data = std::move(data)};
}

void PowerCut::After(const DiskCall& call) {
  if (call.kind == Kind::kSync || call.kind == Kind::kSyncAll) Sync(call);
  if (!pending_) return;
  Change change = *std::exchange(pending_, std::nullopt);
  if (made_.directory != 0) {
    const uint64_t made =
        Know(OpenHandle(HandleOf(made_.directory), made_.name), true);
    Demand(made != 0, "find " + call.path);
    change.chains.push_back({made});
    if (call.kind != Kind::kLink) change.nodes.push_back(made);
  }
  const size_t number = changes_.size();
  for (const Chain& chain : change.chains) by_chain_[chain].push_back(number);
  for (const uint64_t ino : change.nodes) {
    nodes_.at(ino).versions.push_back({number, Read(HandleOf(ino))});
  }
  changes_.push_back(std::move(change));
}

// --- syncs -----------------------------------------------------------------

void PowerCut::Sync(const DiskCall& call) {
  const bool all = call.kind == Kind::kSyncAll;
  if (ignored_ && (ignored_->empty() ? all : call.path.ends_with(*ignored_))) {
    return;
  }
  if (all) return Forget();
  const uint64_t ino = ObjectOf(call);
  if (ino == 0) return;
  const bool is_directory = IsDirectory(ino);
  for (const size_t change : by_chain_[{ino, !is_directory}]) {
    MakeDurable(change);
    auto& data = changes_[change].data;
    if (data) data->durable = true;
  }
}

/// With all that came before it in its chains.
void PowerCut::MakeDurable(size_t number) {
  Change& change = changes_[number];
  if (std::exchange(change.durable, true)) return;
  for (const Chain& chain : change.chains) {
    for (const size_t earlier : by_chain_[chain]) {
      if (earlier < number) MakeDurable(earlier);
    }
  }
}

void PowerCut::Forget() {
  changes_.clear();
  by_chain_.clear();
  nodes_.clear();
  EmptyGraves();
}

void PowerCut::EmptyGraves() {
  for (const auto& grave : std::filesystem::directory_iterator(graves_)) {
    ::unlink(grave.path().c_str());
  }
}

// --- the end ---------------------------------------------------------------

void PowerCut::Cut() {
  const std::vector<bool> kept = Choose();
  const unsigned lost_percent = std::array{0U, 50U, 100U}[random_() % 3];
  for (size_t i = changes_.size(); i-- > 0;) {
    const Change& change = changes_[i];
    if (!kept[i] && change.take_back) change.take_back();
    if (change.data) TakeBackData(*change.data, kept[i], lost_percent);
  }
  for (const auto& [ino, node] : nodes_) SetAttributes(node, kept);
  EmptyGraves();
  ::kill(::getpid(), SIGKILL);
  ::_exit(1);
}

/// Which changes survive.
std::vector<bool> PowerCut::Choose() {
  const unsigned percent = std::array{0U, 100U, 50U, 80U}[random_() % 4];
  // As a filesystem with one journal has it; but content, and with it the size,
  // may be later.
  const bool in_order = Happens(50);
  const size_t end = random_() % (changes_.size() + 1);
  std::set<Chain> broken;
  std::vector<bool> kept;
  for (const Change& change : changes_) {
    const bool survives =
        in_order && !change.data ? kept.size() < end : Happens(percent);
    const bool follows = std::ranges::none_of(
        change.chains,
        [&](const Chain& chain) { return broken.contains(chain); });
    kept.push_back(change.durable || (survives && follows));
    if (!kept.back()) broken.insert(change.chains.begin(), change.chains.end());
  }
  return kept;
}

void PowerCut::TakeBackData(const Data& data, bool kept,
                            unsigned lost_percent) {
  if (data.durable || (data.cut && kept)) return;
  const UniqueFd file(
      ::open(ProcPath(HandleOf(data.ino)).c_str(), O_WRONLY | O_CLOEXEC));
  Demand(file.valid(), "open a file");
  for (uint64_t at = 0; at < data.before.size();) {
    const uint64_t place = data.offset + at;
    const uint64_t length =
        std::min(kSector - place % kSector, data.before.size() - at);
    if (data.cut || Happens(lost_percent)) {
      Demand(::pwrite(file.get(), data.before.data() + at, length,
                      static_cast<off_t>(place)) >= 0,
             "write a file");
    }
    at += length;
  }
}

void PowerCut::SetAttributes(const Node& node, const std::vector<bool>& kept) {
  const auto version = std::ranges::find_if(
      node.versions.rbegin(), node.versions.rend(),
      [&](const Version& each) { return !each.change || kept[*each.change]; });
  if (version == node.versions.rend()) return;  // it was never there
  const auto& [st, xattrs] = version->attributes;
  const int handle = node.handle.get();
  const std::string path = ProcPath(handle);
  const Attributes now = Read(handle);
  if (S_ISREG(st.st_mode) && now.st.st_size != st.st_size) {
    Demand(::truncate(path.c_str(), st.st_size) == 0, "truncate");
  }
  if (now.st.st_uid != st.st_uid || now.st.st_gid != st.st_gid) {
    Demand(::fchownat(handle, "", st.st_uid, st.st_gid, AT_EMPTY_PATH) == 0,
           "chown");
  }
  if (now.st.st_mode != st.st_mode) {
    Demand(::chmod(path.c_str(), st.st_mode & 07777) == 0, "chmod");
  }
  for (const auto& [name, value] : now.xattrs) {
    if (!xattrs.contains(name)) ::removexattr(path.c_str(), name.c_str());
  }
  for (const auto& [name, value] : xattrs) {
    Demand(::setxattr(path.c_str(), name.c_str(), value.data(), value.size(),
                      0) == 0,
           "setxattr");
  }
  const timespec times[2] = {st.st_atim, st.st_mtim};
  Demand(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0, "utimens");
}

}  // namespace txfs::testing
