#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "cli/locate/way.h"
#include "cli/options/options.h"
#include "cli/output/paths.h"

namespace txfs::cli {
namespace {

/// Passes a dead mount, which the command reports.
Status CheckDirectory(const std::string& path) {
  struct stat st{};
  if (::stat(path.c_str(), &st) == 0) {
    if (S_ISDIR(st.st_mode)) return {};
    return Fail(ErrorKind::kFailed, ENOTDIR, "cannot change to " + path,
                "name a directory of a workspace with -C");
  }
  if (errno != ENOENT && errno != ENOTDIR) return {};
  return Fail(0, path + " does not exist",
              "name a directory of a workspace with -C");
}

}  // namespace

void AddGlobalOptions(CLI::App& app, GlobalOptions& options) {
  app.add_option("-C", options.directories,
                 "Run as if started in this directory")
      ->type_name("DIR")
      ->allow_extra_args(false);
  app.add_option("--store", options.store,
                 "Directory of the store (default: as `txfs status` prints it)")
      ->type_name("DIR");
  app.add_flag("--as-owner", options.as_owner,
               "As root: act as the user who owns the workspace or mount");
  app.add_option("-t,--transaction", options.transaction,
                 "Transaction: its name, its id, or the beginning of its id")
      ->type_name("TXN");
}

Result<Context> MakeContext(const GlobalOptions& options) {
  Context context{.directory = TRY(CurrentDirectory()),
                  .store = std::nullopt,
                  .transaction = options.transaction,
                  .trailing = {}};
  TRY(CheckWay("/", context.directory));
  for (const std::string& directory : options.directories) {
    context.directory = TRY(ResolveDirectory(context.directory, directory));
    TRY(CheckDirectory(context.directory));
  }
  if (options.store && options.store->empty()) {
    return Fail(ErrorKind::kUsage, 0, "an empty path names no store",
                "name its directory, or leave --store out");
  }
  if (options.store) {
    TRY(CheckWay(context.directory, *options.store));
    context.store = ResolvePath(context.directory, *options.store);
  }
  return context;
}

Result<std::string> TargetOf(const GlobalOptions& options,
                             const Command& command) {
  std::filesystem::path target = TRY(CurrentDirectory());
  for (const std::string& directory : options.directories) target /= directory;
  for (const auto& given : {options.store, command.directory}) {
    if (given) target /= *given;
  }
  return target.lexically_normal().native();
}

}  // namespace txfs::cli
