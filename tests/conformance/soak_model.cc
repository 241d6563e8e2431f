#include "tests/conformance/soak_model.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "tests/conformance/posix_driver.h"
#include "tests/conformance/process.h"

namespace txfs::testing {
namespace {

/// A directory that went back to another place while somebody has it open is
/// looked up with ESTALE while others rename (docs/design.md, "What processes
/// hold"); here one client never stops.
constexpr int kTries = 1000;

}  // namespace

/// Tells the model which files are open.
class SoakModel::Files final : public PosixDriver {
 public:
  Files(SoakModel& model, const std::string& root)
      : PosixDriver(root), model_(model) {}

  Result<Handle> Open(const std::string& path, int flags,
                      mode_t mode) override {
    const Handle handle = TRY(PosixDriver::Open(path, flags, mode));
    const std::lock_guard lock(model_.mutex_);
    model_.open_.insert(static_cast<int>(handle));
    return handle;
  }
  Status Close(Handle handle) override {
    {
      const std::lock_guard lock(model_.mutex_);
      model_.open_.erase(static_cast<int>(handle));
    }
    return PosixDriver::Close(handle);
  }

 private:
  SoakModel& model_;
};

SoakModel::SoakModel(std::string scratch, std::vector<std::string> tops)
    : scratch_(std::move(scratch)),
      root_(scratch_ + "/model"),
      tops_(std::move(tops)) {
  for (const std::string& top : tops_) {
    std::filesystem::create_directories(root_ + "/" + top);
  }
}

std::unique_ptr<Driver> SoakModel::Open(const std::string& directory) {
  return std::make_unique<Files>(*this, directory);
}

void SoakModel::Save(const std::string& name) {
  Drop(name);
  Copy(root_, ImagePath(name));
  images_[name] = ObjectsIn(root_);
}

void SoakModel::SaveFrom(const std::string& name, const std::string& from) {
  Drop(name);
  Copy(from, ImagePath(name));
  images_[name] = ObjectsIn(ImagePath(name));
}

void SoakModel::Restore(const std::string& name) {
  const std::string old = scratch_ + "/model-old";
  std::filesystem::rename(root_, old);
  Copy(ImagePath(name), root_);
  std::map<Object, std::string> paths;
  for (const auto& [path, object] : images_.at(name)) {
    paths[object] = path;
    objects_[IdentityOf(AT_FDCWD, root_ + "/" + path)] = object;
  }
  for (const int file : open_) Reopen(file, paths);
  RemoveTree(old);
}

void SoakModel::Drop(const std::string& name) {
  if (images_.erase(name) > 0) RemoveTree(ImagePath(name));
}

SoakModel::Identity SoakModel::IdentityOf(int dir, const std::string& path) {
  struct statx st{};
  EXPECT_EQ(statx(dir, path.c_str(), AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW,
                  STATX_INO | STATX_BTIME, &st),
            0)
      << path;
  return {.ino = st.stx_ino,
          .born_sec = st.stx_btime.tv_sec,
          .born_nsec = st.stx_btime.tv_nsec};
}

std::string SoakModel::ImagePath(const std::string& name) const {
  return scratch_ + "/image-" + name;
}

void SoakModel::Copy(const std::string& from, const std::string& to) const {
  std::filesystem::create_directory(to);
  std::vector<std::string> command = {"cp", "-a", "--"};
  // In one go: a file may have names in several.
  for (const std::string& top : tops_) command.push_back(from + "/" + top);
  command.push_back(to);
  const CommandResult copied = RunCommand(command);
  EXPECT_EQ(copied.exit_code, 0) << copied.errors;
}

SoakModel::Objects SoakModel::ObjectsIn(const std::string& root) {
  Objects objects;
  const auto view = ViewTops(root, tops_);
  EXPECT_TRUE(view.has_value());
  if (!view) return objects;
  for (const auto& [path, file] : *view) {
    const auto [known, fresh] = objects_.try_emplace(
        IdentityOf(AT_FDCWD, root + "/" + path), last_ + 1);
    if (fresh) ++last_;
    objects[path] = known->second;
  }
  return objects;
}

void SoakModel::Reopen(int file, const std::map<Object, std::string>& paths) {
  const auto object = objects_.find(IdentityOf(file, ""));
  if (object == objects_.end()) return;
  const auto path = paths.find(object->second);
  if (path == paths.end()) return;
  const std::string at = root_ + "/" + path->second;
  const int flags = fcntl(file, F_GETFL) | O_CLOEXEC | O_NONBLOCK;
  int again = open(at.c_str(), flags);
  if (again < 0 && errno == EACCES) {
    struct stat st{};
    EXPECT_EQ(stat(at.c_str(), &st), 0) << at;
    EXPECT_EQ(chmod(at.c_str(), st.st_mode | S_IRUSR | S_IWUSR), 0) << at;
    again = open(at.c_str(), flags);
    EXPECT_EQ(chmod(at.c_str(), st.st_mode), 0) << at;
  }
  EXPECT_GE(again, 0) << at;
  EXPECT_EQ(dup3(again, file, O_CLOEXEC), file);
  close(again);
}

void RemoveTree(const std::string& path) {
  const std::vector<std::string> remove = {"rm", "-rf", "--", path};
  if (RunCommand(remove).exit_code == 0) return;
  // Directories only: files in it may be open, and their modes are compared.
  (void)RunCommand(
      {"find", path, "-type", "d", "-exec", "chmod", "u+rwx", "{}", ";"});
  EXPECT_EQ(RunCommand(remove).exit_code, 0) << path;
}

namespace {

Result<TreeView> TryViewTops(const std::string& root,
                             const std::vector<std::string>& tops) {
  TreeView all;
  for (const std::string& top : tops) {
    PosixDriver driver(root + "/" + top);
    TreeView view = TRY(ViewTree(driver));
    for (auto& [path, file] : view) {
      all[path.empty() ? top : top + "/" + path] = std::move(file);
    }
  }
  return all;
}

}  // namespace

Result<TreeView> ViewTops(const std::string& root,
                          const std::vector<std::string>& tops) {
  auto view = TryViewTops(root, tops);
  for (int tries = 1; !view && view.error().code == ESTALE && tries < kTries;
       ++tries) {
    view = TryViewTops(root, tops);
  }
  return view;
}

}  // namespace txfs::testing
