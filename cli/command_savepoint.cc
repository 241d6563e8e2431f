#include <fcntl.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/json.h"
#include "cli/locate.h"
#include "cli/output.h"
#include "cli/text.h"
#include "journal/base/file.h"

namespace txfs::cli {
namespace {

/// Connects, when what processes have stored through mappings has reached the
/// daemon: it belongs to what the savepoint marks, or the rollback takes back.
/// Not the daemon's to do, which would wait for itself.
Result<Client> ConnectFlushed(const Context& context) {
  const Place place = TRY(Locate(context));
  if (place.daemon == DaemonState::kRunning) {
    const auto mount =
        OpenAt(AT_FDCWD, place.address.mountpoint, O_RDONLY | O_DIRECTORY);
    // A dead mount is for Connect to tell.
    if (mount) std::ignore = ::syncfs(mount->get());
  }
  return Connect(place);
}

}  // namespace

Document SavepointDocument(const Savepoint& savepoint) {
  Document document;
  document["name"] = ToUtf8(savepoint.name);
  document["lsn"] = Raw(savepoint.lsn);
  document["time"] = UtcTime(savepoint.time);
  return document;
}

Result<int> RunSavepoint(const Context& context, const std::string& name,
                         bool json) {
  Client client = TRY(ConnectFlushed(context));
  const Savepoint savepoint = TRY(client.MakeSavepoint(name));
  Output output;
  output.Write(json ? Dump(SavepointDocument(savepoint), 2) + "\n"
                    : "savepoint " + EscapeControls(savepoint.name) + "\n");
  TRY(output.Finish());
  return 0;
}

Result<int> RunRollback(const Context& context, const std::string& name,
                        bool json) {
  Client client = TRY(ConnectFlushed(context));
  const RollbackReport report = TRY(client.Rollback(name));
  Document document = SavepointDocument(report.savepoint);
  document["undone"] = report.undone;
  Output output;
  output.Write(json ? Dump(document, 2) + "\n"
                    : "rolled back to " +
                          EscapeControls(report.savepoint.name) + ": " +
                          Count(report.undone, "operation") + " undone\n");
  TRY(output.Finish());
  return 0;
}

}  // namespace txfs::cli
