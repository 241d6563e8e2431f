#include "tests/conformance/sound.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "cli/locate/workspace_record.h"
#include "fs/check/check.h"
#include "journal/support/file.h"

namespace txfs::testing {

CheckReport CheckWorkspaceStore(const std::string& workspace) {
  auto root = OpenAt(AT_FDCWD, workspace, O_RDONLY | O_DIRECTORY);
  if (!root) {
    ADD_FAILURE() << root.error().ToString();
    return {};
  }
  // A mount has it in the state directory, the core's tests have it here.
  const auto record = cli::FindRecord(root->get(), workspace);
  const std::string path =
      record && *record ? (*record)->store : workspace + "/.txfs";
  const auto store = OpenAt(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
  // Without a store nothing was begun.
  if (!store) return {};
  const BaseDirectory base(std::move(*root));
  const auto report = CheckStore(store->get(), &base);
  if (report) return *report;
  ADD_FAILURE() << report.error().ToString();
  return {};
}

std::string FindProblems(const std::string& workspace) {
  std::string text;
  for (const Problem& problem : CheckWorkspaceStore(workspace).problems) {
    text += problem.kind + ": " + problem.where + ": " + problem.message + "\n";
  }
  return text;
}

namespace {

Result<std::string> WrongStatus(Workspace& workspace) {
  const FullStatus full = TRY(workspace.GetFullStatus());
  const WorkspaceStatus status = TRY(workspace.GetStatus());
  std::string paths;
  uint64_t count = 0;
  for (const NetChange& change : TRY(workspace.Changes(false))) {
    paths += ' ' + change.path;
    ++count;
  }
  std::string wrong;
  if (full.status.changes != count || status.changes != count) {
    wrong += "the status counts " + std::to_string(full.status.changes) +
             " and " + std::to_string(status.changes) + " changes of" + paths +
             '\n';
  }
  const auto conflicts = workspace.FindConflicts();
  if (full.conflicts.has_value() != conflicts.has_value() ||
      (conflicts && *full.conflicts != *conflicts)) {
    wrong += "the status has other conflicts\n";
  }
  return wrong;
}

}  // namespace

std::string FindWrongStatus(Workspace& workspace) {
  auto wrong = WrongStatus(workspace);
  return wrong ? *std::move(wrong) : wrong.error().ToString();
}

}  // namespace txfs::testing
