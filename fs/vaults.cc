#include "fs/vaults.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tuple>

#include "fs/base_directory.h"
#include "journal/base/file.h"

namespace txfs {
namespace {

constexpr const char* kParent = "vault";
constexpr const char* kWorkspaceStore = ".txfs";

/// Identifies the mount a descriptor is in: renames do not cross from one to
/// another, though both be of one filesystem.
uint64_t MountOf(int fd) {
  struct statx st{};
  const bool known = ::statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) == 0 &&
                     (st.stx_mask & STATX_MNT_ID) != 0;
  return known ? st.stx_mnt_id : 0;
}

bool SameMount(int a, int b) {
  struct stat of_a{};
  struct stat of_b{};
  return ::fstat(a, &of_a) == 0 && ::fstat(b, &of_b) == 0 &&
         of_a.st_dev == of_b.st_dev && MountOf(a) == MountOf(b);
}

}  // namespace

Status MakeUnseen(int root, const char* name) {
  struct stat st{};
  if (::fstat(root, &st) != 0) return Fail(errno, "stat workspace");
  if (::mkdirat(root, name, 0700) != 0) {
    if (errno == EEXIST) return {};
    return Fail(errno, std::string("mkdir ") + name);
  }
  const timespec times[2] = {st.st_atim, st.st_mtim};
  // Not ours to change when somebody else owns the workspace.
  std::ignore = ::futimens(root, times);
  return {};
}

Vaults::Vaults(int base, int store)
    : base_(base), store_(store), in_store_(SameMount(base, store)) {}

Result<UniqueFd> Vaults::OpenParent(bool make) const {
  if (in_store_) {
    if (make) TRY(MakeDirectoryAt(store_, kParent, 0700));
    return OpenAt(store_, kParent, O_RDONLY | O_DIRECTORY);
  }
  if (make) TRY(MakeUnseen(base_, kWorkspaceStore));
  const UniqueFd directory =
      TRY(OpenAt(base_, kWorkspaceStore, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  if (make) TRY(MakeDirectoryAt(directory.get(), kParent, 0700));
  return OpenAt(directory.get(), kParent, O_RDONLY | O_DIRECTORY);
}

Result<UniqueFd> Vaults::Open(const std::string& id, bool fresh) const {
  const UniqueFd parent = TRY(OpenParent(fresh));
  if (fresh) {
    TRY(RemoveTree(parent.get(), id));
    TRY(MakeDirectoryAt(parent.get(), id, 0700));
    // The intent will name what is in it.
    TRY(SyncDirectory(parent.get(), "."));
  }
  return OpenAt(parent.get(), id, O_RDONLY | O_DIRECTORY);
}

Result<std::vector<std::string>> Vaults::Ids() const {
  const auto parent = OpenParent(false);
  if (!parent && parent.error().code == ENOENT) {
    return std::vector<std::string>();
  }
  if (!parent) return std::unexpected(parent.error());
  return ListNames(parent->get(), ".");
}

Result<uint64_t> Vaults::Bytes(const std::string& id) const {
  const auto parent = OpenParent(false);
  if (!parent) return uint64_t{0};
  return BytesOnDisk(parent->get(), id);
}

Result<size_t> Vaults::Read(const std::string& path, uint64_t offset,
                            MutableByteSpan out) const {
  UniqueFd parent = TRY(OpenParent(false));
  const BaseDirectory vaults(std::move(parent));
  const SharedFd file = TRY(vaults.OpenFile(path));
  return ReadFully(file->get(), offset, out);
}

Status Vaults::Remove(const std::string& id) const {
  const auto parent = OpenParent(false);
  if (!parent && parent.error().code == ENOENT) return {};
  if (!parent) return std::unexpected(parent.error());
  TRY(RemoveTree(parent->get(), id));
  if (in_store_) return {};
  // The last one leaves nothing in the workspace.
  struct stat st{};
  if (::fstat(base_, &st) != 0) return Fail(errno, "stat workspace");
  const std::string path = std::string(kWorkspaceStore) + "/" + kParent;
  if (::unlinkat(base_, path.c_str(), AT_REMOVEDIR) == 0 &&
      ::unlinkat(base_, kWorkspaceStore, AT_REMOVEDIR) == 0) {
    const timespec times[2] = {st.st_atim, st.st_mtim};
    std::ignore = ::futimens(base_, times);
  }
  return {};
}

}  // namespace txfs
