#include "cli/commands/mount_helper.h"

#include "cli/commands/commands.h"
#include "cli/locate/trust.h"
#include "cli/mount/mount_options.h"
#include "cli/output/errors.h"
#include "cli/output/paths.h"

namespace txfs::cli {
namespace {

std::unexpected<Error> HelperUsage(const std::string& message) {
  return Fail(ErrorKind::kUsage, 0, message,
              "mount -t fuse.txfs WORKSPACE MOUNTPOINT [-o OPTIONS]");
}

bool TakesValue(char flag) { return flag == 'o' || flag == 't' || flag == 'N'; }

}  // namespace

Result<MountHelperCall> ParseMountHelper(
    const std::vector<std::string>& arguments) {
  MountHelperCall call;
  std::vector<std::string> positional;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word.size() < 2 || word[0] != '-') {
      positional.push_back(word);
      continue;
    }
    const char flag = word[1];
    if (!TakesValue(flag)) {
      if (word.find_first_not_of("sfnvrw", 1) != std::string::npos) {
        return HelperUsage("unknown option " + word);
      }
      call.fake = call.fake || word.find('f') != std::string::npos;
      call.verbose = call.verbose || word.find('v') != std::string::npos;
      if (word.find('r') != std::string::npos) {
        call.arguments.options.emplace_back("ro");
      }
      if (word.find('w') != std::string::npos) {
        call.arguments.options.emplace_back("rw");
      }
      continue;
    }
    if (word.size() == 2 && i + 1 == arguments.size()) {
      return HelperUsage("option " + word + " needs a value");
    }
    const std::string value = word.size() > 2 ? word.substr(2) : arguments[++i];
    if (flag == 'o') call.arguments.options.push_back(value);
  }
  if (positional.size() != 2) {
    return HelperUsage("mount.fuse.txfs needs a workspace and a mountpoint");
  }
  call.arguments.workspace = positional[0];
  call.arguments.mountpoint = positional[1];
  return call;
}

Result<int> RunMountHelper(const std::vector<std::string>& all) {
  MountHelperCall call = TRY(ParseMountHelper({all.begin() + 1, all.end()}));
  // mount(8) does not pass on options that name its own defaults.
  call.arguments.options.insert(
      call.arguments.options.begin(),
      "suid,dev,exec,async,atime,diratime,nolazytime");
  if (call.fake) return 0;
  if (!call.verbose) SayNothing();
  const Context context{.directory = TRY(CurrentDirectory()),
                        .store = std::nullopt,
                        .transaction = std::nullopt,
                        .trailing = {}};
  MountFlags flags;
  for (const std::string& list : call.arguments.options) {
    TRY(ParseMountOptions(list, flags));
  }
  // Who mounted it could not change it.
  if (flags.as_owner && !flags.remount) {
    TRY(ActAsOwner(ResolvePath(context.directory, *call.arguments.workspace),
                   all));
  }
  return RunMount(context, call.arguments);
}

}  // namespace txfs::cli
