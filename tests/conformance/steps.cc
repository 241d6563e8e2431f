#include "tests/conformance/steps.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iomanip>
#include <ostream>
#include <random>
#include <sstream>
#include <utility>

namespace txfs::testing {
namespace {

constexpr std::array<const char*, static_cast<size_t>(StepKind::kCount)>
    kNames = {"create",    "overwrite", "patch",        "append",   "truncate",
              "mkdir",     "rmdir",     "unlink",       "rename",   "noreplace",
              "exchange",  "link",      "symlink",      "mkfifo",   "chmod",
              "utimens",   "setxattr",  "removexattr",  "allocate", "copy",
              "rm -r",     "read",      "list",         "stat",     "hold",
              "heldwrite", "heldread",  "heldtruncate", "drop"};

constexpr std::array<const char*, 5> kTargets = {"a", "b/b", "a/a", "x", "c"};
constexpr std::array<int, 5> kAllocateModes = {
    0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
    FALLOC_FL_ZERO_RANGE, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE};

template <class T, size_t N>
const T& Pick(const std::array<T, N>& from, uint8_t choice) {
  return from[choice % N];
}

/// Bytes that tell where they came from.
std::string Fill(const Step& step) {
  std::string bytes(step.length, '\0');
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>('A' + (step.choice + i) % 53);
  return bytes;
}

std::string Brief(const std::string& content) {
  std::ostringstream out;
  out << content.size() << " bytes, hash " << std::hex
      << std::hash<std::string>{}(content);
  return out.str();
}

std::string Brief(const struct stat& st) {
  std::ostringstream out;
  out << std::oct << st.st_mode << std::dec << " nlink " << st.st_nlink;
  if (!S_ISDIR(st.st_mode)) out << " size " << st.st_size;
  return out.str();
}

std::string Brief(const std::vector<Entry>& entries) {
  std::string out;
  for (const Entry& entry : entries)
    out += entry.name + ":" + std::to_string(entry.type) + " ";
  return out;
}

rc::Gen<std::string> AnyPath() {
  const auto name = rc::gen::elementOf(std::string("abcd"));
  return rc::gen::map(
      rc::gen::tuple(rc::gen::weightedElement<int>({{3, 1}, {5, 2}, {2, 3}}),
                     name, name, name),
      [](const std::tuple<int, char, char, char>& parts) {
        const auto& [depth, one, two, three] = parts;
        std::string path(1, one);
        if (depth > 1) path += std::string("/") + two;
        if (depth > 2) path += std::string("/") + three;
        return path;
      });
}

/// A number from the whole of [0, end), however small the sequence of steps is.
template <class T>
rc::Gen<T> Below(T end) {
  return rc::gen::resize(rc::kNominalSize, rc::gen::inRange<T>(0, end));
}

rc::Gen<StepKind> AnyKind() {
  return rc::gen::map(Below(static_cast<int>(StepKind::kCount)),
                      [](int kind) { return static_cast<StepKind>(kind); });
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Step& step) {
  return out << kNames[static_cast<size_t>(step.kind)] << ' ' << step.path
             << " other=" << step.other << " offset=" << step.offset
             << " length=" << step.length << " choice=" << int{step.choice}
             << " mode=0" << std::oct << step.mode << std::dec;
}

std::vector<mode_t> StepModes(bool kernel) {
  if (geteuid() == 0) return {0644, 0600, 0755, 0, 01777};
  if (kernel) return {0755, 0700, 0555, 0500, 01777};
  return {0755, 0700, 0711, 0750, 01777};
}

rc::Gen<Step> AnyStep(const std::vector<mode_t>& modes) {
  return rc::gen::build<Step>(
      rc::gen::set(&Step::kind, AnyKind()),
      rc::gen::set(&Step::path, AnyPath()),
      rc::gen::set(&Step::other, AnyPath()),
      rc::gen::set(&Step::offset, Below<uint32_t>(50000)),
      rc::gen::set(&Step::length, rc::gen::oneOf(Below<uint32_t>(100),
                                                 Below<uint32_t>(40000))),
      rc::gen::set(&Step::choice, Below<uint8_t>(120)),
      rc::gen::set(&Step::mode, rc::gen::elementOf(modes)));
}

void PrepareBase(BaseTree& base) {
  base.File("a/a", "first file");
  base.File("a/b/a", std::string(5000, 'x'));
  base.HardLink("a/a", "a/b/b");
  base.Symlink("b", "a/b/c");
  base.Directory("a/c");
  base.File("a/d", "", 0600);
  base.File("b/a/a", "1");
  base.File("b/a/b", "22");
  base.File("b/a/c", "333");
  base.File("b/b", std::string(300000, 'l'));
  base.Fifo("b/c");
  base.Directory("b/d/a");
  base.HardLink("b/a/a", "c");
  base.Symlink("a", "d");
  base.Xattr("a/d", "user.0", "base");
  base.SetTimes();
}

std::string StepRunner::Run(const Step& step) {
  const auto result = Do(step);
  return result ? "OK " + *result : ErrnoName(result.error().code);
}

void StepRunner::DropAll() {
  for (auto& slot : held_) {
    if (slot) (void)driver_.Close(*slot);
    slot.reset();
  }
}

Result<std::string> StepRunner::Do(const Step& step) {
  switch (step.kind) {
    case StepKind::kRead:
    case StepKind::kList:
    case StepKind::kStat:
      return Look(step);
    case StepKind::kHold:
    case StepKind::kHeldWrite:
    case StepKind::kHeldRead:
    case StepKind::kHeldTruncate:
    case StepKind::kDrop:
      return DoHeld(step);
    default:
      TRY(Mutate(step));
      return "";
  }
}

Result<std::string> StepRunner::Look(const Step& step) {
  switch (step.kind) {
    case StepKind::kRead:
      return Brief(TRY(driver_.ReadFile(step.path)));
    case StepKind::kList:
      return Brief(TRY(driver_.List(step.path)));
    default:
      return Brief(TRY(driver_.Stat(step.path)));
  }
}

Result<std::string> StepRunner::DoHeld(const Step& step) {
  auto& slot = held_[step.choice % kSlots];
  if (step.kind == StepKind::kHold) {
    const auto before =
        std::exchange(slot, TRY(driver_.Open(step.path, O_RDWR, 0)));
    if (before) TRY(driver_.Close(*before));
    return "";
  }
  if (!slot) return Fail(EBADF, "slot");
  switch (step.kind) {
    case StepKind::kHeldWrite:
      TRY(driver_.WriteAt(*slot, step.offset, Fill(step)));
      break;
    case StepKind::kHeldTruncate:
      TRY(driver_.TruncateOf(*slot, step.offset));
      break;
    case StepKind::kDrop:
      // Where closing fails it is closed all the same.
      TRY(driver_.Close(*std::exchange(slot, std::nullopt)));
      return "";
    default:
      break;
  }
  return Brief(TRY(driver_.StatOf(*slot))) + " " +
         Brief(TRY(driver_.ReadAt(*slot, 0, 400000)));
}

Status StepRunner::Mutate(const Step& step) {
  const std::string xattr = "user." + std::to_string(step.choice % 3);
  switch (step.kind) {
    case StepKind::kMkdir:
      return driver_.Mkdir(step.path, 0755);
    case StepKind::kRmdir:
      return driver_.Rmdir(step.path);
    case StepKind::kUnlink:
      return driver_.Unlink(step.path);
    case StepKind::kRename:
      return driver_.Rename(step.path, step.other, 0);
    case StepKind::kRenameNoReplace:
      return driver_.Rename(step.path, step.other, RENAME_NOREPLACE);
    case StepKind::kExchange:
      return driver_.Rename(step.path, step.other, RENAME_EXCHANGE);
    case StepKind::kLink:
      return driver_.Link(step.path, step.other);
    case StepKind::kSymlink:
      return driver_.Symlink(Pick(kTargets, step.choice), step.path);
    case StepKind::kMkfifo:
      return driver_.Mkfifo(step.path, 0644);
    case StepKind::kChmod:
      return driver_.Chmod(step.path, step.mode);
    case StepKind::kUtimens: {
      const timespec t{.tv_sec = 1'100'000'000 + step.offset,
                       .tv_nsec = step.length};
      return driver_.Utimens(step.path, {.atime = t, .mtime = t});
    }
    case StepKind::kSetXattr:
      return driver_.SetXattr(step.path, xattr, Fill(step).substr(0, 100),
                              step.choice % 4 % 3);
    case StepKind::kRemoveXattr:
      return driver_.RemoveXattr(step.path, xattr);
    case StepKind::kRemoveTree:
      // All of a tree at the top would leave too little to do.
      return driver_.RemoveRecursively(step.path + "/" +
                                       step.other.substr(0, 1));
    default:
      return MutateContent(step);
  }
}

Status StepRunner::MutateContent(const Step& step) {
  switch (step.kind) {
    case StepKind::kCreate: {
      const int flags = O_WRONLY | O_CREAT | (step.choice % 2 ? O_EXCL : 0);
      return driver_.Close(TRY(driver_.Open(step.path, flags, step.mode)));
    }
    case StepKind::kOverwrite:
      return driver_.WriteFile(step.path, Fill(step));
    case StepKind::kPatch:
      return driver_.PatchFile(step.path, step.offset, Fill(step));
    case StepKind::kAppend:
      return driver_.AppendFile(step.path, Fill(step));
    case StepKind::kTruncate:
      return driver_.Truncate(step.path, step.offset);
    case StepKind::kAllocate:
      return AllocateRange(step);
    default:
      return Copy(step);
  }
}

Status StepRunner::AllocateRange(const Step& step) {
  const Handle file = TRY(driver_.Open(step.path, O_RDWR, 0));
  const Status done = driver_.Allocate(file, Pick(kAllocateModes, step.choice),
                                       step.offset, step.length);
  TRY(driver_.Close(file));
  return done;
}

Status StepRunner::Copy(const Step& step) {
  const Handle from = TRY(driver_.Open(step.path, O_RDONLY, 0));
  const auto to = driver_.Open(step.other, O_RDWR, 0);
  Status done;
  if (!to) {
    done = std::unexpected(to.error());
  } else {
    const auto copied = driver_.CopyRange(from, step.offset / 100, *to,
                                          step.offset, step.length);
    if (!copied) done = std::unexpected(copied.error());
    TRY(driver_.Close(*to));
  }
  TRY(driver_.Close(from));
  return done;
}

void SetCases(int cases, int max_size) {
  const char* given = std::getenv("RC_PARAMS");
  std::string params = std::string(given ? given : "") +
                       " max_size=" + std::to_string(max_size) +
                       " max_success=" + std::to_string(cases);
  const char* seed = std::getenv("TXFS_TEST_SEED");
  if (seed && !params.contains("seed=")) params += std::string(" seed=") + seed;
  setenv("RC_PARAMS", params.c_str(), 1);
}

}  // namespace txfs::testing
