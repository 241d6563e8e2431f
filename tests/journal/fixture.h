#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "journal/journal.h"
#include "journal/store.h"
#include "journal/support/file.h"
#include "journal/support/io.h"

#define ASSERT_OK(expression)                                  \
  do {                                                         \
    const auto& result_of_ok = (expression);                   \
    ASSERT_TRUE(result_of_ok) << result_of_ok.error().message; \
  } while (false)
#define EXPECT_OK(expression)                                  \
  do {                                                         \
    const auto& result_of_ok = (expression);                   \
    EXPECT_TRUE(result_of_ok) << result_of_ok.error().message; \
  } while (false)
#define EXPECT_ERRNO(expression, errno_value)            \
  do {                                                   \
    const auto& result_of_errno = (expression);          \
    ASSERT_FALSE(result_of_errno);                       \
    EXPECT_EQ(result_of_errno.error().code, errno_value) \
        << result_of_errno.error().message;              \
  } while (false)

namespace txfs {

/// A directory that is gone when the test is over.
class TempDir {
 public:
  TempDir() {
    const char* base = std::getenv("TMPDIR");
    path_ = std::string(base ? base : "/tmp") + "/txfs-test-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~TempDir() { EXPECT_TRUE(RemoveTree(AT_FDCWD, path_)); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] UniqueFd Open() const {
    return UniqueFd(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }

 private:
  std::string path_;
};

/// A disk that fails on command, and counts what it is asked to write.
class FaultyIo final : public Io {
 public:
  std::atomic<int> write_error = 0;
  std::atomic<int> sync_error = 0;
  std::atomic<int> allocate_error = 0;
  std::atomic<int> commit_error = 0;
  std::atomic<uint64_t> written = 0;
  std::atomic<uint64_t> punched = 0;
  std::atomic<int> commits_until_error = -1;  ///< -1: never

  ssize_t Write(int fd, const iovec* parts, int count, off_t offset) override {
    if (write_error != 0) return errno = write_error, -1;
    const ssize_t n = Io::Write(fd, parts, count, offset);
    if (n > 0) written += static_cast<uint64_t>(n);
    return n;
  }
  int Sync(int fd) override {
    if (sync_error != 0) return errno = sync_error, -1;
    return Io::Sync(fd);
  }
  int Allocate(int fd, int mode, off_t offset, off_t length) override {
    if (allocate_error != 0) return errno = allocate_error, -1;
    if ((mode & FALLOC_FL_PUNCH_HOLE) != 0) {
      punched += static_cast<uint64_t>(length);
    }
    return Io::Allocate(fd, mode, offset, length);
  }
  int CommitError() override {
    if (commits_until_error == 0) return EIO;
    if (commits_until_error > 0) --commits_until_error;
    return commit_error;
  }
};

/// The simplest state that takes edits.
class Model final : public State {
 public:
  std::map<Ino, InodeRecord> inodes;
  std::map<std::pair<Ino, std::string>, DentryValue> dentries;
  std::map<std::pair<Ino, uint64_t>, Extent> extents;
  std::map<std::pair<Ino, std::string>, std::string> xattrs;

  void SetInode(Ino ino, const std::optional<InodeRecord>& record) override {
    inodes.erase(ino);
    if (record) inodes[ino] = *record;
  }
  void SetAttr(Ino ino, const Attr& attr) override { inodes[ino].attr = attr; }
  void SetDentry(Ino parent, const std::string& name,
                 const DentryValue& value) override {
    dentries.erase({parent, name});
    if (value.kind != DentryKind::kAbsent) dentries[{parent, name}] = value;
  }
  void EraseExtent(Ino ino, const Extent& extent) override {
    extents.erase({ino, extent.offset});
  }
  void PutExtent(Ino ino, const Extent& extent) override {
    extents[{ino, extent.offset}] = extent;
  }
  void SetXattr(Ino ino, const std::string& name,
                const std::optional<std::string>& value) override {
    xattrs.erase({ino, name});
    if (value) xattrs[{ino, name}] = *value;
  }
  bool operator==(const Model& other) const {
    return inodes == other.inodes && dentries == other.dentries &&
           extents == other.extents && xattrs == other.xattrs;
  }
};

/// Bytes that tell by themselves which they are.
inline std::string Content(uint64_t seed, size_t size) {
  std::string content((size + 7) / 8 * 8, '\0');
  uint64_t word = seed;
  for (size_t i = 0; i < content.size(); i += 8) {
    word = (word ^ (word >> 29)) * 0x9E3779B97F4A7C15ULL + 1;
    std::memcpy(content.data() + i, &word, 8);
  }
  content.resize(size);
  return content;
}

/// A random, but sensible, sequence of changes, and what they lead to.
class History {
 public:
  explicit History(uint64_t seed) : random_(seed) {}

  /// Appends one change; false when the journal refuses.
  Result<Lsn> Step(Journal& journal, size_t max_content = 3000) {
    Change change;
    change.op = Op::kWrite;
    change.path = "file" + std::to_string(steps_++);
    const Ino ino{2 + random_() % 5};
    switch (random_() % 5) {
      case 0:
        AddInodeEdit(change, ino);
        break;
      case 1:
        AddDentryEdit(change, ino);
        break;
      case 2:
        AddXattrEdit(change, ino);
        break;
      default:
        return Write(journal, std::move(change), ino, max_content);
    }
    return Finish(journal, change, nullptr, nullptr);
  }

  /// Everything but the future is as in `past` again.
  void GoBack(const History& past) {
    model = past.model;
    contents_ = past.contents_;
  }

  /// Reads all content; names what is not as it was written, or "".
  [[nodiscard]] std::string FindDamage(Journal& journal) const {
    for (const auto& [key, extent] : model.extents) {
      std::string out(extent.length, '\0');
      const Status read = journal.Read(extent.content, 0,
                                       std::as_writable_bytes(std::span(out)));
      if (!read) return read.error().message;
      if (out != *contents_.at(key)) {
        return "inode " + std::to_string(Raw(key.first)) + " at " +
               std::to_string(key.second);
      }
    }
    return "";
  }
  void ExpectContents(Journal& journal) const {
    ASSERT_EQ(FindDamage(journal), "");
  }

  Model model;

 protected:
  void AddInodeEdit(Change& change, Ino ino) {
    InodeEdit edit{ino, {}, {}};
    if (model.inodes.contains(ino)) edit.before = model.inodes.at(ino);
    if (random_() % 3 != 0) {
      edit.after.emplace();
      edit.after->attr.size = random_() / 2;
      edit.after->symlink = random_() % 2 ? "target" : "";
      if (random_() % 2) {
        edit.after->base =
            BaseOrigin{.path = "a/b", .ino = 9, .mode = S_IFREG | 0644};
      }
    }
    change.edits.emplace_back(edit);
  }
  void AddDentryEdit(Change& change, Ino parent) {
    const std::string name = "name" + std::to_string(random_() % 8);
    const auto found = model.dentries.find({parent, name});
    DentryEdit edit{parent, name, {}, {}};
    if (found != model.dentries.end()) edit.before = found->second;
    edit.after.kind = static_cast<DentryKind>(random_() % 3);
    const Ino ino{1 + random_() % 8};
    if (edit.after.kind == DentryKind::kInode) edit.after.ino = ino;
    change.edits.emplace_back(edit);
  }
  void AddXattrEdit(Change& change, Ino ino) {
    XattrEdit edit{ino, "user.x" + std::to_string(random_() % 3), {}, {}};
    const auto found = model.xattrs.find({ino, edit.name});
    if (found != model.xattrs.end()) edit.before = found->second;
    if (random_() % 2) edit.after = Content(random_(), random_() % 100);
    change.edits.emplace_back(edit);
  }
  Result<Lsn> Write(Journal& journal, Change change, Ino ino,
                    size_t max_content) {
    const uint64_t offset = random_() % 16 * kRecordContentMax;
    const std::string content = Content(random_(), 1 + random_() % max_content);
    const StagedContent staged = TRY(journal.Stage(AsBytes(content)));
    ExtentEdit edit{ino, {}, {{offset, content.size(), staged.ref}}};
    const auto found = model.extents.find({ino, offset});
    std::optional<Extent> old;
    if (found != model.extents.end()) old = found->second;
    if (old) edit.before.push_back(*old);
    change.edits.emplace_back(edit);
    auto lsn = Finish(journal, change, &staged, old ? &*old : nullptr);
    if (lsn) Contain(ino, offset, content);
    return lsn;
  }
  Result<Lsn> Finish(Journal& journal, const Change& change,
                     const StagedContent* staged, const Extent* old) {
    auto lsn = journal.Append(change, staged);
    if (!lsn) {
      if (staged) journal.Abandon(*staged);
      return lsn;
    }
    Apply(change, model);
    if (old) journal.Release(*old, *lsn);
    return lsn;
  }
  void Contain(Ino ino, uint64_t offset, std::string content) {
    contents_[{ino, offset}] =
        std::make_shared<const std::string>(std::move(content));
  }

  std::mt19937_64 random_;
  int steps_ = 0;
  /// Shared by copies of this history.
  std::map<std::pair<Ino, uint64_t>, std::shared_ptr<const std::string>>
      contents_;
};

/// Ends `transaction` as recovery does: the history says it, then the directory
/// goes.
inline Status EndTransaction(Store& store, OpenTransaction transaction,
                             TransactionSummary summary) {
  summary.id = transaction.id;
  TRY(store.history().Write(summary));
  transaction.journal->Forget();
  return store.Retire(summary.id);
}

}  // namespace txfs
