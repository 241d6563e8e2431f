#pragma once

#include "journal/base/bytes.h"
#include "journal/base/types.h"
#include "journal/check.h"
#include "journal/image.h"

namespace txfs {

/// Redoes changes from an empty state on, and looks at each edit whether what
/// it says was there before was there.
class Replay {
 public:
  explicit Replay(const Findings& log) : findings_(log) {}

  /// The next change of the log or the intake.
  void Add(Lsn lsn, ByteSpan encoded);

  /// Demands that the changes so far lead to exactly what `tables` has.
  void CompareWith(const Image& tables, Findings findings) const;

  /// What the changes lead to.
  [[nodiscard]] Image Take() && { return std::move(image_); }
  [[nodiscard]] Lsn next() const { return next_; }
  /// Every change could be read.
  [[nodiscard]] bool complete() const { return complete_; }

 private:
  void Redo(Lsn lsn, const Change& change);

  Findings findings_;
  Image image_;
  Lsn next_{1};
  bool complete_ = true;
};

}  // namespace txfs
