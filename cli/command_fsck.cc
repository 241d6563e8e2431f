#include <fcntl.h>

#include <climits>
#include <memory>
#include <optional>

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
  if (context.store) {
    auto store = OpenAt(AT_FDCWD, *context.store, O_RDONLY | O_DIRECTORY);
    const auto path = store ? ReadWholeFile(store->get(), "workspace", 1 << 16)
                            : std::string();
    const auto real = ReachWorkspace(path.value_or(""));
    return OpenChecked(*context.store, std::move(store),
                       real ? real->base.get() : nullptr);
  }
  RealWorkspace real = TRY(LocateWorkspace(context)).real;
  const std::string path = real.store.value_or(JoinPath(real.path, ".txfs"));
  Checked checked = TRY(
      OpenChecked(path,
                  OpenAt(real.store ? AT_FDCWD : real.base->get(),
                         real.store ? path : ".txfs", O_RDONLY | O_DIRECTORY),
                  real.base.get()));
  checked.workspace = std::move(real);
  return checked;
}

/// Whether the store names the workspace by which it was found. One that lies
/// there moves with it, and is put right by the next mount.
void CheckNamesWorkspace(const Checked& checked, CheckReport& report) {
  if (!checked.workspace) return;
  const auto named = ReadWholeFile(checked.store.get(), "workspace", PATH_MAX);
  // What cannot be read, or is no path, is in the report already.
  if (!named || !named->starts_with('/')) return;
  const std::string& path = checked.workspace->path;
  if (*named == path) return;
  std::string message = "it names the workspace " + *named + ", not " + path;
  if (!checked.workspace->store) {
    report.notes.push_back(checked.path + "/workspace: " + message +
                           ", which the next mount puts right");
    return;
  }
  report.problems.push_back({.kind = "store.workspace",
                             .where = "workspace",
                             .message = std::move(message)});
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
