#include "tests/conformance/varied_work.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <rapidcheck.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <initializer_list>

#include "tests/conformance/steps.h"

namespace txfs::testing {
namespace {

/// From here on a file is patched in place, bytes.
constexpr uint64_t kLargeFile = 64 << 20;

void Files(BaseTree& base, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    base.File(std::string("w/") + name, std::string(name) + " of the base");
  }
}

void Directories(BaseTree& base, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    base.File(std::string("w/") + name + "/f", name);
    base.File(std::string("w/") + name + "/g", std::string(300, name[0]));
  }
}

void PrepareNothing(BaseTree&) {}

void PrepareRewrite(BaseTree& base) {
  Files(base, {"rewrite", "truncate", "append", "one"});
}

void PreparePatches(BaseTree& base) {
  base.SparseFile("w/large", kLargeFile + 5000);
  base.File("w/shared/a", std::string(9000, 's'));
  base.HardLink("w/shared/a", "w/shared/b");
  base.File("w/cut/a", std::string(9000, 'c'));
  base.HardLink("w/cut/a", "w/cut/b");
}

void PrepareDelete(BaseTree& base) {
  Files(base, {"gone"});
  Directories(base, {"gone.d", "gone.d/deep"});
  base.HardLink("w/gone.d/f", "w/outlives");
  base.Symlink("f", "w/gone.d/link");
  base.Fifo("w/gone.d/fifo");
  base.Directory("w/empty");
}

void PrepareRescue(BaseTree& base) { Directories(base, {"rescue"}); }

void PrepareMove(BaseTree& base) {
  Files(base, {"file"});
  Directories(base, {"tree"});
  base.Xattr("w/tree", "user.tree", "yes");
}

void PrepareMoveIntoNew(BaseTree& base) {
  Files(base, {"move", "two"});
  Directories(base, {"move.d"});
}

void PrepareSwap(BaseTree& base) {
  Files(base, {"over", "under"});
  Directories(base, {"left", "right"});
}

void PrepareRotate(BaseTree& base) { Directories(base, {"p", "q"}); }

void PrepareInsideOut(BaseTree& base) {
  Directories(base, {"inside", "inside/out"});
}

void PrepareReplace(BaseTree& base) {
  Files(base, {"replaced"});
  Directories(base, {"onto"});
}

void PrepareTypes(BaseTree& base) {
  Files(base, {"kind.f"});
  Directories(base, {"kind.d"});
  base.Symlink("kind.f", "w/link");
}

void PrepareLinks(BaseTree& base) {
  Files(base, {"linked", "many.1"});
  base.HardLink("w/many.1", "w/many.2");
}

void PrepareNames(BaseTree& base) {
  for (const char* name : {"names", "pair", "twins"}) {
    const std::string path = std::string("w/") + name;
    base.File(path + "/1", name);
    base.HardLink(path + "/1", path + "/2");
  }
  base.HardLink("w/names/1", "w/names/3");
  base.File("w/known", "known");
  base.Directory("w/far/away");
  base.HardLink("w/known", "w/far/away/unknown");
}

void PrepareAttributes(BaseTree& base) {
  Files(base, {"mode", "owner", "times", "xattr"});
  Directories(base, {"dir"});
  base.Xattr("w/xattr", "user.old", "1");
  base.Xattr("w/xattr", "user.kept", "2");
}

void PrepareClosed(BaseTree& base) {
  Directories(base, {"closed", "closed/moved", "closed/gone"});
  base.Directory("w/closed/moved", 0555);
  base.Directory("w/closed/gone", 0500);
  base.Directory("w/closed", 0555);
}

void PrepareAcross(BaseTree& base) {
  for (const char* name : {"in", "edited", "over", "nested"}) {
    base.File(std::string("main/") + name, name);
  }
  base.Xattr("main/in", "user.across", "yes");
  base.Symlink("in", "main/link");
  Files(base, {"across.out", "across.over"});
}

void PrepareSwapAcross(BaseTree& base) {
  base.File("main/swap", std::string(5000, 'm'), 0600);
  Files(base, {"across.swap"});
}

}  // namespace

std::vector<VariedWork::Deed> VariedWork::AllDeeds() {
  return {{&VariedWork::NewFiles, PrepareNothing},
          {&VariedWork::NewTree, PrepareNothing},
          {&VariedWork::NewLarge, PrepareNothing},
          {&VariedWork::Rewrite, PrepareRewrite},
          {&VariedWork::PatchFiles, PreparePatches},
          {&VariedWork::Delete, PrepareDelete},
          {&VariedWork::RescueAndDelete, PrepareRescue},
          {&VariedWork::Move, PrepareMove},
          {&VariedWork::MoveIntoNew, PrepareMoveIntoNew},
          {&VariedWork::SwapDirectories, PrepareSwap},
          {&VariedWork::RotateDirectories, PrepareRotate},
          {&VariedWork::TurnInsideOut, PrepareInsideOut},
          {&VariedWork::Replace, PrepareReplace},
          {&VariedWork::ChangeTypes, PrepareTypes},
          {&VariedWork::LinkFiles, PrepareLinks},
          {&VariedWork::RemoveNames, PrepareNames},
          {&VariedWork::ChangeAttributes, PrepareAttributes},
          {&VariedWork::ChangeClosed, PrepareClosed},
          {&VariedWork::RenameTop, PrepareNothing},
          {&VariedWork::Collide, PrepareBase}};
}

/// Files of one name can be renamed from one filesystem to another.
std::vector<VariedWork::Deed> VariedWork::DeedsAcross() {
  return {{&VariedWork::MoveAcross, PrepareAcross},
          {&VariedWork::SwapAcross, PrepareSwapAcross}};
}

VariedWork::VariedWork(uint64_t seed, bool with_mount)
    : random_(seed), deeds_(AllDeeds()) {
  if (with_mount) {
    std::erase_if(deeds_, [](const Deed& deed) {
      return deed.run == &VariedWork::RenameTop;
    });
  }
  std::ranges::shuffle(deeds_, random_);
  deeds_.resize(2 + random_() % 3);
  if (!with_mount) return;
  const auto across = DeedsAcross();
  deeds_.insert(deeds_.begin() + static_cast<long>(random_() % 2),
                across.begin(), across.end());
}

void VariedWork::Prepare(BaseTree& base) const {
  base.Directory("w/here");
  for (const Deed& deed : deeds_) deed.prepare(base);
  base.SetTimes();
}

Status VariedWork::Do(Driver& driver, size_t deeds) {
  driver_ = &driver;
  for (; deeds > 0 && done_ < deeds_.size(); --deeds) {
    TRY((this->*deeds_[done_++].run)());
  }
  return {};
}

Status VariedWork::Ruin(Driver& driver) {
  for (const Entry& entry : TRY(driver.List(top_))) {
    if (random_() % 3 != 0) continue;
    const std::string path = At(entry.name);
    const Status removed = entry.type == DT_DIR ? driver.RemoveRecursively(path)
                                                : driver.Unlink(path);
    // An ordinary user is not let in everywhere.
    if (!removed && removed.error().code != EACCES) return removed;
  }
  return {};
}

Status VariedWork::NewFiles() {
  TRY(Write("new", std::string(5000, 'n')));
  TRY(Write("new.empty", ""));
  TRY(driver_->SetXattr(At("new"), "user.new", "value", 0));
  TRY(driver_->Symlink("new", At("new.link")));
  TRY(driver_->Mkfifo(At("new.fifo"), 0600));
  return Write("here/new", "in a directory of the base");
}

Status VariedWork::NewTree() {
  TRY(driver_->Mkdir(At("n"), 0755));
  TRY(driver_->Mkdir(At("n/m"), 0755));
  TRY(Write("n/m/f", "nested"));
  TRY(Link("n/m/f", "n/g"));
  TRY(Link("n/m/f", "new.outside"));
  TRY(driver_->Symlink("m/f", At("n/link")));
  TRY(driver_->Chmod(At("n/m"), 0500));
  return driver_->Utimens(At("n"), {.mtime = {.tv_sec = 1'200'000'000}});
}

/// Their segments become the files.
Status VariedWork::NewLarge() {
  std::string content(2'200'000, 'l');
  for (size_t i = 0; i < content.size(); i += 1000) {
    content[i] = static_cast<char>(random_());
  }
  TRY(Write("new.large", content));
  TRY(Patch("new.large", 1000));
  TRY(driver_->Chmod(At("new.large"), 0400));
  TRY(driver_->SetXattr(At("new.large"), "user.large", "yes", 0));
  TRY(Write("new.odd", content));
  switch (random_() % 4) {
    case 0:
      TRY(Patch("new.odd", 1'500'000));
      break;
    case 1:
      TRY(driver_->Truncate(At("new.odd"), content.size() - 100));
      break;
    default:
      TRY(driver_->Truncate(At("new.odd"), 3'000'000));
      TRY(Patch("new.odd", 2'900'000));
  }
  return random_() % 2 == 0 ? Link("new.large", "new.large.2") : Status();
}

Status VariedWork::Rewrite() {
  TRY(Write("rewrite", "written anew"));
  TRY(driver_->Truncate(At("truncate"), 3));
  TRY(driver_->AppendFile(At("append"), " and more"));
  return Write("one", "");
}

Status VariedWork::PatchFiles() {
  TRY(Patch("large", 4000));
  TRY(random_() % 2 == 0 ? Patch("large", kLargeFile + 10'000)
                         : driver_->Truncate(At("large"), kLargeFile + 100));
  TRY(Patch("shared/a", 4090));
  TRY(Patch("shared/b", 20'000));
  return driver_->Truncate(At("cut/a"), random_() % 9000);
}

Status VariedWork::Delete() {
  TRY(driver_->Unlink(At("gone")));
  TRY(RemoveTree("gone.d"));
  return driver_->Rmdir(At("empty"));
}

Status VariedWork::RescueAndDelete() {
  TRY(Rename("rescue/f", "rescued"));
  TRY(RemoveTree("rescue"));
  return random_() % 2 == 0 ? Write("rescue", "was a directory") : Status();
}

Status VariedWork::Move() {
  TRY(Rename("file", "file.moved"));
  TRY(Rename("tree", "tree.moved"));
  TRY(Write("tree.moved/f", "in a directory that moved"));
  TRY(driver_->Unlink(At("tree.moved/g")));
  return Write("tree.moved/new", "");
}

Status VariedWork::MoveIntoNew() {
  TRY(driver_->Mkdir(At("nest"), 0700));
  TRY(driver_->Mkdir(At("nest/deep"), 0700));
  TRY(Rename("move", "nest/deep/moved"));
  TRY(Rename("move.d", "nest/deep/d"));
  TRY(Rename("two", "nest/two"));
  return Write("nest/two", "moved and rewritten");
}

Status VariedWork::SwapDirectories() {
  TRY(Rename("left", "right", RENAME_EXCHANGE));
  TRY(Write("left/f", "of the right"));
  TRY(driver_->Unlink(At("right/g")));
  TRY(Rename("left/g", "right/from-left"));
  return Rename("over", "under", RENAME_EXCHANGE);
}

/// After it p/f has the path it had before, in another directory.
Status VariedWork::RotateDirectories() {
  TRY(Rename("p", "t"));
  TRY(Rename("q", "p"));
  TRY(driver_->Unlink(At("p/f")));
  TRY(Rename("t/f", "p/f"));
  return random_() % 2 == 0 ? Rename("t", "q") : Status();
}

Status VariedWork::TurnInsideOut() {
  TRY(Rename("inside/out", "out"));
  TRY(Rename("inside", "out/inside"));
  return Write("out/inside/new", "deep");
}

Status VariedWork::Replace() {
  TRY(Write("replaced.tmp", "saved by an editor"));
  TRY(Rename("replaced.tmp", "replaced"));
  TRY(Rename("onto/g", "onto/f"));
  TRY(driver_->Mkdir(At("fresh"), 0755));
  TRY(driver_->Mkdir(At("fresh.2"), 0755));
  TRY(Write("fresh/f", "1"));
  return Rename("fresh", "fresh.2");
}

Status VariedWork::ChangeTypes() {
  TRY(driver_->Unlink(At("kind.f")));
  TRY(driver_->Mkdir(At("kind.f"), 0755));
  TRY(Write("kind.f/f", "in what was a file"));
  TRY(RemoveTree("kind.d"));
  TRY(Write("kind.d", "was a directory"));
  TRY(driver_->Unlink(At("link")));
  return random_() % 2 == 0 ? driver_->Symlink("elsewhere", At("link"))
                            : Write("link", "was a symlink");
}

Status VariedWork::LinkFiles() {
  TRY(Link("linked", "linked.2"));
  TRY(Link("linked", "here/linked"));
  TRY(driver_->Mkdir(At("links"), 0755));
  TRY(Link("many.2", "links/3"));
  return random_() % 2 == 0 ? Patch("linked", 2) : Status();
}

Status VariedWork::RemoveNames() {
  TRY(driver_->Unlink(At("names/1")));
  TRY(RemoveTree("pair"));
  TRY(Rename("twins/1", "twins.1"));
  TRY(Rename("twins/2", "twins.2"));
  if (random_() % 2 == 0) TRY(Patch("twins.2", 1));
  TRY(Patch("known", 2));
  return driver_->Unlink(At("known"));
}

Status VariedWork::ChangeAttributes() {
  TRY(driver_->Chmod(At("mode"), 0400));
  TRY(driver_->Chmod(At("dir"), 0711));
  TRY(driver_->Utimens(At("times"), {.mtime = {.tv_sec = 1'100'000'000}}));
  TRY(driver_->Utimens(At("here"), {.mtime = {.tv_sec = 1'100'000'001}}));
  TRY(driver_->SetXattr(At("xattr"), "user.new", "3", 0));
  TRY(driver_->RemoveXattr(At("xattr"), "user.old"));
  TRY(driver_->SetXattr(At("dir"), "user.dir", "4", 0));
  if (::geteuid() != 0) return {};
  TRY(driver_->Chown(At("dir/f"), 1, 2));
  return driver_->Chown(At("owner"), 1, 2);
}

/// In directories whose permissions forbid it, as chmod there and back allows.
Status VariedWork::ChangeClosed() {
  TRY(Write("closed/f", "rewritten"));
  TRY(driver_->Unlink(At("closed/g")));
  TRY(Write("closed/new", "new"));
  TRY(Rename("closed/moved", "opened"));
  if (random_() % 2 == 0) TRY(Rename("opened/f", "rescued.closed"));
  return RemoveTree("closed/gone");
}

Status VariedWork::RenameTop() {
  const std::string to = top_ + "w";
  TRY(driver_->Rename(top_, to, 0));
  top_ = to;
  return {};
}

Status VariedWork::MoveAcross() {
  TRY(driver_->Rename("main/in", At("across.in"), 0));
  TRY(driver_->Rename("main/edited", At("across.edited"), 0));
  TRY(Patch("across.edited", 3));
  TRY(driver_->Rename("main/over", At("across.over"), 0));
  TRY(driver_->Rename("main/link", At("across.link"), 0));
  TRY(driver_->Rename(At("across.out"), "main/out", 0));
  TRY(driver_->WriteFile("main/new", "made here, moved there"));
  TRY(driver_->Rename("main/new", At("across.new"), 0));
  TRY(driver_->Mkdir(At("across.d"), 0755));
  return driver_->Rename("main/nested", At("across.d/nested"), 0);
}

Status VariedWork::SwapAcross() {
  return driver_->Rename("main/swap", At("across.swap"), RENAME_EXCHANGE);
}

/// Steps of which many fail.
Status VariedWork::Collide() {
  StepRunner runner(*driver_);
  for (int i = 0; i < 20; ++i) {
    runner.Run(
        AnyStep(StepModes(false))(rc::Random(random_()), kStepSize).value());
  }
  runner.DropAll();
  return {};
}

}  // namespace txfs::testing
