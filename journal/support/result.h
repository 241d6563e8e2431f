#pragma once

#include <cerrno>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace txfs {

/// Which exit code an error leads to when it reaches the command line
/// (docs/design.md).
enum class ErrorKind {
  kFailed = 1,
  kUsage = 2,
  kConflict = 3,
  kVetoed = 4,
  kInvalid = 5,
  kBusy = 6,
};

/// What went wrong: an errno for programs, a sentence for people, and what to
/// do next.
struct Error {
  int code = EIO;  ///< errno
  std::string
      message;  ///< what happened, to which path; without the text of `code`
  std::string hint;  ///< what to do next; may be empty
  ErrorKind kind = ErrorKind::kFailed;
  std::string rule = {};     ///< kVetoed: id of the policy's rule
  std::string because = {};  ///< kVetoed: the path that it is about

  /// `message: strerror(code)`, or `message` alone when it is a whole sentence
  /// (code 0).
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

/// Unwraps a Result or returns its error from the enclosing function.
/// Not inside a braced list after a member that owns something: g++ 12 forgets
/// to destroy what the list has built when this returns.
#define TRY(expression)                                           \
  __extension__({                                                 \
    auto txfs_try_result = (expression);                          \
    if (!txfs_try_result)                                         \
      return std::unexpected(std::move(txfs_try_result).error()); \
    std::move(txfs_try_result).value();                           \
  })
