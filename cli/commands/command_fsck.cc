#include <fcntl.h>

#include <climits>
#include <memory>
#include <optional>

#include "cli/commands/commands.h"
#include "cli/locate/locate.h"
#include "cli/output/errors.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/output/paths.h"
#include "cli/output/text.h"
#include "fs/check/check.h"
#include "journal/support/file.h"

namespace txfs::cli {
namespace {

/// A store to check. It is not opened as one: that would mend it.
struct Checked {
  std::string path;
  UniqueFd store;
  std::unique_ptr<BaseDirectory> base;       ///< none: not at hand
  std::optional<RealWorkspace> workspace{};  ///< by which it was found
};

Result<Checked> OpenChecked(std::string path, Result<UniqueFd> store,
                            const UniqueFd* base) {
  if (!store) {
    return Fail(store.error().code, "cannot open the store " + path,
                "name the directory of a store with --store");
  }
  Checked checked;
  checked.path = std::move(path);
  checked.store = std::move(*store);
  if (base != nullptr) {
    checked.base = std::make_unique<BaseDirectory>(
        TRY(OpenAt(base->get(), ".", O_RDONLY | O_DIRECTORY)));
  }
  return checked;
}

Result<Checked> LocateChecked(const Context& context) {
  // Also one that is foreign: it is only read. Then its word for where its
  // workspace lies is not taken.
  if (context.store) {
    auto real = LocateWorkspace(context);
    return OpenChecked(*context.store,
                       OpenAt(AT_FDCWD, *context.store, O_RDONLY | O_DIRECTORY),
                       real ? real->real.base.get() : nullptr);
  }
  RealWorkspace real = TRY(LocateWorkspace(context)).real;
  if (!real.record) {
    return Fail(0, "workspace " + real.path + " has no store",
                "`txfs mount` makes one");
  }
  const std::string path = real.record->store;
  Checked checked =
      TRY(OpenChecked(path, OpenRecordedStore(*real.record), real.base.get()));
  checked.workspace = std::move(real);
  return checked;
}

/// Whether the store names the workspace by which it was found.
void CheckNamesWorkspace(const Checked& checked, CheckReport& report) {
  if (!checked.workspace) return;
  const auto named = ReadWholeFile(checked.store.get(), "workspace", PATH_MAX);
  // What cannot be read, or is no path, is in the report already.
  if (!named || !named->starts_with('/')) return;
  const std::string& path = checked.workspace->record->path;
  if (*named == path) return;
  report.problems.push_back(
      {.kind = "store.workspace",
       .where = "workspace",
       .message = "it names the workspace " + *named + ", not " + path});
}

Document FsckDocument(const std::string& store, const CheckReport& report) {
  Document document;
  PutPath(document, "store", store);
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

std::string FsckText(const std::string& store, const CheckReport& report) {
  std::string text;
  for (const Problem& problem : report.problems) {
    text += problem.kind + ": " +
            EscapeControls(JoinPath(store, problem.where)) + ": " +
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
  const Checked checked = TRY(LocateChecked(context));
  CheckReport report = TRY(CheckStore(checked.store.get(), checked.base.get()));
  CheckNamesWorkspace(checked, report);
  if (!json) {
    for (const std::string& note : report.notes) Say("note: " + note);
  }
  Output output;
  output.Write(json ? Dump(FsckDocument(checked.path, report), 2) + "\n"
                    : FsckText(checked.path, report));
  TRY(output.Finish());
  return report.problems.empty() ? 0 : 1;
}

}  // namespace txfs::cli
