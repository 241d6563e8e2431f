#include "journal/support/result.h"

#include <cstring>

namespace txfs {

std::string Error::ToString() const {
  // These say nothing to people that the message does not say better.
  switch (code) {
    case 0:
    case EBADMSG:
    case ENOLCK:
    case EWOULDBLOCK:
    case EPROTONOSUPPORT:
      return message;
    default:
      break;
  }
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
