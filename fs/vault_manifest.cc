#include "fs/vault_manifest.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "fs/base_directory.h"
#include "journal/base/file.h"
#include "journal/frame.h"

namespace txfs {
namespace {

constexpr FileFrame kManifestFrame = {
    .magic = "TXFSVLT\n", .version = 1, .what = "vault manifest"};

/// Where an entry is in the order of a manifest.
auto PlaceOf(const VaultEntry& entry) {
  return std::tie(entry.mount, entry.path);
}

class ManifestTaker {
 public:
  Result<VaultManifest> Take(const Vault& vault) {
    for (const auto& [mount, directory] : vault) {
      mount_ = mount;
      const BaseDirectory root(
          TRY(OpenAt(directory.get(), ".", O_RDONLY | O_DIRECTORY)));
      TRY(List(root, ""));
    }
    for (const auto& [index, links] : links_) {
      VaultEntry& entry = manifest_[index];
      entry.shared = links > names_[{entry.mount, entry.ino}];
    }
    std::ranges::sort(manifest_, {}, PlaceOf);
    return std::move(manifest_);
  }

 private:
  Status List(const BaseDirectory& root, const std::string& path) {
    for (const BaseEntry& child : TRY(root.List(path))) {
      TRY(Add(root, JoinPath(path, child.name)));
    }
    return {};
  }

  Status Add(const BaseDirectory& root, const std::string& path) {
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
         .mtime = Timestamp::From(st.st_mtim)});
    if (!is_directory) {
      ++names_[{mount_, st.st_ino}];
      if (st.st_nlink > 1) links_[index] = st.st_nlink;
      return {};
    }
    const Status listed = List(root, path);
    if (listed || listed.error().code != EACCES) return listed;
    // An ordinary user may delete a directory that it may not look into.
    manifest_.resize(index + 1);
    manifest_[index].sealed = true;
    std::erase_if(links_, [&](const auto& link) { return link.first > index; });
    return {};
  }

  VaultManifest manifest_;
  std::string mount_;
  std::map<size_t, nlink_t> links_;  ///< by index: of those that have several
  std::map<std::pair<std::string, uint64_t>, nlink_t> names_;  ///< in the vault
};

bool IsAsItWas(const VaultEntry& then, const VaultEntry& now) {
  const bool same_object =
      then.ino == now.ino && (then.mode & S_IFMT) == (now.mode & S_IFMT);
  if (then.shared) return same_object;
  return same_object && then.mode == now.mode && then.uid == now.uid &&
         then.gid == now.gid && then.size == now.size &&
         then.mtime == now.mtime;
}

/// Compares two sorted manifests side by side.
class Comparison {
 public:
  std::vector<std::string> Run(const VaultManifest& then,
                               const VaultManifest& now) {
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
        Say(*fresh++, "was put there");
      } else {
        if (old->sealed || fresh->sealed) sealed_.push_back(&*old);
        if (!IsAsItWas(*old, *fresh)) Say(*old, "was changed");
        ++old, ++fresh;
      }
    }
    return std::move(differences_);
  }

 private:
  void Say(const VaultEntry& entry, std::string_view what) {
    const bool hidden = std::ranges::any_of(sealed_, [&](const auto* above) {
      return above->mount == entry.mount && above->path != entry.path &&
             IsAtOrBelow(entry.path, above->path);
    });
    if (hidden) return;
    const std::string on = entry.mount.empty()
                               ? ""
                               : " (on the filesystem at " + entry.mount + ")";
    differences_.push_back(entry.path + on + " " + std::string(what));
  }

  /// Directories of which one of the manifests does not know the content.
  std::vector<const VaultEntry*> sealed_;
  std::vector<std::string> differences_;
};

}  // namespace

Result<VaultManifest> TakeManifest(const Vault& vault) {
  return ManifestTaker().Take(vault);
}

Result<std::vector<std::string>> CompareManifest(
    const Vault& vault, const VaultManifest& manifest) {
  return Comparison().Run(manifest, TRY(TakeManifest(vault)));
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
    out.Put(static_cast<uint8_t>(entry.shared));
    out.Put(static_cast<uint8_t>(entry.sealed));
  }
  return PutInFrame(kManifestFrame, bytes);
}

Result<VaultManifest> DecodeManifest(ByteSpan in) {
  Decoder decoder(TRY(TakeFromFrame(kManifestFrame, in)));
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
    entry.shared = decoder.Get<uint8_t>() != 0;
    entry.sealed = decoder.Get<uint8_t>() != 0;
  }
  if (!decoder.ok() || decoder.remaining() != 0) return Damaged(kManifestFrame);
  return manifest;
}

}  // namespace txfs
