#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "journal/change.h"
#include "journal/support/result.h"
#include "policy/policy.h"

namespace txfs {

/// What an operation fails with that `rule` refuses for the name `because`.
[[nodiscard]] std::unexpected<Error> Veto(const policy::Rule& rule,
                                          std::string_view because);

/// A name that an operation is about to touch.
struct TouchedName {
  policy::Effect effect = policy::Effect::kContent;
  std::string path;
  policy::Layer layer = policy::Layer::kBase;

  bool operator==(const TouchedName&) const = default;
};

/// What a rule wants answered before an operation is done.
struct Question {
  std::shared_ptr<const policy::Policy> policy;  ///< keeps `rule`
  const policy::Rule* rule = nullptr;
  std::vector<TouchedName> names;  ///< that the rule is about
  // The operation, as the log would have it.
  Op op = Op::kWrite;
  std::string path, new_path, exe;

  bool operator==(const Question&) const = default;
};

/// The questions of one operation, which is judged anew after each round of
/// answers. Not thread-safe: it belongs to the operation's thread.
class Inquiry {
 public:
  /// A larger operation is refused: nobody reads so many names.
  static constexpr size_t kMaxNames = 256;

  /// `rule` of `policy` puts a question about `event`, unless that was answered
  /// before. Fails, with a denial, when there are too many names.
  Status Note(const std::shared_ptr<const policy::Policy>& policy,
              const policy::Rule& rule, const policy::Event& event);
  /// Fails, with a denial, when questions are open: they are due then, and
  /// about `change`.
  Status Check(const Change& change);

  [[nodiscard]] bool due() const { return due_; }
  [[nodiscard]] const std::vector<Question>& open() const { return open_; }
  /// All that is open was answered with yes.
  void Grant();

 private:
  std::vector<Question> open_, granted_;
  bool due_ = false;
};

}  // namespace txfs
