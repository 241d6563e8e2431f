#pragma once

#include <iterator>
#include <string>

#include "tests/journal/fixture.h"

namespace txfs {

/// A history that uses everything a journal has: besides what History does,
/// large content, a file with a segment of its own, extents that are cut and
/// deleted, changes that do not fit into the ring.
class VariedHistory : public History {
 public:
  using History::History;

  Result<Lsn> Step(Journal& journal) {
    const uint64_t dice = random_() % 100;
    if (dice < 25) return Cut(journal);
    if (dice < 35) return Extend(journal);
    if (dice < 37) return Overflow(journal);
    return History::Step(journal, LargestContent());
  }

 private:
  static constexpr Ino kLargeFile{100};
  static constexpr size_t kMoreThanTheRingTakes = 40'000;

  size_t LargestContent() {
    constexpr size_t kSizes[] = {100, 3000, 16'000, 60'000};
    return kSizes[random_() % std::size(kSizes)];
  }

  /// Deletes an extent, or part of it.
  Result<Lsn> Cut(Journal& journal) {
    if (model.extents.empty()) return History::Step(journal);
    const auto it =
        std::next(model.extents.begin(),
                  static_cast<ptrdiff_t>(random_() % model.extents.size()));
    const Ino ino = it->first.first;
    const Extent extent = it->second;
    const std::string content = *contents_.at(it->first);
    const uint64_t middle = extent.offset + random_() % extent.length;
    Change change{.op = Op::kTruncate, .path = "cut"};
    ExtentEdit edit{ino, {extent}, {}};
    const bool all = middle == extent.offset || random_() % 2 == 0;
    if (!all) edit.after.push_back(Clip(extent, extent.offset, middle));
    change.edits.emplace_back(edit);
    const Extent gone = all ? extent : Clip(extent, middle, extent.end());
    auto lsn = Finish(journal, change, nullptr, &gone);
    if (lsn && !all) {
      Contain(ino, extent.offset, content.substr(0, middle - extent.offset));
    }
    return lsn;
  }

  /// Writes to the end of the file that has a segment of its own.
  Result<Lsn> Extend(Journal& journal) {
    Change change{.op = Op::kWrite, .path = "large"};
    if (own_segment_ == 0) own_segment_ = TRY(journal.NewSegment());
    if (!model.inodes.contains(kLargeFile)) {
      InodeEdit edit{kLargeFile, {}, InodeRecord{}};
      edit.after->attr.own_segment = own_segment_;
      change.edits.emplace_back(edit);
    }
    const std::string content = Content(random_(), 1 + random_() % 20'000);
    const StagedContent staged =
        TRY(journal.Stage(AsBytes(content), own_segment_, own_size_));
    change.edits.emplace_back(
        ExtentEdit{kLargeFile, {}, {{own_size_, content.size(), staged.ref}}});
    auto lsn = Finish(journal, change, &staged, nullptr);
    if (!lsn) return lsn;
    Contain(kLargeFile, own_size_, content);
    own_size_ += content.size();
    return lsn;
  }

  Result<Lsn> Overflow(Journal& journal) {
    Change change{.op = Op::kSetxattr, .path = "overflow"};
    XattrEdit edit{Ino{2}, "user.large", {}, {}};
    const auto found = model.xattrs.find({edit.ino, edit.name});
    if (found != model.xattrs.end()) edit.before = found->second;
    edit.after = Content(random_(), kMoreThanTheRingTakes);
    change.edits.emplace_back(edit);
    return Finish(journal, change, nullptr, nullptr);
  }

  uint32_t own_segment_ = 0;
  uint64_t own_size_ = 0;
};

}  // namespace txfs
