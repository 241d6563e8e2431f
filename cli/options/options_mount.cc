#include <memory>

#include "cli/commands/commands.h"
#include "cli/options/options.h"

namespace txfs::cli {
namespace {

Result<int> MountPaths(const Context& context, MountArguments mount) {
  std::vector<std::string> paths;
  for (const auto& given : {mount.workspace, mount.mountpoint}) {
    if (given) paths.push_back(*given);
  }
  paths = WithTrailing(std::move(paths), context);
  if (paths.size() > 2) {
    return Fail(ErrorKind::kUsage, 0, "unexpected argument " + paths[2],
                "name a workspace and a mountpoint");
  }
  if (!paths.empty()) mount.workspace = paths[0];
  if (paths.size() > 1) mount.mountpoint = paths[1];
  return RunMount(context, mount);
}

void AddPolicyChoice(CLI::App& sub, MountArguments& mount) {
  sub.add_option("--policy", mount.policies,
                 "Add the rules and limits in this file; repeat the option for "
                 "more files")
      ->type_name("FILE")
      ->allow_extra_args(false);
  sub.add_flag("--no-default-policy", mount.no_default_policy,
               "Disable all built-in rules and limits");
  sub.add_option("--without-rule", mount.without_rules,
                 "Disable the built-in rule or limit with this id; repeat the "
                 "option for more")
      ->type_name("ID")
      ->allow_extra_args(false);
}

void AddMount(CLI::App& app, Command& command) {
  CLI::App* sub = app.add_subcommand(
      "mount", "Mount a workspace, and begin or resume a transaction");
  const auto mount = std::make_shared<MountArguments>();
  sub->add_option("WORKSPACE", mount->workspace,
                  "Directory to mount (default: the current directory; in a "
                  "mount, its workspace)");
  sub->add_option("MOUNTPOINT", mount->mountpoint,
                  "Directory to mount it on (default: the workspace itself)");
  sub->add_option("--name", mount->name,
                  "Begin or resume the transaction with this name")
      ->type_name("NAME");
  sub->add_flag(
      "--foreground,-f", mount->foreground,
      "Serve the mount in this process until it is unmounted or interrupted");
  sub->add_flag("--allow-other", mount->allow_other,
                "Give other users access to the mount");
  AddKeep(*sub, mount->keep);
  AddPolicyChoice(*sub, *mount);
  sub->add_option("-o", mount->options,
                  "Mount options, separated by commas; txfs(1) lists them")
      ->type_name("OPTIONS")
      ->allow_extra_args(false);
  sub->callback([&command, mount] {
    command.takes_trailing = true;
    command.takes_transaction = false;
    command.directory = mount->workspace;
    command.run = [mount](const Context& context) {
      return MountPaths(context, *mount);
    };
  });
}

void AddUmount(CLI::App& app, Command& command) {
  CLI::App* sub = app.add_subcommand(
      "umount", "Unmount a workspace; its transaction stays open");
  const auto umount = std::make_shared<UmountArguments>();
  sub->add_option("DIR", umount->directory,
                  "Directory in the mount, or the workspace (default: the "
                  "current directory)");
  sub->add_flag(
      "--lazy,-l", umount->lazy,
      "Detach the mount now; the daemon exits when the last process leaves");
  sub->callback([&command, umount] {
    command.directory = umount->directory;
    command.run = [umount](const Context& context) {
      return RunUmount(context, *umount);
    };
  });
}

void AddEnter(CLI::App& app, Command& command) {
  CLI::App* sub = app.add_subcommand(
      "enter", "Run a shell, or the command after --, inside the mount");
  const auto workspace = std::make_shared<std::optional<std::string>>();
  sub->add_option(
      "WORKSPACE", *workspace,
      "Workspace, or a directory in it, which is mounted if necessary "
      "(default: the current directory)");
  sub->callback([&command, workspace] {
    command.takes_trailing = true;
    command.directory = *workspace;
    command.run = [workspace](const Context& context) {
      return RunEnter(context, *workspace);
    };
  });
}

void AddAdopt(CLI::App& app, Command& command) {
  CLI::App* sub = app.add_subcommand(
      "adopt",
      "Show the open transactions of a store that was made elsewhere; --yes "
      "adopts them");
  const auto adopt = std::make_shared<AdoptArguments>();
  sub->add_option("WORKSPACE", adopt->workspace,
                  "Workspace (default: the current one)");
  sub->add_option("--from", adopt->from,
                  "Directory of that store, or the former path of a moved "
                  "workspace")
      ->type_name("DIR");
  sub->add_flag(
      "--yes", adopt->yes,
      "Adopt the transactions, without the changes that the policy refuses");
  sub->callback([&command, adopt] {
    command.takes_transaction = false;
    command.directory = adopt->workspace;
    command.run = [adopt](const Context& context) {
      return RunAdopt(context, *adopt);
    };
  });
}

}  // namespace

void AddMountCommands(CLI::App& app, Command& command) {
  AddMount(app, command);
  AddUmount(app, command);
  AddEnter(app, command);
  AddAdopt(app, command);
}

}  // namespace txfs::cli
