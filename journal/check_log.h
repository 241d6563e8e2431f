#pragma once

#include <utility>
#include <vector>

#include "journal/check.h"
#include "journal/image.h"
#include "journal/rewind.h"
#include "journal/savepoint.h"
#include "journal/support/bytes.h"
#include "journal/support/types.h"

namespace txfs {

/// Redoes changes from an empty state on, and looks at each edit whether what
/// it says was there before was there.
class Replay {
 public:
  explicit Replay(const Findings& log) : findings_(log) {}

  /// The next change of the log or the intake.
  void Add(Lsn lsn, ByteSpan encoded);
  /// The next one is `next`, or a later one.
  void Skip(Lsn next);

  /// Demands that the changes so far lead to exactly what `tables` has.
  void CompareWith(const Image& tables, Findings findings) const;

  /// Demands that the changes so far left exactly these savepoints.
  void CompareWith(const std::vector<Savepoint>& savepoints,
                   Findings findings) const;
  /// What rollback to each of these would lead to; none for a savepoint that no
  /// change made.
  [[nodiscard]] std::vector<Image> ImagesAt(
      const std::vector<Savepoint>& savepoints) const;

  /// What the changes lead to.
  [[nodiscard]] const Image& image() const { return image_; }
  [[nodiscard]] Image Take() && { return std::move(image_); }
  [[nodiscard]] Lsn next() const { return next_; }
  /// How many were skipped, or are not there.
  [[nodiscard]] uint64_t missing() const { return missing_; }
  /// Every change could be read.
  [[nodiscard]] bool complete() const { return complete_; }

 private:
  void Redo(Lsn lsn, const Change& change);
  /// What undoes the changes after `target` that still count; forgets them.
  [[nodiscard]] static Rewind TakeSince(
      Lsn target, std::vector<std::pair<Lsn, Change>>& standing);
  void Rollback(Lsn lsn, const Change& change);

  Findings findings_;
  Image image_;
  std::vector<Savepoint> savepoints_;
  /// The first savepoint and the changes since that no rollback undid.
  std::vector<std::pair<Lsn, Change>> standing_;
  Lsn next_{1};
  uint64_t missing_ = 0;
  bool complete_ = true;
};

}  // namespace txfs
