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
                 "File of rules about what may be done; more than once: all "
                 "of them hold")
      ->allow_extra_args(false);
  sub.add_flag("--no-default-policy", mount.no_default_policy,
               "Leave out the rules that are built in");
  sub.add_option("--without-rule", mount.without_rules,
                 "Leave out one rule or limit that is built in; more than "
                 "once: all of them")
      ->allow_extra_args(false);
}

void AddMount(CLI::App& app, Command& command) {
  CLI::App* sub = app.add_subcommand(
      "mount", "Mount a workspace: begin a transaction, or resume it");
  const auto mount = std::make_shared<MountArguments>();
  sub->add_option("WORKSPACE", mount->workspace,
                  "Directory to work on (default: the current one)");
  sub->add_option("MOUNTPOINT", mount->mountpoint,
                  "Where to mount it (default: over itself)");
  sub->add_option("--name", mount->name,
                  "Begin or resume the transaction of this name");
  sub->add_flag("--foreground,-f", mount->foreground,
                "Serve in this process until interrupted");
  sub->add_flag("--allow-other", mount->allow_other, "Let other users in");
  AddKeep(*sub, mount->keep);
  AddPolicyChoice(*sub, *mount);
  sub->add_option("-o", mount->options, "Mount options as for mount(8)")
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
  CLI::App* sub =
      app.add_subcommand("umount", "Unmount; the transaction stays open");
  const auto umount = std::make_shared<UmountArguments>();
  sub->add_option("DIR", umount->directory, "Somewhere in the mount");
  sub->add_flag("--lazy,-l", umount->lazy,
                "Detach now, end when the last process has left");
  sub->callback([&command, umount] {
    command.directory = umount->directory;
    command.run = [umount](const Context& context) {
      return RunUmount(context, *umount);
    };
  });
}

void AddEnter(CLI::App& app, Command& command) {
  CLI::App* sub = app.add_subcommand(
      "enter", "Start a shell, or the command after --, inside the mount");
  const auto workspace = std::make_shared<std::optional<std::string>>();
  sub->add_option("WORKSPACE", *workspace,
                  "Workspace or somewhere in it; mounted if need be");
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
      "Show what is open in a store that was not made here; --yes takes it "
      "over");
  const auto adopt = std::make_shared<AdoptArguments>();
  sub->add_option("WORKSPACE", adopt->workspace,
                  "Workspace (default: the current one)");
  sub->add_option("--from", adopt->from,
                  "The store, or the path that a moved workspace had");
  sub->add_flag("--yes", adopt->yes, "Take over what is shown");
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
