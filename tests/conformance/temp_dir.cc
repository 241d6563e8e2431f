#include "tests/conformance/temp_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>
#include <vector>

#include "journal/support/unique_fd.h"
#include "tests/conformance/process.h"

namespace txfs::testing {
namespace {

/// Ends the program when preparing failed.
void Require(bool done, const std::string& what) {
  if (done) return;
  std::fprintf(stderr, "cannot prepare the test: %s: %s\n", what.c_str(),
               std::strerror(errno));
  std::exit(1);
}

/// Sets the time of everything in `dir`. Works on names, so that paths may be
/// longer than PATH_MAX.
bool SetTimesIn(UniqueFd dir) {
  const timespec times[] = {kBaseTime.ToTimespec(), kBaseTime.ToTimespec()};
  const int fd = dir.get();
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(dir.Release()),
                                                   closedir);
  while (const dirent* entry = readdir(stream.get())) {
    if (std::string_view(entry->d_name) == ".." ||
        std::string_view(entry->d_name) == ".")
      continue;
    if (entry->d_type == DT_DIR &&
        !SetTimesIn(UniqueFd(
            openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)))) {
      return false;
    }
    if (utimensat(fd, entry->d_name, times, AT_SYMLINK_NOFOLLOW) < 0)
      return false;
  }
  return futimens(fd, times) == 0;
}

}  // namespace

void TempDir::AwaitTick() const {
  const std::string path = path_ + "/tick";
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  const auto touch = [&] {
    struct stat st{};
    Require(futimens(file.get(), nullptr) == 0 && fstat(file.get(), &st) == 0,
            path);
    return Timestamp::From(st.st_ctim);
  };
  for (const Timestamp first = touch(); touch() == first;) {
  }
}

std::string TempDir::DefaultParent() {
  const char* parent = std::getenv("TMPDIR");
  return parent && *parent ? parent : "/tmp";
}

void TempMount::Prepare(const std::string& path) {
  static const bool is_private =
      ::unshare(CLONE_NEWNS) == 0 &&
      ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  Require(is_private, "mount namespace");
  std::filesystem::create_directories(path);
}

TempMount::TempMount(std::string path, const char* options)
    : path_(std::move(path)) {
  Prepare(path_);
  Require(::mount("txfs-test", path_.c_str(), "tmpfs", 0, options) == 0, path_);
}

TempMount::TempMount(std::string path, const std::string& source)
    : path_(std::move(path)) {
  Prepare(path_);
  Require(
      ::mount(source.c_str(), path_.c_str(), nullptr, MS_BIND, nullptr) == 0,
      path_);
}

TempMount::~TempMount() { (void)::umount2(path_.c_str(), MNT_DETACH); }

std::string MemoryDirectory() {
  const std::string memory = "/dev/shm";
  if (access(memory.c_str(), W_OK) == 0) {
    const TempDir trial(memory);
    if (setxattr(trial.path().c_str(), "user.txfs", "", 0, 0) == 0) {
      return memory;
    }
  }
  return TempDir::DefaultParent();
}

TempDir::TempDir(const std::string& parent)
    : path_(parent + "/txfs-test-XXXXXX") {
  // Other users may come along, as the tests that act for them do.
  Require(mkdtemp(path_.data()) != nullptr && chmod(path_.c_str(), 0755) == 0,
          path_);
}

TempDir::~TempDir() {
  // rm takes paths longer than PATH_MAX, std::filesystem does not.
  const std::vector<std::string> remove = {"rm", "-rf", "--one-file-system",
                                           path_};
  if (RunCommand(remove).exit_code == 0) return;
  // Directories may deny their owner.
  (void)RunCommand({"chmod", "-R", "u+rwx", path_});
  (void)RunCommand(remove);
}

void BaseTree::File(const std::string& path, std::string_view content,
                    mode_t mode) {
  std::filesystem::create_directories(
      std::filesystem::path(At(path)).parent_path());
  std::ofstream out(At(path), std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  Require(out.good() && chmod(At(path).c_str(), mode) == 0, path);
}

void BaseTree::SparseFile(const std::string& path, uint64_t size) {
  File(path, "");
  Require(truncate(At(path).c_str(), static_cast<off_t>(size)) == 0, path);
}

void BaseTree::Directory(const std::string& path, mode_t mode) {
  std::filesystem::create_directories(At(path));
  Require(chmod(At(path).c_str(), mode) == 0, path);
}

void BaseTree::Symlink(const std::string& target, const std::string& path) {
  Require(symlink(target.c_str(), At(path).c_str()) == 0, path);
}

void BaseTree::HardLink(const std::string& existing, const std::string& path) {
  Require(link(At(existing).c_str(), At(path).c_str()) == 0, path);
}

void BaseTree::Fifo(const std::string& path) {
  Require(mkfifo(At(path).c_str(), 0644) == 0, path);
}

void BaseTree::Xattr(const std::string& path, const std::string& name,
                     std::string_view value) {
  Require(lsetxattr(At(path).c_str(), name.c_str(), value.data(), value.size(),
                    0) == 0,
          path);
}

void BaseTree::SetTimes() {
  Require(SetTimesIn(UniqueFd(
              open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC))),
          root_);
}

bool BaseTree::Exists(const std::string& path) const {
  struct stat st{};
  return lstat(At(path).c_str(), &st) == 0;
}

std::string BaseTree::Read(const std::string& path) const {
  std::ifstream in(At(path), std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  return std::move(content).str();
}

void CopyTree(const std::string& from, const std::string& to) {
  Require(RunCommand({"cp", "-a", "--", from, to}).exit_code == 0,
          "cp " + from);
}

}  // namespace txfs::testing
