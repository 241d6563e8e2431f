#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "journal/check.h"
#include "journal/image.h"
#include "journal/rewind.h"
#include "journal/savepoint.h"
#include "journal/support/bytes.h"
#include "journal/support/types.h"

namespace txfs {

/// Redoes changes from an empty state, and checks that the `before` of each
/// edit is the state at that point.
class Replay {
 public:
  explicit Replay(const Findings& log) : findings_(log) {}

  /// Redoes the next change of the log or the intake.
  void Add(Lsn lsn, ByteSpan encoded);
  /// The next change is `next` or a later one; those before it count as
  /// missing.
  void Skip(Lsn next);

  /// Reports every difference between the state after these changes and
  /// `tables`.
  void CompareWith(const Image& tables, Findings findings) const;

  /// Reports if these changes leave other savepoints.
  void CompareWith(const std::vector<Savepoint>& savepoints,
                   Findings findings) const;
  /// Gets the state at a savepoint, and what led back to it from the state at
  /// the next one.
  using PastVisitor = std::function<void(const Image& past, const Rewind&)>;
  /// Visits the states to which rollbacks to these savepoints lead, the newest
  /// first. Savepoints that no change made are left out.
  void VisitPasts(const std::vector<Savepoint>& savepoints,
                  const PastVisitor& visit) const;

  /// The state after all changes.
  [[nodiscard]] const Image& image() const { return image_; }
  [[nodiscard]] Image Take() && { return std::move(image_); }
  [[nodiscard]] Lsn next() const { return next_; }
  /// How many changes were skipped or are missing.
  [[nodiscard]] uint64_t missing() const { return missing_; }
  /// Whether every change could be read.
  [[nodiscard]] bool complete() const { return complete_; }

 private:
  void Redo(Lsn lsn, const Change& change);
  /// Removes the changes after `target` from `standing`; returns what undoes
  /// them.
  [[nodiscard]] static Rewind TakeSince(
      Lsn target, std::vector<std::pair<Lsn, Change>>& standing);
  void Rollback(Lsn lsn, const Change& change);

  Findings findings_;
  Image image_;
  std::vector<Savepoint> savepoints_;
  /// The changes from the first savepoint on, without those that a rollback
  /// undid.
  std::vector<std::pair<Lsn, Change>> standing_;
  Lsn next_{1};
  uint64_t missing_ = 0;
  bool complete_ = true;
};

}  // namespace txfs
