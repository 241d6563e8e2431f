#include <fcntl.h>

#include <memory>

#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/json.h"
#include "cli/locate.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/text.h"
#include "fs/check.h"
#include "journal/base/file.h"

namespace txfs::cli {
namespace {

/// Where nothing is mounted, or whose daemon is gone.
Result<CheckReport> CheckHere(const Place& place) {
  const std::string path = StoreOf(place);
  const auto store = OpenAt(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
  if (!store) {
    return Fail(store.error().code, "cannot open the store " + path,
                place.daemon ? "`txfs umount` clears the dead mount over it"
                             : "name the directory of a store with --store");
  }
  std::unique_ptr<BaseDirectory> base;
  auto root = OpenAt(AT_FDCWD, place.workspace, O_RDONLY | O_DIRECTORY);
  if (root) base = std::make_unique<BaseDirectory>(std::move(*root));
  return CheckStore(store->get(), base.get());
}

Result<CheckReport> Check(const Place& place) {
  if (!place.daemon) return CheckHere(place);
  auto connection = SocketConnection::Open(place.daemon->socket);
  if (!connection) return CheckHere(place);
  return Client(std::move(*connection)).Check();
}

Document FsckDocument(const Place& place, const CheckReport& report) {
  Document document;
  PutPath(document, "store", StoreOf(place));
  document["problems"] = Document::array();
  for (const Problem& problem : report.problems) {
    Document item;
    item["kind"] = problem.kind;
    PutPath(item, "where", problem.where);
    item["message"] = ToUtf8(problem.message);
    document["problems"].push_back(std::move(item));
  }
  document["notes"] = Document::array();
  for (const std::string& note : report.notes) {
    document["notes"].push_back(ToUtf8(note));
  }
  document["transactions"] = report.transactions;
  document["changes"] = report.changes;
  document["inodes"] = report.inodes;
  document["content_bytes"] = report.content_bytes;
  return document;
}

std::string FsckText(const Place& place, const CheckReport& report) {
  std::string text;
  for (const Problem& problem : report.problems) {
    text += problem.kind + ": " +
            EscapeControls(JoinPath(StoreOf(place), problem.where)) + ": " +
            EscapeControls(problem.message) + "\n";
  }
  return text +
         (report.problems.empty() ? "no problems"
                                  : Count(report.problems.size(), "problem")) +
         " in " + Count(report.transactions, "open transaction") + ": " +
         Count(report.changes, "operation") + ", " +
         Count(report.inodes, "inode") + ", " +
         HumanSize(report.content_bytes) + " of content\n";
}

}  // namespace

Result<int> RunFsck(const Context& context, bool json) {
  const Place place = TRY(LocateUnopened(context));
  const CheckReport report = TRY(Check(place));
  if (!json) {
    for (const std::string& note : report.notes) Say("note: " + note);
  }
  Output output;
  output.Write(json ? Dump(FsckDocument(place, report), 2) + "\n"
                    : FsckText(place, report));
  TRY(output.Finish());
  return report.problems.empty() ? 0 : 1;
}

}  // namespace txfs::cli
