#include "tests/journal/power_disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "journal/support/file.h"

namespace txfs {
namespace {

// The reserve's content means nothing, and LMDB makes its lock file anew.
bool HasContent(std::string_view path) {
  return !path.ends_with("/reserve") && !path.ends_with("/lock.mdb");
}

// Stores into a mapping are no calls.
bool IsMapped(std::string_view path) { return path.ends_with("/intake"); }

Bytes ReadFile(const std::string& path) {
  const auto text = ReadWholeFile(AT_FDCWD, path);
  if (!text) return {};
  const ByteSpan bytes = AsBytes(*text);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

void DiskImage::WriteTo(const std::string& dir) const {
  for (const auto& [path, content] : entries) {
    const std::string target = dir + "/" + path;
    if (!content) {
      EXPECT_TRUE(MakeDirectoryAt(AT_FDCWD, target, 0700));
      continue;
    }
    const auto fd = OpenAt(AT_FDCWD, target, O_WRONLY | O_CREAT, 0600);
    ASSERT_TRUE(fd);
    ASSERT_TRUE(WriteFully(fd->get(), 0, *content));
  }
}

PowerDisk::PowerDisk(const std::string& root, uint64_t seed)
    : DiskWatch(root), random_(seed) {
  nodes_.emplace_back().is_directory = true;
  Scan(0, root);
  Begin();
}

PowerDisk::~PowerDisk() { End(); }

void PowerDisk::Scan(size_t directory, const std::string& path) {
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const size_t node = nodes_.size();
    nodes_.emplace_back().is_directory = entry.is_directory();
    const std::string name = entry.path().filename();
    nodes_[directory].names[name] = node;
    nodes_[directory].durable_names[name] = node;
    if (entry.is_directory()) {
      Scan(node, entry.path());
    } else if (HasContent(entry.path().native())) {
      nodes_[node].current = ReadFile(entry.path());
      nodes_[node].durable = nodes_[node].current;
      nodes_[node].durable_size = nodes_[node].current.size();
    }
  }
}

void PowerDisk::LieAbout(std::string part, Lie lie) {
  lies_.emplace_back(std::move(part), lie);
}

size_t PowerDisk::Find(std::string_view path) const {
  path.remove_prefix(root().size());
  size_t node = 0;
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::string_view name = path.substr(0, path.find('/'));
    const auto found = nodes_[node].names.find(std::string(name));
    if (found == nodes_[node].names.end()) return kGone;
    node = found->second;
    path.remove_prefix(name.size());
  }
  return node;
}

PowerDisk::Name PowerDisk::PlaceOf(const std::string& path) const {
  const size_t slash = path.rfind('/');
  return {Find(std::string_view(path).substr(0, slash)), path.substr(slash + 1),
          Find(path)};
}

int PowerDisk::Before(DiskCall& call) {
  LookAtMappedFiles(0, root());
  if (visit_) visit_(call);
  if (call.kind != DiskCall::Kind::kSync || !Happens(failing_percent_)) {
    return 0;
  }
  const size_t node = Find(call.path);
  if (node == kGone || nodes_[node].is_directory) return 0;
  Lose(nodes_[node]);
  return EIO;
}

void PowerDisk::After(const DiskCall& call) {
  using Kind = DiskCall::Kind;
  const size_t node = Find(call.path);
  switch (call.kind) {
    case Kind::kMake:
    case Kind::kMakeDir:
      Make(call);
      break;
    case Kind::kWrite:
    case Kind::kAllocate:
      if (node == kGone) break;
      Look(nodes_[node], call.path, call.offset, call.offset + call.size,
           call.kind == Kind::kWrite);
      break;
    case Kind::kTruncate:
      if (node != kGone) Look(nodes_[node], call.path, 0, 0, false);
      break;
    case Kind::kSync:
      Sync(call);
      break;
    case Kind::kRename: {
      Name from = PlaceOf(call.path);
      Name to = PlaceOf(call.new_path);
      to.node = std::exchange(from.node, kGone);
      Change({from, to});
      break;
    }
    case Kind::kRemove: {
      Name gone = PlaceOf(call.path);
      gone.node = kGone;
      Change({gone});
      break;
    }
    default:
      break;  // not asked for
  }
  if (visit_) visit_(call);
}

void PowerDisk::Make(const DiskCall& call) {
  Name place = PlaceOf(call.path);
  if (place.node != kGone) {
    // It was there, but may have been emptied.
    if (!nodes_[place.node].is_directory) {
      Look(nodes_[place.node], call.path, 0, 0, false);
    }
    return;
  }
  place.node = nodes_.size();
  nodes_.emplace_back().is_directory = call.kind == DiskCall::Kind::kMakeDir;
  Change({place});
}

void PowerDisk::Change(NamesChange change) {
  for (const auto& [directory, name, node] : change) {
    nodes_[directory].names.erase(name);
    if (node != kGone) nodes_[directory].names[name] = node;
  }
  changes_.push_back(std::move(change));
}

void PowerDisk::Look(Node& node, const std::string& path, uint64_t from,
                     uint64_t to, bool written) {
  struct stat st{};
  if (!HasContent(path) || ::stat(path.c_str(), &st) != 0) return;
  const auto size = static_cast<uint64_t>(st.st_size);
  ++time_;
  if (size != node.current.size()) {
    node.sizes.push_back({time_, size});
    // What was cut off reads as zeros if the file grows again.
    if (size < node.current.size()) {
      from = std::min(from, size);
      to = std::max<uint64_t>(to, node.current.size());
    }
  }
  from = from / kSector * kSector;
  to = (to + kSector - 1) / kSector * kSector;
  node.current.resize(std::max({size, node.current.size(), to}));
  Bytes now(to - from);
  const auto fd = OpenAt(AT_FDCWD, path, O_RDONLY);
  if (!fd || !ReadFully(fd->get(), from, now)) return;
  for (uint64_t at = from; at < to; at += kSector) {
    const std::byte* seen = now.data() + (at - from);
    std::byte* known = node.current.data() + at;
    if (!written && std::memcmp(seen, known, kSector) == 0) continue;
    std::memcpy(known, seen, kSector);
    Version<Sector> version{time_};
    std::memcpy(version.value.data(), seen, kSector);
    node.sectors[at / kSector].push_back(version);
  }
  node.current.resize(size);
}

void PowerDisk::LookAtMappedFiles(size_t directory, const std::string& path) {
  for (const auto& [name, node] : nodes_[directory].names) {
    const std::string child = path + "/" + name;
    if (nodes_[node].is_directory) {
      LookAtMappedFiles(node, child);
    } else if (IsMapped(child)) {
      Look(nodes_[node], child, 0, nodes_[node].current.size(), false);
    }
  }
}

void PowerDisk::Sync(const DiskCall& call) {
  const size_t found = Find(call.path);
  if (found == kGone) return;
  Node& node = nodes_[found];
  Lie lie = Lie::kNone;
  for (const auto& [part, told] : lies_) {
    if (call.path.find(part) != std::string::npos) lie = told;
  }
  const uint64_t before = std::exchange(node.synced_at, time_++);
  if (lie == Lie::kIgnoresSync) return;
  if (node.is_directory) {
    SyncNames(found);
  } else {
    Settle(node, lie == Lie::kSyncsLate ? before : node.synced_at);
  }
}

void PowerDisk::SyncNames(size_t directory) {
  std::erase_if(changes_, [&](const NamesChange& change) {
    const auto is_in = [&](const Name& name) {
      return name.directory == directory;
    };
    if (std::ranges::none_of(change, is_in)) return false;
    for (const auto& [parent, name, node] : change) {
      nodes_[parent].durable_names.erase(name);
      if (node != kGone) nodes_[parent].durable_names[name] = node;
    }
    return true;
  });
}

void PowerDisk::Settle(Node& node, uint64_t until) {
  // The newest version that a sync takes along becomes the durable one.
  const auto settle = [&](auto& versions, const auto& keep) {
    for (size_t i = versions.size(); i-- > 0;) {
      if (versions[i].lost || versions[i].time > until) continue;
      keep(versions[i].value);
      versions.erase(versions.begin(),
                     versions.begin() + static_cast<ptrdiff_t>(i) + 1);
      return;
    }
  };
  settle(node.sizes, [&](uint64_t size) { node.durable_size = size; });
  for (auto& [number, versions] : node.sectors) {
    settle(versions, [&](const Sector& sector) {
      const uint64_t at = number * kSector;
      node.durable.resize(std::max(node.durable.size(), at + kSector));
      std::ranges::copy(sector,
                        node.durable.begin() + static_cast<ptrdiff_t>(at));
    });
  }
  std::erase_if(node.sectors,
                [](const auto& sector) { return sector.second.empty(); });
}

void PowerDisk::Lose(Node& node) {
  for (auto& [number, versions] : node.sectors) {
    for (auto& version : versions) version.lost = true;
  }
}

PowerDisk::Luck PowerDisk::RandomLuck() {
  switch (random_() % 5) {
    case 0:
      return {0, false};
    case 1:
      return {100, false};
    case 2:
      return {50, false};
    case 3:
      return {static_cast<unsigned>(random_() % 100), true};
    default:
      return {0, true};
  }
}

// 0 is what is durable, then come the versions.
size_t PowerDisk::Choose(const Luck& luck, size_t versions) {
  if (Happens(luck.newest_percent)) return versions;
  return luck.others ? random_() % (versions + 1) : 0;
}

Bytes PowerDisk::Content(const Node& node, Luck luck, bool mapped) {
  // Often a file is written back as a whole, or not at all.
  if (random_() % 4 == 0) luck = {Happens(50) ? 100U : 0U, false};
  const size_t which = Choose(luck, node.sizes.size());
  const uint64_t size =
      which == 0 ? node.durable_size : node.sizes[which - 1].value;
  Bytes content = node.durable;
  for (const auto& [number, versions] : node.sectors) {
    const size_t chosen = Choose(luck, versions.size());
    if (chosen == 0) continue;
    const uint64_t at = number * kSector;
    content.resize(std::max(content.size(), at + kSector));
    // A mapping can be written back while it is stored into.
    const size_t part =
        mapped && luck.others && Happens(20) ? random_() % kSector : kSector;
    std::copy_n(versions[chosen - 1].value.begin(), part,
                content.begin() + static_cast<ptrdiff_t>(at));
  }
  content.resize(size);
  return content;
}

PowerDisk::Names PowerDisk::NamesAfterPowerLoss(const Luck& luck) {
  Names names;
  for (const Node& node : nodes_) names.push_back(node.durable_names);
  // Filesystems with a journal keep the order of changes, others need not.
  const bool in_order = Happens(50);
  for (const NamesChange& change : changes_) {
    if (Choose(luck, 1) == 0) {
      if (in_order) break;
      continue;
    }
    for (const auto& [directory, name, node] : change) {
      names[directory].erase(name);
      if (node != kGone) names[directory][name] = node;
    }
  }
  return names;
}

void PowerDisk::Collect(DiskImage& image, const Names& names, size_t directory,
                        const std::string& path, const Luck& luck) {
  for (const auto& [name, node] : names[directory]) {
    const std::string child = path + name;
    if (nodes_[node].is_directory) {
      image.entries[child];
      Collect(image, names, node, child + "/", luck);
    } else if (!child.ends_with("/lock.mdb")) {
      image.entries[child] = Content(nodes_[node], luck, IsMapped("/" + child));
    }
  }
}

DiskImage PowerDisk::ImageAfterPowerLoss() {
  LookAtMappedFiles(0, root());
  const Luck luck = RandomLuck();
  DiskImage image;
  Collect(image, NamesAfterPowerLoss(luck), 0, "", luck);
  return image;
}

}  // namespace txfs
