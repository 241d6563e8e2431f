#include "journal/change.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/stat.h>

#include <algorithm>

#include "journal/support/stored.h"
#include "tests/journal/fixture.h"

namespace txfs {
namespace {

using rc::gen::arbitrary;
using rc::gen::inRange;

Timestamp AnyTime() {
  return {*arbitrary<int64_t>(), *inRange<uint32_t>(0, 1'000'000'000)};
}

/// As it may be stored: for people, and without NUL.
std::string AnyText() {
  std::string text = *arbitrary<std::string>();
  std::erase(text, '\0');
  return text;
}

uint64_t AnyNumber() { return *arbitrary<uint64_t>() / 2; }

Ino AnyIno() { return Ino{*inRange<uint64_t>(1, kStoredNumberMax)}; }

/// Of an entry of a directory.
std::string AnyName() {
  std::string name = AnyText();
  std::ranges::replace(name, '/', '_');
  return "n" + name.substr(0, kStoredNameMax - 1);
}

std::string AnyPath() {
  std::string path = *arbitrary<bool>() ? AnyName() : "";
  for (int i = *inRange(0, 3); i > 0 && !path.empty(); --i) {
    path += '/' + AnyName();
  }
  return path;
}

Attr AnyAttr() {
  Attr attr;
  attr.type = static_cast<FileType>(*inRange(1, 8));
  attr.xattrs_owned = *arbitrary<bool>();
  attr.mode = *inRange<uint32_t>(0, 010000);
  attr.uid = *arbitrary<uint32_t>();
  attr.gid = *arbitrary<uint32_t>();
  attr.nlink = *arbitrary<uint32_t>();
  attr.rdev = *arbitrary<uint64_t>();
  attr.size = AnyNumber();
  attr.base_limit = *arbitrary<uint64_t>();
  attr.own_segment = *arbitrary<uint32_t>();
  attr.atime = AnyTime();
  attr.mtime = AnyTime();
  attr.ctime = AnyTime();
  return attr;
}

std::optional<InodeRecord> AnyRecord() {
  if (*arbitrary<bool>()) return std::nullopt;
  InodeRecord record;
  record.attr = AnyAttr();
  record.symlink = AnyText();
  if (*arbitrary<bool>()) {
    record.base = BaseOrigin{AnyPath(),
                             *arbitrary<uint64_t>(),
                             *arbitrary<uint64_t>(),
                             AnyNumber(),
                             ModeBits(static_cast<FileType>(*inRange(1, 8))) |
                                 *inRange<uint32_t>(0, 010000),
                             *arbitrary<uint32_t>(),
                             *arbitrary<uint32_t>(),
                             *arbitrary<uint32_t>(),
                             AnyTime(),
                             AnyTime()};
  }
  return record;
}

Extent AnyExtent() {
  Extent extent;
  extent.offset = *inRange<uint64_t>(0, uint64_t{1} << 50);
  extent.length = *inRange<uint64_t>(1, kRecordContentMax / 2);
  if (*arbitrary<bool>()) return extent;
  extent.content.segment = *inRange<uint32_t>(1, UINT32_MAX);
  extent.content.delta = *inRange<uint32_t>(0, kRecordContentMax / 2);
  extent.content.record_length =
      extent.content.delta + static_cast<uint32_t>(extent.length);
  extent.content.record_position = *inRange<uint64_t>(0, uint64_t{1} << 50);
  extent.content.checksum = *arbitrary<uint64_t>();
  return extent;
}

std::vector<Extent> AnyExtents() {
  std::vector<Extent> extents(*inRange<size_t>(0, 4));
  for (Extent& extent : extents) extent = AnyExtent();
  return extents;
}

DentryValue AnyDentry() {
  DentryValue value{.kind = static_cast<DentryKind>(*inRange(0, 3))};
  if (value.kind == DentryKind::kInode) value.ino = AnyIno();
  return value;
}

std::optional<std::string> AnyValue() {
  if (*arbitrary<bool>()) return std::nullopt;
  return AnyText();
}

Edit AnyEdit() {
  const Ino ino = AnyIno();
  switch (*inRange(0, 5)) {
    case 0:
      return InodeEdit{ino, AnyRecord(), AnyRecord()};
    case 1:
      return AttrEdit{ino, AnyAttr(), AnyAttr()};
    case 2:
      return DentryEdit{ino, AnyName(), AnyDentry(), AnyDentry()};
    case 3:
      return ExtentEdit{ino, AnyExtents(), AnyExtents()};
    default:
      return XattrEdit{ino, AnyName(), AnyValue(), AnyValue()};
  }
}

Change AnyChange() {
  Change change;
  change.op = static_cast<Op>(*inRange(1, 19));
  change.result = *arbitrary<int32_t>();
  change.time = AnyTime();
  change.pid = *arbitrary<uint32_t>();
  change.uid = *arbitrary<uint32_t>();
  change.exe = AnyText();
  change.path = AnyText();
  change.new_path = AnyText();
  change.offset = *arbitrary<uint64_t>();
  change.length = *arbitrary<uint64_t>();
  change.edits.resize(*inRange<size_t>(0, 5));
  for (Edit& edit : change.edits) edit = AnyEdit();
  return change;
}

TEST(ChangeTest, IsTheSameAfterEncodingAndDecoding) {
  EXPECT_TRUE(rc::check([] {
    const Change change = AnyChange();
    Bytes bytes;
    EncodeChange(change, bytes);
    const auto decoded = DecodeChange(bytes);
    RC_ASSERT(decoded.has_value());
    RC_ASSERT(*decoded == change);
  }));
}

TEST(ChangeTest, IsRefusedWhenCutShortOrTooLong) {
  EXPECT_TRUE(rc::check([] {
    Bytes bytes;
    EncodeChange(AnyChange(), bytes);
    const auto size = *inRange<size_t>(0, bytes.size());
    RC_ASSERT(!DecodeChange(ByteSpan(bytes).first(size)));
    bytes.push_back(std::byte{0});
    RC_ASSERT(!DecodeChange(bytes));
  }));
}

TEST(ChangeTest, DamagedBytesAreAnErrorOrAChangeButNeverACrash) {
  EXPECT_TRUE(rc::check([] {
    Bytes bytes;
    EncodeChange(AnyChange(), bytes);
    for (int i = *inRange(1, 10); i > 0; --i) {
      bytes[*inRange<size_t>(0, bytes.size())] =
          std::byte{*arbitrary<uint8_t>()};
    }
    const auto decoded = DecodeChange(bytes);
    RC_ASSERT(decoded || decoded.error().code == EBADMSG);
  }));
}

TEST(ChangeTest, InverseOfInverseIsTheEdit) {
  EXPECT_TRUE(rc::check([] {
    const Edit edit = AnyEdit();
    RC_ASSERT(Inverse(Inverse(edit)) == edit);
  }));
}

TEST(ApplyTest, TheInverseUndoesEachKindOfEdit) {
  Model before;
  before.inodes[Ino{2}].attr.size = 7;
  before.dentries[{Ino{1}, "a"}] = {DentryKind::kInode, Ino{2}};
  before.extents[{Ino{2}, 0}] = {0, 7, {}};
  before.xattrs[{Ino{2}, "user.x"}] = "old";
  Attr other;
  other.size = 9;
  const std::vector<Edit> edits = {
      InodeEdit{Ino{3}, {}, InodeRecord{.symlink = "t"}},
      AttrEdit{Ino{2}, before.inodes[Ino{2}].attr, other},
      DentryEdit{Ino{1},
                 "a",
                 {DentryKind::kInode, Ino{2}},
                 {DentryKind::kWhiteout, kNoIno}},
      DentryEdit{Ino{1}, "b", {}, {DentryKind::kInode, Ino{3}}},
      ExtentEdit{Ino{2}, {{0, 7, {}}}, {{0, 2, {}}, {5, 2, {}}}},
      XattrEdit{Ino{2}, "user.x", "old", "new"},
  };
  Model model = before;

  for (const Edit& edit : edits) Apply(edit, model);
  EXPECT_FALSE(model == before);
  for (auto it = edits.rbegin(); it != edits.rend(); ++it) {
    Apply(Inverse(*it), model);
  }

  EXPECT_TRUE(model == before);
}

TEST(ClipTest, KeepsThePartAndWhereItsContentStarts) {
  const Extent extent{100, 50, {3, 60, 1000, 77, 4}};
  EXPECT_EQ(Clip(extent, 0, 1000), extent);
  EXPECT_EQ(Clip(extent, 110, 1000), (Extent{110, 40, {3, 60, 1000, 77, 14}}));
  EXPECT_EQ(Clip(extent, 0, 120), (Extent{100, 20, {3, 60, 1000, 77, 4}}));
  const Extent hole{100, 50, {}};
  EXPECT_EQ(Clip(hole, 120, 130), (Extent{120, 10, {}}));
}

TEST(OpTest, HasANameThatLeadsBack) {
  for (int i = 1; i <= 18; ++i) {
    const Op op = static_cast<Op>(i);
    EXPECT_EQ(OpFromName(OpName(op)), op);
  }
  EXPECT_FALSE(OpFromName("unknown"));
}

TEST(FileTypeTest, MapsToModeBitsAndBack) {
  for (int i = 1; i <= 7; ++i) {
    const auto type = static_cast<FileType>(i);
    EXPECT_EQ(TypeOfMode(ModeBits(type) | 0644), type);
  }
  EXPECT_EQ(ModeBits(FileType::kDirectory), uint32_t{S_IFDIR});
  EXPECT_FALSE(TypeOfMode(0644));
}

}  // namespace
}  // namespace txfs
