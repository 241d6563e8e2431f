#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/stat.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/conformance/conformance.h"
#include "tests/conformance/posix_driver.h"
#include "tests/conformance/steps.h"
#include "tests/repeat.h"

namespace txfs::testing {
namespace {

/// A filesystem and, for each savepoint, all there was to see of it then and a
/// plain directory with the same tree.
class Marked {
 public:
  explicit Marked(const DriverKind& kind) : base_(scratch_.path() + "/ws") {
    umask(022);
    mkdir(base_.root().c_str(), 0755);
    PrepareBase(base_);
    auto started = kind.start(scratch_);
    RC_ASSERT(started.has_value());
    driver_ = std::move(*started);
    runner_ = std::make_unique<StepRunner>(*driver_);
  }

  /// Steps of which only the filesystem knows.
  void Run(const std::vector<Step>& steps) {
    for (const Step& step : steps) (void)runner_->Run(step);
  }

  /// Steps on a tree that is as it was at `savepoint`: they must do what they
  /// do in a plain directory that is so.
  void RunAsAt(const std::string& savepoint, const std::vector<Step>& steps) {
    runner_->DropAll();
    const std::string path = ModelPath(savepoint) + ".run";
    CopyTree(ModelPath(savepoint), path);
    PosixDriver model(path);
    StepRunner model_runner(model);
    for (const Step& step : steps) {
      const std::string expected = model_runner.Run(step);
      const std::string actual = runner_->Run(step);
      if (expected != actual) {
        RC_LOG() << step << "\n  a plain directory: " << expected
                 << "\n  txfs: " << actual << '\n';
      }
      RC_ASSERT(actual == expected);
    }
    runner_->DropAll();
    std::system(("rm -rf '" + path + "'").c_str());
  }

  void MakeSavepoint(const std::string& name) {
    views_[name] = View(*driver_);
    std::system(("rm -rf '" + ModelPath(name) + "'").c_str());
    WriteModel(name);
    Demand("savepoint", driver_->MakeSavepoint(name));
  }

  void Rollback(const std::string& name) {
    Demand("rollback to " + name, driver_->Rollback(name));
    Demand("after rollback to " + name,
           Compare(views_.at(name), View(*driver_), {}));
  }

  void Remount() {
    runner_->DropAll();
    Demand("remount", driver_->Remount());
  }

  /// Commits what must be the tree at `savepoint`.
  void Commit(const std::string& savepoint) {
    runner_->DropAll();
    Demand("commit", driver_->Commit());
    PosixDriver base(base_.root());
    TreeView expected = views_.at(savepoint), found = View(base);
    expected.erase("");
    found.erase("");
    Demand("the base after commit",
           Compare(expected, found, {.ino = false, .ctime = false}));
  }

 private:
  static void Demand(const std::string& what, const Status& status) {
    if (!status) RC_LOG() << what << ": " << status.error().ToString() << '\n';
    RC_ASSERT(status.has_value());
  }
  static void Demand(const std::string& when, const std::string& differences) {
    if (!differences.empty()) RC_LOG() << when << ":\n" << differences;
    RC_ASSERT(differences.empty());
  }
  static TreeView View(Driver& driver) {
    auto view = ViewTree(driver);
    if (!view) RC_LOG() << view.error().ToString() << '\n';
    RC_ASSERT(view.has_value());
    return std::move(*view);
  }
  [[nodiscard]] std::string ModelPath(const std::string& name) const {
    return scratch_.path() + "/model-" + name;
  }
  /// What the driver shows as a plain directory, links and all.
  void WriteModel(const std::string& name) {
    mkdir(ModelPath(name).c_str(), 0755);
    PosixDriver model(ModelPath(name));
    std::map<uint64_t, std::string> first;
    for (const auto& [path, view] : views_.at(name)) {
      if (!path.empty()) Make(model, path, view, first);
    }
    for (const auto& [path, view] : views_.at(name)) {
      if (!S_ISLNK(view.mode)) {
        Demand("chmod " + path, model.Chmod(path, view.mode & 07777));
      }
    }
  }
  void Make(Driver& model, const std::string& path, const FileView& view,
            std::map<uint64_t, std::string>& first) {
    const auto [known, fresh] = first.try_emplace(view.ino, path);
    if (!fresh) return Demand("link " + path, model.Link(known->second, path));
    Status made;
    if (S_ISDIR(view.mode)) {
      made = model.Mkdir(path, 0755);
    } else if (S_ISLNK(view.mode)) {
      made = model.Symlink(view.content, path);
    } else if (S_ISFIFO(view.mode)) {
      made = model.Mkfifo(path, 0644);
    } else {
      made = model.WriteFile(path, driver_->ReadFile(path).value_or("?"));
    }
    Demand("make " + path, made);
    for (const auto& [xattr, value] : view.xattrs) {
      Demand("setxattr " + path, model.SetXattr(path, xattr, value, 0));
    }
  }

  TempDir scratch_;
  BaseTree base_;
  std::unique_ptr<Driver> driver_;
  std::unique_ptr<StepRunner> runner_;
  std::map<std::string, TreeView> views_;
};

class SavepointPropertyTest : public ::testing::TestWithParam<DriverKind> {};
FOR_DRIVERS(SavepointPropertyTest, Needs::kStore);

TEST_P(SavepointPropertyTest, RollbackMakesTheTreeWhatItWas) {
  SetCases(Scaled(GetParam().kernel ? 8 : 15));
  const auto steps = rc::gen::container<std::vector<Step>>(
      AnyStep(StepModes(GetParam().kernel)));
  EXPECT_TRUE(rc::check("nested savepoints, each rolled back to twice", [&] {
    const auto remounts =
        *rc::gen::container<std::vector<bool>>(6, rc::gen::arbitrary<bool>());
    Marked fs(GetParam());
    const auto maybe_remount = [&](size_t at) {
      if (remounts[at]) fs.Remount();
    };
    fs.Run(*steps);
    fs.MakeSavepoint("one");
    maybe_remount(0);
    fs.Run(*steps);
    fs.MakeSavepoint("two");
    fs.Run(*steps);
    maybe_remount(1);
    fs.Rollback("two");
    maybe_remount(2);
    fs.RunAsAt("two", *steps);
    fs.MakeSavepoint("three");
    fs.Run(*steps);
    fs.Rollback("three");
    fs.Run(*steps);
    fs.Rollback("two");
    fs.Run(*steps);
    maybe_remount(3);
    fs.Run(*steps);
    fs.Rollback("one");
    maybe_remount(4);
    fs.RunAsAt("one", *steps);
    fs.Rollback("one");
    maybe_remount(5);
    fs.Rollback("one");
    fs.Commit("one");
  }));
}

}  // namespace
}  // namespace txfs::testing
