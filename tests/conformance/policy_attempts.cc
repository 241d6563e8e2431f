#include "tests/conformance/policy_attempts.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace txfs::testing {
namespace {

using ::std::string;

constexpr unsigned kByFile = kByName | kByAnother;
constexpr unsigned kByContent = kByFile | kBySymlink | kOpenBefore;
constexpr unsigned kOnlyName = kByName | kDirectory | kLink;

Status Ignoring(const Result<size_t>& result) {
  if (!result) return std::unexpected(result.error());
  return {};
}

Attempt OnContent(const string& name, const string& op,
                  const std::function<Status(Driver& fs, Handle file)>& work,
                  int flags = O_RDWR) {
  return {.name = name,
          .op = op,
          .reach = kByContent,
          .open_flags = flags,
          .run = [work](Driver& fs, const string&, Handle file) {
            return work(fs, file);
          }};
}

Attempt Write(const string& name, uint64_t offset, int flags = O_RDWR) {
  return OnContent(
      name, "write",
      [offset](Driver& fs, Handle file) {
        return Ignoring(fs.WriteAt(file, offset, "evil"));
      },
      flags);
}

Attempt TruncateOf(const string& name, uint64_t size) {
  return OnContent(name, "truncate", [size](Driver& fs, Handle file) {
    return fs.TruncateOf(file, size);
  });
}

Attempt Allocate(const string& name, int mode) {
  return OnContent(name, "allocate", [mode](Driver& fs, Handle file) {
    return fs.Allocate(file, mode, 1, 9000);
  });
}

Status CopyFromFree(Driver& fs, Handle file) {
  const Handle from = TRY(fs.Open("free", O_RDONLY, 0));
  const auto copied = fs.CopyRange(from, 0, file, 0, 4);
  TRY(fs.Close(from));
  return Ignoring(copied);
}

std::vector<Attempt> OnOpenFiles() {
  return {
      Write("Write", 1),
      Write("WriteAtTheEnd", 6),
      Write("WriteFarBehindTheEnd", 100'000),
      Write("Append", 0, O_WRONLY | O_APPEND),
      TruncateOf("Shorten", 2),
      TruncateOf("Empty", 0),
      TruncateOf("Extend", 9000),
      Allocate("Reserve", 0),
      Allocate("ReserveAndKeepSize", FALLOC_FL_KEEP_SIZE),
      Allocate("PunchHole", FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE),
      Allocate("Zero", FALLOC_FL_ZERO_RANGE),
      Allocate("ZeroAndKeepSize", FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE),
      OnContent("CopyRange", "write", CopyFromFree),
  };
}

/// An attempt by path.
Attempt OnPath(const string& name, const string& op, unsigned reach,
               std::function<Status(Driver& fs, const string& path)> work) {
  return {.name = name,
          .op = op,
          .reach = reach,
          .run = [work = std::move(work)](Driver& fs, const string& path,
                                          Handle) { return work(fs, path); }};
}

Status OpenAndClose(Driver& fs, const string& path, int flags) {
  const Handle file = TRY(fs.Open(path, flags, 0644));
  return fs.Close(file);
}

Attempt OpenWith(const string& name, const string& op, unsigned reach,
                 int flags) {
  return OnPath(name, op, reach, [flags](Driver& fs, const string& path) {
    return OpenAndClose(fs, path, flags);
  });
}

std::vector<Attempt> ThatTruncateByPath() {
  constexpr unsigned kFollows = kByFile | kBySymlink;
  return {
      OpenWith("OpenAndTruncate", "truncate", kFollows, O_WRONLY | O_TRUNC),
      OpenWith("CreateOverIt", "truncate", kFollows,
               O_RDWR | O_CREAT | O_TRUNC),
      OnPath("TruncateByPath", "truncate", kFollows,
             [](Driver& fs, const string& path) {
               return fs.Truncate(path, 100);
             }),
  };
}

std::vector<Attempt> OnAttributes() {
  constexpr unsigned kAny = kByFile | kDirectory;
  std::vector<Attempt> attempts{
      OnPath(
          "Chmod", "chmod", kAny | kBySymlink,
          [](Driver& fs, const string& path) { return fs.Chmod(path, 0700); }),
      OnPath("Utimens", "utimens", kAny | kLink,
             [](Driver& fs, const string& path) {
               return fs.Utimens(path, {.mtime = {.tv_sec = 1, .tv_nsec = 2}});
             }),
      OnPath("SetXattr", "setxattr", kAny,
             [](Driver& fs, const string& path) {
               return fs.SetXattr(path, "user.evil", "1", 0);
             }),
      OnPath("ReplaceXattr", "setxattr", kAny,
             [](Driver& fs, const string& path) {
               return fs.SetXattr(path, "user.kept", "2", 0);
             }),
      OnPath("RemoveXattr", "removexattr", kAny,
             [](Driver& fs, const string& path) {
               return fs.RemoveXattr(path, "user.kept");
             }),
  };
  // Of others the kernel refuses this itself.
  if (geteuid() == 0) {
    attempts.push_back(OnPath(
        "Chown", "chown", kAny | kLink,
        [](Driver& fs, const string& path) { return fs.Chown(path, 12, 34); }));
  }
  return attempts;
}

/// A rename, or an exchange, from `from` to `to`, of which one is kThatName.
Attempt Move(const string& name, unsigned reach, const string& from,
             const string& to, unsigned flags = 0) {
  Attempt attempt =
      OnPath(name, (flags & RENAME_EXCHANGE) != 0 ? "exchange" : "rename",
             reach, [=](Driver& fs, const string& path) {
               return fs.Rename(from == kThatName ? path : from,
                                to == kThatName ? path : to, flags);
             });
  attempt.path = from;
  attempt.new_path = to;
  return attempt;
}

Attempt LinkBetween(const string& name, unsigned reach, const string& from,
                    const string& to) {
  Attempt attempt =
      OnPath(name, "link", reach, [=](Driver& fs, const string& path) {
        return fs.Link(from == kThatName ? path : from,
                       to == kThatName ? path : to);
      });
  attempt.path = from;
  attempt.new_path = to;
  return attempt;
}

std::vector<Attempt> OnNames() {
  return {
      OnPath("Unlink", "unlink", kByFile | kLink,
             [](Driver& fs, const string& path) { return fs.Unlink(path); }),
      OnPath("Rmdir", "rmdir", kDirectory,
             [](Driver& fs, const string& path) { return fs.Rmdir(path); }),
      LinkBetween("LinkAway", kByFile | kLink, kThatName, "away"),
      Move("RenameAway", kOnlyName, kThatName, "away"),
      Move("RenameOverAnother", kByName | kLink, kThatName, "free"),
      Move("ReplaceByAFile", kByFile | kLink, "free", kThatName),
      Move("ReplaceByADirectory", kDirectory, "spare", kThatName),
      Move("ExchangeWithAFile", kOnlyName, "free", kThatName, RENAME_EXCHANGE),
      Move("ExchangeForAFile", kOnlyName, kThatName, "free", RENAME_EXCHANGE),
      Move("ExchangeWithADirectory", kOnlyName, "dir", kThatName,
           RENAME_EXCHANGE),
      Move("ExchangeForADirectory", kOnlyName, kThatName, "dir",
           RENAME_EXCHANGE),
  };
}

std::vector<Attempt> ThatMakeNames() {
  return {
      OpenWith("Create", "create", kNotThere, O_CREAT | O_WRONLY),
      OpenWith("CreateAndTruncate", "create", kNotThere,
               O_CREAT | O_TRUNC | O_RDWR),
      OpenWith("CreateExclusively", "create", kNotThere,
               O_CREAT | O_EXCL | O_WRONLY),
      OnPath(
          "Mkdir", "mkdir", kNotThere,
          [](Driver& fs, const string& path) { return fs.Mkdir(path, 0755); }),
      OnPath(
          "Mkfifo", "mknod", kNotThere,
          [](Driver& fs, const string& path) { return fs.Mkfifo(path, 0644); }),
      OnPath("Symlink", "symlink", kNotThere,
             [](Driver& fs, const string& path) {
               return fs.Symlink("free", path);
             }),
      LinkBetween("LinkTo", kNotThere, "free", kThatName),
      Move("RenameTo", kNotThere, "free", kThatName),
      Move("RenameADirectoryTo", kNotThere, "dir", kThatName),
      Move("RenameToAFreeName", kNotThere, "free", kThatName, RENAME_NOREPLACE),
  };
}

/// A rule is about what is in any directory "kept".
std::vector<Attempt> OnWhatIsAbove() {
  return {
      Move("RenameParent", kAbove, "top/kept", "away"),
      Move("RenameGrandparent", kAbove, "top", "away"),
      Move("RenameParentIntoAnother", kAbove, "top/kept", "dir/kept"),
      Move("ReplaceByParent", kAbove, "top/kept", "spare"),
      Move("ExchangeParentForADirectory", kAbove, "top/kept", "dir",
           RENAME_EXCHANGE),
      Move("ExchangeADirectoryForParent", kAbove, "dir", "top/kept",
           RENAME_EXCHANGE),
      Move("ExchangeGrandparentForAFile", kAbove, "top", "free",
           RENAME_EXCHANGE),
      Move("ExchangeAFileForGrandparent", kAbove, "free", "top",
           RENAME_EXCHANGE),
      Move("RenameInto", kAbove, "dir", "top/kept/in"),
      // What is in it gets a name that a rule is about.
      Move("RenameToParent", kAbove, "plain", "spare/kept"),
  };
}

}  // namespace

std::vector<Attempt> AllAttempts() {
  std::vector<Attempt> all;
  for (auto some : {OnOpenFiles(), ThatTruncateByPath(), OnAttributes(),
                    OnNames(), OnWhatIsAbove(), ThatMakeNames()}) {
    std::ranges::move(some, std::back_inserter(all));
  }
  return all;
}

}  // namespace txfs::testing
