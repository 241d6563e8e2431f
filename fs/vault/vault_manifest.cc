#include "fs/vault/vault_manifest.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "fs/base/base_directory.h"
#include "fs/vault/vault_sums.h"
#include "journal/frame.h"
#include "journal/support/file.h"
#include "journal/support/stored.h"

namespace txfs {
namespace {

constexpr FileFrame kManifestFrame = {
    .magic = "TXFSVLT\n", .version = 2, .what = "vault manifest"};

/// Where an entry is in the order of a manifest.
auto PlaceOf(const VaultEntry& entry) {
  return std::tie(entry.mount, entry.path);
}

bool IsOfSums(std::string_view name) {
  if (name.ends_with(kTemporarySuffix)) {
    name.remove_suffix(kTemporarySuffix.size());
  }
  return name == kSumsFile;
}

class ManifestTaker {
 public:
  Result<VaultManifest> Take(const Vault& vault) {
    for (const auto& [mount, directory] : vault) {
      mount_ = mount;
      const BaseDirectory root(
          TRY(OpenAt(directory.get(), ".", O_RDONLY | O_DIRECTORY)));
      TRY(AddTree(root));
    }
    for (const auto& [index, links] : links_) {
      VaultEntry& entry = manifest_[index];
      entry.shared = links > names_[{entry.mount, entry.ino}];
    }
    std::ranges::sort(manifest_, {}, PlaceOf);
    return std::move(manifest_);
  }

 private:
  // No recursion: a tree may be deeper than the stack.
  Status AddTree(const BaseDirectory& root) {
    std::vector<std::string> waiting{""};
    while (!waiting.empty()) {
      const std::string next = std::move(waiting.back());
      waiting.pop_back();
      TRY(Add(root, next, waiting));
    }
    return {};
  }

  static Status List(const BaseDirectory& root, const std::string& path,
                     std::vector<std::string>& names) {
    for (const BaseEntry& child : TRY(root.List(path))) {
      if (path.empty() && IsOfSums(child.name)) continue;
      names.push_back(JoinPath(path, child.name));
    }
    if (names.empty()) return {};
    // What may be listed need not be open to a search.
    const auto seen = root.Stat(names.front());
    if (!seen && seen.error().code == EACCES) return Fail(EACCES, path);
    return {};
  }

  /// What is in it comes to `waiting`.
  Status Add(const BaseDirectory& root, const std::string& path,
             std::vector<std::string>& waiting) {
    const struct stat st = TRY(root.Stat(path));
    const bool is_directory = S_ISDIR(st.st_mode);
    const size_t index = manifest_.size();
    manifest_.push_back(
        {.mount = mount_,
         .path = path,
         .ino = st.st_ino,
         .mode = st.st_mode,
         .uid = st.st_uid,
         .gid = st.st_gid,
         .size = is_directory ? 0 : static_cast<uint64_t>(st.st_size),
         .mtime = Timestamp::From(st.st_mtim),
         .ctime = is_directory ? Timestamp() : Timestamp::From(st.st_ctim)});
    if (!is_directory) {
      ++names_[{mount_, st.st_ino}];
      if (st.st_nlink > 1) links_[index] = st.st_nlink;
      return {};
    }
    std::vector<std::string> names;
    const Status listed = List(root, path, names);
    // An ordinary user may delete a directory that it may not look into.
    manifest_[index].sealed = !listed && listed.error().code == EACCES;
    if (manifest_[index].sealed) return {};
    std::ranges::move(names, std::back_inserter(waiting));
    return listed;
  }

  VaultManifest manifest_;
  std::string mount_;
  std::map<size_t, nlink_t> links_;  ///< by index: of those that have several
  std::map<std::pair<std::string, uint64_t>, nlink_t> names_;  ///< in the vault
};

/// Directories of the vault itself come and go with what is in them.
bool IsRoot(const VaultEntry& entry) { return entry.path.empty(); }

/// Whether `now` is of a copy of the vault that `then` is of.
bool IsCopy(const VaultManifest& then, const VaultManifest& now) {
  return !then.empty() && !now.empty() && IsRoot(then.front()) &&
         IsRoot(now.front()) && then.front().ino != now.front().ino;
}

bool IsAsItWas(const VaultEntry& then, const VaultEntry& now, bool is_copy) {
  const bool same_object = (is_copy || then.ino == now.ino) &&
                           (then.mode & S_IFMT) == (now.mode & S_IFMT);
  if (then.shared || IsRoot(then)) return same_object;
  return same_object && then.mode == now.mode && then.uid == now.uid &&
         then.gid == now.gid && then.size == now.size &&
         then.mtime == now.mtime;
}

/// Whether something was done to what looks the same.
bool WasTouched(const VaultEntry& then, const VaultEntry& now) {
  return !then.shared && then.ctime != Timestamp() && then.ctime != now.ctime;
}

/// Compares two sorted manifests side by side.
class Comparison {
 public:
  explicit Comparison(const Vault& vault) : vault_(vault) {}

  Result<VaultDifferences> Run(const VaultManifest& then,
                               const VaultManifest& now) {
    found_.is_copy = IsCopy(then, now);
    auto old = then.begin();
    auto fresh = now.begin();
    while (old != then.end() || fresh != now.end()) {
      const bool only_old =
          fresh == now.end() ||
          (old != then.end() && PlaceOf(*old) < PlaceOf(*fresh));
      const bool only_fresh =
          !only_old && (old == then.end() || PlaceOf(*fresh) < PlaceOf(*old));
      if (only_old) {
        Say(*old++, "is missing");
      } else if (only_fresh) {
        // Version 1 of the format has no entries of these.
        if (!IsRoot(*fresh)) Say(*fresh, "was added");
        ++fresh;
      } else {
        if (old->sealed || fresh->sealed) sealed_.push_back(&*old);
        TRY(Compare(*old++, *fresh++));
      }
    }
    TRY(CompareTouched());
    return std::move(found_);
  }

 private:
  Status Compare(const VaultEntry& then, const VaultEntry& now) {
    if (!IsAsItWas(then, now, found_.is_copy)) {
      Say(then, "was changed");
      return {};
    }
    if (!found_.is_copy && WasTouched(then, now)) touched_.push_back(then);
    return {};
  }

  /// What was touched has the content that it had, or that is not known.
  Status CompareTouched() {
    if (touched_.empty()) return {};
    // Those that cannot be read are as good as none.
    const SumsByFile sums =
        MatchSums(touched_, ReadSums(vault_).value_or(VaultSums()));
    for (const VaultEntry* entry : sums.missing) {
      found_.doubts.push_back(NameInVault(entry->mount, entry->path));
    }
    for (const ContentSum& sum : sums.found) {
      if (!sum.whole) {
        found_.doubts.push_back(NameInVault(sum.mount, sum.path));
      }
    }
    for (const OtherContent& other :
         TRY(FindOtherContent(vault_, sums.found, false))) {
      found_.list.push_back(NameInVault(other.mount, other.path) + " " +
                            other.what);
    }
    return {};
  }

  void Say(const VaultEntry& entry, std::string_view what) {
    const bool hidden = std::ranges::any_of(sealed_, [&](const auto* above) {
      return above->mount == entry.mount && above->path != entry.path &&
             IsAtOrBelow(entry.path, above->path);
    });
    if (hidden) return;
    found_.list.push_back(NameInVault(entry.mount, entry.path) + " " +
                          std::string(what));
  }

  const Vault& vault_;
  VaultManifest touched_;
  /// Directories of which one of the manifests does not know the content.
  std::vector<const VaultEntry*> sealed_;
  VaultDifferences found_;
};

}  // namespace

Result<VaultManifest> TakeManifest(const Vault& vault) {
  return ManifestTaker().Take(vault);
}

Result<VaultDifferences> CompareManifest(const Vault& vault,
                                         const VaultManifest& manifest) {
  return Comparison(vault).Run(manifest, TRY(TakeManifest(vault)));
}

std::string NameInVault(const std::string& mount, const std::string& path) {
  if (mount.empty()) return path;
  return path + " (on the filesystem at " + mount + ")";
}

Bytes EncodeManifest(const VaultManifest& manifest) {
  Bytes bytes;
  Encoder out(bytes);
  out.Put(static_cast<uint32_t>(manifest.size()));
  for (const VaultEntry& entry : manifest) {
    out.PutString(entry.mount);
    out.PutString(entry.path);
    out.Put(entry.ino);
    out.Put(entry.mode);
    out.Put(entry.uid);
    out.Put(entry.gid);
    out.Put(entry.size);
    EncodeTime(entry.mtime, out);
    EncodeTime(entry.ctime, out);
    out.Put(static_cast<uint8_t>(entry.shared));
    out.Put(static_cast<uint8_t>(entry.sealed));
  }
  return PutInFrame(kManifestFrame, bytes);
}

Result<VaultManifest> DecodeManifest(ByteSpan in) {
  Decoder decoder(TRY(TakeFromFrame(kManifestFrame, in)));
  const uint32_t version = VersionIn(kManifestFrame, in);
  VaultManifest manifest;
  const auto count = decoder.Get<uint32_t>();
  for (uint32_t i = 0; i < count && decoder.ok(); ++i) {
    VaultEntry& entry = manifest.emplace_back();
    entry.mount = decoder.GetString();
    entry.path = decoder.GetString();
    entry.ino = decoder.Get<uint64_t>();
    entry.mode = decoder.Get<uint32_t>();
    entry.uid = decoder.Get<uint32_t>();
    entry.gid = decoder.Get<uint32_t>();
    entry.size = decoder.Get<uint64_t>();
    entry.mtime = DecodeTime(decoder);
    if (version > 1) entry.ctime = DecodeTime(decoder);
    entry.shared = decoder.GetBool();
    entry.sealed = decoder.GetBool();
    const bool in_order =
        manifest.size() == 1 ||
        PlaceOf(manifest[manifest.size() - 2]) < PlaceOf(entry);
    const bool means = IsPathBelow(entry.mount) && IsPathBelow(entry.path) &&
                       IsModeOfObject(entry.mode);
    if (!in_order || !means) decoder.SetBad();
  }
  if (!decoder.ok() || decoder.remaining() != 0) return Damaged(kManifestFrame);
  return manifest;
}

}  // namespace txfs
