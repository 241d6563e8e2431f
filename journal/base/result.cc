#include "journal/base/result.h"

#include <cstring>

namespace txfs {

std::string Error::ToString() const {
  if (code == 0) return message;
  return message + ": " + strerrordesc_np(code);
}

std::unexpected<Error> Fail(int code, std::string_view message,
                            std::string_view hint) {
  return std::unexpected(
      Error{code, std::string(message), std::string(hint), ErrorKind::kFailed});
}

std::unexpected<Error> Fail(ErrorKind kind, int code, std::string_view message,
                            std::string_view hint) {
  return std::unexpected(
      Error{code, std::string(message), std::string(hint), kind});
}

}  // namespace txfs
