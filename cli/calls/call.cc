#include "cli/calls/call.h"

namespace txfs::cli {

Status MarkCall(Client& client, const CallMark& mark) {
  TRY(client.MarkCall(mark));
  return {};
}

}  // namespace txfs::cli
