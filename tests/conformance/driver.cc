#include "tests/conformance/driver.h"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <iomanip>
#include <sstream>

#include "fs/base/base_directory.h"
#include "fs/host/xattrs.h"

namespace txfs::testing {
namespace {

constexpr size_t kPiece = 1 << 20;
constexpr size_t kFirstPiece = 4 << 10;
/// Contents up to this are compared byte by byte, larger ones by samples.
constexpr uint64_t kWholeContentMax = 4 << 20;

Status WriteAll(Driver& driver, const std::string& path, int flags,
                uint64_t offset, std::string_view bytes) {
  const Handle handle = TRY(driver.Open(path, flags, 0644));
  Status status;
  while (status && !bytes.empty()) {
    const auto written =
        driver.WriteAt(handle, offset, bytes.substr(0, kPiece));
    if (!written) {
      status = std::unexpected(written.error());
      break;
    }
    offset += *written;
    bytes.remove_prefix(*written);
  }
  const Status closed = driver.Close(handle);
  return status ? closed : status;
}

Result<std::string> ReadUntil(Driver& driver, Handle handle, uint64_t offset,
                              uint64_t end) {
  std::string content;
  // Most files are small, and a buffer has to be cleared.
  for (size_t most = kFirstPiece; offset < end;
       most = std::min(kPiece, 8 * most)) {
    const std::string piece = TRY(
        driver.ReadAt(handle, offset, std::min<uint64_t>(most, end - offset)));
    if (piece.empty()) break;
    content += piece;
    offset += piece.size();
  }
  return content;
}

std::string Join(const std::string& parent, const std::string& name) {
  return parent.empty() ? name : parent + "/" + name;
}

/// Removes what is in the open directory `path`. Like rm it goes on where it
/// may not: what is left does not depend on the order of entries.
Status RemoveEntries(Driver& driver, Handle handle, const std::string& path) {
  uint64_t cookie = 0;
  Status denied;
  while (true) {
    const auto some = TRY(driver.ReadDir(handle, cookie, 64));
    if (some.empty()) return denied;
    cookie = some.back().cookie;
    for (const Entry& entry : some) {
      if (entry.name == "." || entry.name == "..") continue;
      const std::string child = Join(path, entry.name);
      Status removed = entry.type == DT_DIR ? driver.RemoveRecursively(child)
                                            : driver.Unlink(child);
      if (removed) continue;
      if (removed.error().code != EACCES) return removed;
      denied = std::move(removed);
    }
  }
}

/// A file too large to compare is represented by its ends.
Result<std::string> ContentOf(Driver& driver, const std::string& path,
                              uint64_t size) {
  if (size <= kWholeContentMax) return driver.ReadFile(path);
  return TRY(driver.ReadRange(path, 0, kPiece)) +
         TRY(driver.ReadRange(path, size - kPiece, kPiece));
}

Result<std::map<std::string, std::string>> XattrsOf(Driver& driver,
                                                    const std::string& path) {
  std::map<std::string, std::string> xattrs;
  for (const std::string& name : TRY(driver.ListXattrs(path))) {
    if (IsTrackedXattr(name)) xattrs[name] = TRY(driver.GetXattr(path, name));
  }
  return xattrs;
}

Result<FileView> ViewFile(Driver& driver, const std::string& path) {
  const auto found = driver.Stat(path);
  if (!found) return Fail(found.error().code, "lstat " + path);
  const struct stat& st = *found;
  FileView view{
      .mode = st.st_mode,
      .ino = st.st_ino,
      .nlink = st.st_nlink,
      .uid = st.st_uid,
      .gid = st.st_gid,
      .size = S_ISDIR(st.st_mode) ? 0 : static_cast<uint64_t>(st.st_size),
      .mtime = Timestamp::From(st.st_mtim),
      .ctime = Timestamp::From(st.st_ctim),
      .content = {},
      .xattrs = {}};
  if (S_ISREG(st.st_mode))
    view.content = TRY(ContentOf(driver, path, view.size));
  if (S_ISLNK(st.st_mode)) view.content = TRY(driver.Readlink(path));
  if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
    view.xattrs = TRY(XattrsOf(driver, path));
  return view;
}

/// readdir(3) tells the inode number of the directory that is mounted over.
Result<bool> IsMountpoint(Driver& driver, const std::string& parent,
                          const std::string& path) {
  const struct stat outside = TRY(driver.Stat(parent));
  const struct stat inside = TRY(driver.Stat(path));
  // txfs has one device and tells filesystems of the base apart by high bits;
  // what is not from the base has one of its own.
  constexpr uint64_t kNewBit = uint64_t{1} << 52;
  constexpr int kFilesystemBits = 41;
  if (!S_ISDIR(inside.st_mode) || (inside.st_ino & kNewBit) != 0) return false;
  return outside.st_dev != inside.st_dev ||
         (outside.st_ino & ~kNewBit) >> kFilesystemBits !=
             inside.st_ino >> kFilesystemBits;
}

/// What nobody has looked up has another number while its own is that of a
/// deleted file which the kernel still holds, and the kernel may forget that
/// one between a list and a lookup; but not twice.
Status CheckNumber(Driver& driver, const std::string& parent,
                   const std::string& name) {
  const std::string path = Join(parent, name);
  const std::vector<Entry> entries = TRY(driver.List(parent));
  const auto listed = std::ranges::find(entries, name, &Entry::name);
  const struct stat st = TRY(driver.Stat(path));
  if (listed != entries.end() && listed->ino == st.st_ino) return {};
  return Fail(
      EILSEQ,
      path + ": readdir and stat disagree about the inode number: " +
          (listed == entries.end() ? "none" : std::to_string(listed->ino)) +
          " and " + std::to_string(st.st_ino));
}

Status ViewBelow(Driver& driver, const std::string& path, TreeView& tree) {
  for (const Entry& entry : TRY(driver.List(path))) {
    if (IsReservedName(path.empty(), entry.name)) continue;
    const std::string child = Join(path, entry.name);
    const FileView& view = tree[child] = TRY(ViewFile(driver, child));
    if (view.ino != entry.ino && !TRY(IsMountpoint(driver, path, child))) {
      TRY(CheckNumber(driver, path, entry.name));
    }
    if (IFTODT(view.mode) != entry.type)
      return Fail(EILSEQ, child + ": readdir has another type");
    if (S_ISDIR(view.mode)) {
      if (auto below = ViewBelow(driver, child, tree); !below) return below;
    }
  }
  return {};
}

std::string Digest(const std::string& content) {
  std::ostringstream out;
  out << content.size() << " bytes, hash " << std::hex
      << std::hash<std::string>{}(content) << ", starts with "
      << std::quoted(content.substr(0, 40));
  return out.str();
}

/// Collects the differences of one path.
class Differences {
 public:
  Differences(std::string path, std::string& out)
      : path_(std::move(path)), out_(out) {}

  template <class T>
  void Check(std::string_view what, const T& expected, const T& actual) {
    if (expected == actual) return;
    std::ostringstream line;
    line << std::quoted(path_) << ": " << what << " is " << actual
         << ", expected " << expected << '\n';
    out_ += line.str();
  }

 private:
  std::string path_;
  std::string& out_;
};

std::string Show(Timestamp t) {
  std::ostringstream out;
  out << t.sec << '.' << std::setfill('0') << std::setw(9) << t.nsec;
  return out.str();
}

std::string Octal(mode_t mode) {
  std::ostringstream out;
  out << std::oct << mode;
  return out.str();
}

void CompareFiles(const std::string& path, const FileView& expected,
                  const FileView& actual, const ViewRules& rules,
                  std::string& out) {
  Differences differences(path, out);
  differences.Check("mode", Octal(expected.mode), Octal(actual.mode));
  differences.Check("nlink", expected.nlink, actual.nlink);
  differences.Check("uid", expected.uid, actual.uid);
  differences.Check("gid", expected.gid, actual.gid);
  differences.Check("size", expected.size, actual.size);
  if (expected.content != actual.content) {
    differences.Check("content", Digest(expected.content),
                      Digest(actual.content));
  }
  std::string wanted, found;
  for (const auto& [name, value] : expected.xattrs)
    wanted += name + "=" + value + " ";
  for (const auto& [name, value] : actual.xattrs)
    found += name + "=" + value + " ";
  differences.Check("xattrs", wanted, found);
  if (rules.ino) differences.Check("ino", expected.ino, actual.ino);
  if (rules.ctime) {
    differences.Check("ctime", Show(expected.ctime), Show(actual.ctime));
  }
  const bool fixed = expected.mtime.sec < rules.fixed_before ||
                     actual.mtime.sec < rules.fixed_before;
  if (rules.mtime || fixed) {
    differences.Check("mtime", Show(expected.mtime), Show(actual.mtime));
  }
}

}  // namespace

Status Driver::WriteFile(const std::string& path, std::string_view content) {
  return WriteAll(*this, path, O_WRONLY | O_CREAT | O_TRUNC, 0, content);
}

Status Driver::AppendFile(const std::string& path, std::string_view content) {
  return WriteAll(*this, path, O_WRONLY | O_APPEND, 0, content);
}

Status Driver::PatchFile(const std::string& path, uint64_t offset,
                         std::string_view bytes) {
  return WriteAll(*this, path, O_WRONLY, offset, bytes);
}

Result<std::string> Driver::ReadFile(const std::string& path) {
  return ReadRange(path, 0, UINT32_MAX);
}

Result<std::string> Driver::ReadRange(const std::string& path, uint64_t offset,
                                      size_t length) {
  const Handle handle = TRY(Open(path, O_RDONLY, 0));
  auto content = ReadUntil(*this, handle, offset, offset + length);
  const Status closed = Close(handle);
  if (!closed) return std::unexpected(closed.error());
  return content;
}

Result<std::vector<Entry>> Driver::List(const std::string& path) {
  const Handle handle = TRY(OpenDir(path));
  std::vector<Entry> all;
  uint64_t cookie = 0;
  while (true) {
    auto some = ReadDir(handle, cookie, 128);
    if (!some || some->empty()) {
      const Status closed = CloseDir(handle);
      if (!some) return some;
      if (!closed) return std::unexpected(closed.error());
      break;
    }
    cookie = some->back().cookie;
    all.insert(all.end(), some->begin(), some->end());
  }
  std::erase_if(all,
                [](const Entry& e) { return e.name == "." || e.name == ".."; });
  std::ranges::sort(all, {}, &Entry::name);
  return all;
}

Result<std::vector<std::string>> Driver::Names(const std::string& path) {
  std::vector<std::string> names;
  for (Entry& entry : TRY(List(path))) names.push_back(std::move(entry.name));
  return names;
}

Status Driver::RemoveRecursively(const std::string& path) {
  const Handle handle = TRY(OpenDir(path));
  const Status emptied = RemoveEntries(*this, handle, path);
  TRY(CloseDir(handle));
  TRY(emptied);
  return Rmdir(path);
}

Result<TreeView> ViewTree(Driver& driver) {
  TreeView tree;
  tree[""] = TRY(ViewFile(driver, ""));
  TRY(ViewBelow(driver, "", tree));
  return tree;
}

Result<TreeView> ViewWithoutStore(Driver& driver) {
  TreeView tree = TRY(ViewTree(driver));
  tree.at("").nlink = 0;
  return tree;
}

std::string Compare(const TreeView& expected, const TreeView& actual,
                    const ViewRules& rules) {
  std::string out;
  for (const auto& [path, view] : expected) {
    const auto found = actual.find(path);
    if (found == actual.end()) {
      out += "\"" + path + "\" is missing\n";
    } else {
      CompareFiles(path, view, found->second, rules, out);
    }
  }
  for (const auto& [path, view] : actual) {
    if (!expected.contains(path)) out += "\"" + path + "\" should not exist\n";
  }
  return out;
}

std::string ErrnoName(int code) {
  if (code == 0) return "OK";
  const char* name = strerrorname_np(code);
  return name ? name : std::to_string(code);
}

}  // namespace txfs::testing
