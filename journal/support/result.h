#pragma once

#include <cerrno>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace txfs {

/// The exit code for an error that reaches the command line (docs/design.md).
enum class ErrorKind {
  kFailed = 1,
  kUsage = 2,
  kConflict = 3,
  kVetoed = 4,
  kInvalid = 5,
  kBusy = 6,
};

/// An error: an errno for programs, and a message and a hint for users.
struct Error {
  int code = EIO;  ///< errno
  std::string
      message;  ///< what happened, to which path; without the text of `code`
  std::string hint;  ///< what to do next; may be empty
  ErrorKind kind = ErrorKind::kFailed;
  std::string rule = {};     ///< kVetoed: id of the policy's rule
  std::string because = {};  ///< kVetoed: the path that the rule is about

  /// `message: strerror(code)`; `message` alone if it is a whole sentence (code
  /// 0).
  [[nodiscard]] std::string ToString() const;
};

/// A value or an Error. Must not be ignored.
template <class T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
};

using Status = Result<void>;

/// Makes the error half of any Result: `return Fail(errno, "openat db");`
[[nodiscard]] std::unexpected<Error> Fail(int code, std::string_view message,
                                          std::string_view hint = {});
[[nodiscard]] std::unexpected<Error> Fail(ErrorKind kind, int code,
                                          std::string_view message,
                                          std::string_view hint = {});

}  // namespace txfs

/// Unwraps a Result or returns its error from the enclosing function. Do not
/// use it in a braced list after a member that owns something: on return, g++
/// 12 does not destroy what the list has built.
#define TRY(expression)                                           \
  __extension__({                                                 \
    auto txfs_try_result = (expression);                          \
    if (!txfs_try_result)                                         \
      return std::unexpected(std::move(txfs_try_result).error()); \
    std::move(txfs_try_result).value();                           \
  })
