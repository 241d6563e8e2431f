#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "journal/change.h"
#include "journal/support/result.h"
#include "policy/policy.h"

namespace txfs {

/// The denial of an operation that `rule` refuses because of a path.
[[nodiscard]] std::unexpected<Error> Veto(const policy::Rule& rule,
                                          std::string_view because);

/// A name that an operation changes.
struct TouchedName {
  policy::Effect effect = policy::Effect::kContent;
  std::string path;
  policy::Layer layer = policy::Layer::kBase;

  bool operator==(const TouchedName&) const = default;
};

/// A rule's question before an operation.
struct Question {
  std::shared_ptr<const policy::Policy> policy;  ///< owns `rule`
  const policy::Rule* rule = nullptr;
  std::vector<TouchedName> names;  ///< matched by the rule
  // The operation, as in the log.
  Op op = Op::kWrite;
  std::string path, new_path, exe;

  bool operator==(const Question&) const = default;
};

/// The questions of one operation, which is judged again after each round of
/// answers. Not thread-safe: it belongs to the thread of the operation.
class Inquiry {
 public:
  /// A larger operation is refused: an approver cannot read so many names.
  static constexpr size_t kMaxNames = 256;

  /// Adds a question of `rule` about `event`, unless it was answered before.
  /// Fails with a denial over kMaxNames.
  Status Note(const std::shared_ptr<const policy::Policy>& policy,
              const policy::Rule& rule, const policy::Event& event);
  /// Fails with a denial if questions are open. They are then due and describe
  /// `change`.
  Status Check(const Change& change);

  [[nodiscard]] bool due() const { return due_; }
  [[nodiscard]] const std::vector<Question>& open() const { return open_; }
  /// Notes that all open questions were answered with yes.
  void Grant();

 private:
  std::vector<Question> open_, granted_;
  bool due_ = false;
};

}  // namespace txfs
