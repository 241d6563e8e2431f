#include "cli/commands/commands.h"
#include "cli/locate/locate.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/output/summary_format.h"
#include "cli/output/text.h"

namespace txfs::cli {

Result<int> RunSavepoint(const Context& context, const std::string& name,
                         bool json) {
  const Place place = TRY(Locate(context));
  Client client = TRY(ConnectFlushed(place, WhatWaits::kGoOnWaiting));
  const Savepoint savepoint = TRY(client.MakeSavepoint(name));
  Output output;
  output.Write(json ? Dump(SavepointDocument(savepoint), 2) + "\n"
                    : "savepoint " + EscapeControls(savepoint.name) + "\n");
  TRY(output.Finish());
  return 0;
}

Result<int> RunRollback(const Context& context, const std::string& name,
                        const std::optional<std::string>& call, bool json) {
  if (call && !name.empty()) {
    return Fail(ErrorKind::kUsage, 0, "rollback takes a savepoint or a call",
                "omit the name, or --call");
  }
  const Place place = TRY(Locate(context));
  Client client = TRY(ConnectFlushed(place, WhatWaits::kDenied));
  const std::string target =
      call ? TRY(client.FindCallBounds(*call)).since : name;
  const RollbackReport report = TRY(client.Rollback(target));
  LookUpMoved(place, client);
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
