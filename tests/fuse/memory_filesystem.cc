#include "tests/fuse/memory_filesystem.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace txfs::testing {
namespace {

constexpr uint32_t kKillable = S_ISUID | S_ISGID;

std::unexpected<Error> Unsupported() { return Fail(EOPNOTSUPP, {}); }

}  // namespace

MemoryFilesystem::MemoryFilesystem(CallLog& log) : log_(log) {
  Object root;
  root.st.st_ino = 1;
  root.st.st_mode = S_IFDIR | 0777;
  root.st.st_nlink = 2;
  root.st.st_uid = ::geteuid();
  objects_[kRootIno] = root;
}

void MemoryFilesystem::Note(const Caller& caller) {
  log_.last_pid = caller.pid;
  log_.last_uid = caller.uid;
  log_.last_known = caller.known;
}

Result<MemoryFilesystem::Object*> MemoryFilesystem::Find(Ino ino) {
  const auto found = objects_.find(ino);
  if (found == objects_.end()) return Fail(ESTALE, "inode");
  return &found->second;
}

Result<Node> MemoryFilesystem::Add(Ino parent, std::string_view name,
                                   uint32_t mode, const Caller& caller,
                                   std::string_view content) {
  Object* directory = TRY(Find(parent));
  if (directory->children.contains(name)) return Fail(EEXIST, "create");
  const Ino ino{next_++};
  Object& object = objects_[ino];
  object.st.st_ino = Raw(ino);
  object.st.st_mode = mode;
  object.st.st_nlink = 1;
  object.st.st_uid = caller.uid;
  object.st.st_gid = caller.gid;
  object.st.st_size = static_cast<off_t>(content.size());
  object.content = content;
  directory->children.emplace(name, ino);
  return Node{ino, object.st};
}

void MemoryFilesystem::AddFile(const std::string& name,
                               std::string_view content, uint32_t mode) {
  MutexLock lock(mutex_);
  (void)Add(kRootIno, name, S_IFREG | mode, {.uid = ::geteuid()}, content);
}

StaleCaches MemoryFilesystem::Swap(std::string_view content) {
  MutexLock lock(mutex_);
  auto& names = objects_[kRootIno].children;
  const Ino changed = names.find("changed")->second;
  objects_[changed].content = content;
  objects_[changed].st.st_size = static_cast<off_t>(content.size());
  names.erase("gone");
  (void)Add(kRootIno, "fresh", S_IFREG | 0644, {.uid = ::geteuid()}, "fresh");
  return {.inodes = {changed, kRootIno},
          .names = {{kRootIno, "gone"}, {kRootIno, "fresh"}}};
}

Result<Node> MemoryFilesystem::Lookup(Ino parent, std::string_view name) {
  Count(Call::kLookup);
  if (name == "out-of-memory") throw std::bad_alloc();
  MutexLock lock(mutex_);
  const Object* directory = TRY(Find(parent));
  const auto child = directory->children.find(name);
  if (child == directory->children.end()) return Fail(ENOENT, "lookup");
  return Node{child->second, objects_[child->second].st};
}

void MemoryFilesystem::Forget(Ino, uint64_t lookups) {
  log_.of(Call::kForget) += lookups;
}

Result<Node> MemoryFilesystem::Create(const Caller& caller, Ino parent,
                                      std::string_view name, uint32_t mode) {
  Count(Call::kCreate);
  Note(caller);
  MutexLock lock(mutex_);
  return Add(parent, name, S_IFREG | (mode & 07777 & ~caller.umask), caller);
}

Result<Node> MemoryFilesystem::MakeNode(const Caller&, Ino, std::string_view,
                                        uint32_t, uint64_t) {
  return Unsupported();
}

Result<Node> MemoryFilesystem::MakeDirectory(const Caller& caller, Ino parent,
                                             std::string_view name,
                                             uint32_t mode) {
  MutexLock lock(mutex_);
  return Add(parent, name, S_IFDIR | (mode & 07777 & ~caller.umask), caller);
}

Result<Node> MemoryFilesystem::MakeSymlink(const Caller& caller, Ino parent,
                                           std::string_view name,
                                           std::string_view target) {
  MutexLock lock(mutex_);
  return Add(parent, name, S_IFLNK | 0777, caller, target);
}

Result<Node> MemoryFilesystem::Link(const Caller&, Ino, Ino, std::string_view) {
  return Unsupported();
}

Status MemoryFilesystem::Unlink(const Caller&, Ino parent,
                                std::string_view name) {
  MutexLock lock(mutex_);
  Object* directory = TRY(Find(parent));
  const auto child = directory->children.find(name);
  if (child == directory->children.end()) return Fail(ENOENT, "unlink");
  directory->children.erase(child);
  return {};
}

Status MemoryFilesystem::RemoveDirectory(const Caller&, Ino, std::string_view) {
  return Unsupported();
}

Status MemoryFilesystem::Rename(const Caller&, Ino parent,
                                std::string_view name, Ino new_parent,
                                std::string_view new_name, RenameMode mode) {
  log_.last_rename_mode = static_cast<int>(mode);
  MutexLock lock(mutex_);
  Object* from = TRY(Find(parent));
  Object* to = TRY(Find(new_parent));
  const auto source = from->children.find(name);
  if (source == from->children.end()) return Fail(ENOENT, "rename");
  const auto target = to->children.find(new_name);
  if (mode == RenameMode::kExchange) {
    std::swap(source->second, target->second);
    return {};
  }
  const Ino ino = source->second;
  from->children.erase(source);
  to->children.insert_or_assign(std::string(new_name), ino);
  return {};
}

Status MemoryFilesystem::ReadDirectory(
    Ino ino, uint64_t cookie,
    const std::function<bool(const DirEntry&)>& visit) {
  Count(Call::kReadDirectory);
  MutexLock lock(mutex_);
  const Object* directory = TRY(Find(ino));
  std::vector<DirEntry> entries{{".", 1, Raw(ino), FileType::kDirectory},
                                {"..", 2, Raw(ino), FileType::kDirectory}};
  for (const auto& [name, child] : directory->children) {
    entries.push_back({name, entries.size() + 1, Raw(child),
                       *TypeOfMode(objects_[child].st.st_mode)});
  }
  for (size_t i = cookie; i < entries.size(); ++i) {
    if (!visit(entries[i])) break;
  }
  return {};
}

Result<struct stat> MemoryFilesystem::GetAttr(Ino ino) {
  Count(Call::kGetAttr);
  MutexLock lock(mutex_);
  return TRY(Find(ino))->st;
}

Result<struct stat> MemoryFilesystem::SetAttr(const Caller& caller, Ino ino,
                                              const AttrRequest& request) {
  Count(Call::kSetAttr);
  Note(caller);
  log_.last_setattr_kills = request.kill_privileges;
  MutexLock lock(mutex_);
  Object* object = TRY(Find(ino));
  struct stat& st = object->st;
  if (request.mode) st.st_mode = (st.st_mode & S_IFMT) | *request.mode;
  if (request.uid) st.st_uid = *request.uid;
  if (request.gid) st.st_gid = *request.gid;
  if (request.mtime) st.st_mtim = request.mtime->ToTimespec();
  if (request.mtime_now) st.st_mtim = Clock::System().Now().ToTimespec();
  if (request.size) {
    object->content.resize(*request.size);
    st.st_size = static_cast<off_t>(*request.size);
  }
  if (request.kill_privileges) st.st_mode &= ~kKillable;
  return st;
}

Result<std::string> MemoryFilesystem::ReadLink(Ino ino) {
  MutexLock lock(mutex_);
  return TRY(Find(ino))->content;
}

Result<std::string> MemoryFilesystem::GetXattr(Ino ino, std::string_view name) {
  Count(Call::kGetXattr);
  MutexLock lock(mutex_);
  const Object* object = TRY(Find(ino));
  const auto found = object->xattrs.find(name);
  if (found == object->xattrs.end()) return Fail(ENODATA, "getxattr");
  return found->second;
}

Result<std::vector<std::string>> MemoryFilesystem::ListXattrs(Ino ino) {
  MutexLock lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, value] : TRY(Find(ino))->xattrs) {
    names.push_back(name);
  }
  return names;
}

Status MemoryFilesystem::SetXattr(const Caller&, Ino ino, std::string_view name,
                                  std::string_view value, XattrMode mode) {
  MutexLock lock(mutex_);
  auto& xattrs = TRY(Find(ino))->xattrs;
  const bool exists = xattrs.contains(name);
  if (mode == XattrMode::kCreate && exists) return Fail(EEXIST, "setxattr");
  if (mode == XattrMode::kReplace && !exists) return Fail(ENODATA, "setxattr");
  xattrs.insert_or_assign(std::string(name), std::string(value));
  return {};
}

Status MemoryFilesystem::RemoveXattr(const Caller&, Ino ino,
                                     std::string_view name) {
  MutexLock lock(mutex_);
  auto& xattrs = TRY(Find(ino))->xattrs;
  const auto found = xattrs.find(name);
  if (found == xattrs.end()) return Fail(ENODATA, "removexattr");
  xattrs.erase(found);
  return {};
}

Result<size_t> MemoryFilesystem::Read(Ino ino, uint64_t offset,
                                      MutableByteSpan out) {
  Count(Call::kRead);
  log_.last_read_size = out.size();
  MutexLock lock(mutex_);
  const std::string& content = TRY(Find(ino))->content;
  if (offset >= content.size()) return 0;
  const size_t n = std::min(out.size(), content.size() - offset);
  std::memcpy(out.data(), content.data() + offset, n);
  return n;
}

Result<size_t> MemoryFilesystem::Write(const Caller& caller, Ino ino,
                                       uint64_t offset, ByteSpan bytes,
                                       WriteMode mode) {
  Count(Call::kWrite);
  Note(caller);
  log_.last_write_size = bytes.size();
  log_.last_write_kills = mode.kill_privileges.value_or(false);
  if (arrived_ >= 0) {
    ::eventfd_write(arrived_, 1);
    eventfd_t ignored = 0;
    ::eventfd_read(go_, &ignored);
  }
  MutexLock lock(mutex_);
  Object* object = TRY(Find(ino));
  if (mode.kill_privileges.value_or(false)) object->st.st_mode &= ~kKillable;
  const uint64_t end = offset + bytes.size();
  if (object->content.size() < end) object->content.resize(end);
  std::memcpy(object->content.data() + offset, bytes.data(), bytes.size());
  object->st.st_size = static_cast<off_t>(object->content.size());
  return bytes.size();
}

Status MemoryFilesystem::Allocate(const Caller&, Ino, uint64_t, uint64_t,
                                  AllocateMode mode) {
  log_.last_allocate_mode = static_cast<int>(mode);
  return {};
}

Result<size_t> MemoryFilesystem::CopyRange(const Caller&, Ino from,
                                           uint64_t from_offset, Ino to,
                                           uint64_t to_offset,
                                           uint64_t length) {
  MutexLock lock(mutex_);
  const Object* source = TRY(Find(from));
  Object* target = TRY(Find(to));
  const std::string part = source->content.substr(from_offset, length);
  if (target->content.size() < to_offset + part.size()) {
    target->content.resize(to_offset + part.size());
  }
  target->content.replace(to_offset, part.size(), part);
  target->st.st_size = static_cast<off_t>(target->content.size());
  return part.size();
}

Result<uint64_t> MemoryFilesystem::Seek(Ino ino, uint64_t offset, int whence) {
  MutexLock lock(mutex_);
  const uint64_t size = TRY(Find(ino))->content.size();
  if (offset >= size) return Fail(ENXIO, "seek");
  return whence == SEEK_DATA ? offset : size;
}

Status MemoryFilesystem::Sync() {
  Count(Call::kSync);
  return {};
}

Result<struct statvfs> MemoryFilesystem::StatFs() {
  struct statvfs st{};
  st.f_namemax = 255;
  st.f_bsize = 4096;
  st.f_blocks = 12345;
  return st;
}

}  // namespace txfs::testing
