#include "tests/conformance/mount_driver.h"

#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "cli/output/json.h"
#include "fs/vault/vaults.h"
#include "tests/conformance/process.h"

namespace txfs::testing {
namespace {

/// A path of `log --json`, byte by byte.
std::string PathIn(const cli::Json& entry, const std::string& key) {
  const std::string base64 = cli::GetBytes(entry, (key + "_bytes").c_str());
  return base64.empty() ? cli::GetBytes(entry, key.c_str())
                        : cli::DecodeBytes({{"base64", base64}});
}

}  // namespace

Result<std::unique_ptr<Driver>> MountDriver::Start(
    const std::string& workspace, const std::string& mountpoint) {
  if (mkdir(mountpoint.c_str(), 0755) < 0)
    return Fail(errno, "mkdir " + mountpoint);
  // Where rules of the workspace may come to lie later, without a trace.
  const UniqueFd root(open(workspace.c_str(), O_RDONLY | O_DIRECTORY));
  TRY(MakeUnseen(root.get(), ".txfs"));
  std::unique_ptr<MountDriver> driver(new MountDriver(workspace, mountpoint));
  TRY(driver->Mount());
  return driver;
}

MountDriver::~MountDriver() {
  if (daemon_ == 0) return;
  if (!Txfs({"umount", mountpoint_})) {
    // A failed test may leave files open: the mount must not outlive it.
    (void)umount2(mountpoint_.c_str(), MNT_DETACH);
    KillAndWait(daemon_);
  }
}

Result<std::string> MountDriver::Txfs(std::vector<std::string> words) {
  std::vector<std::string> command{TxfsBinary(), "-C", workspace_};
  command.insert(command.end(), words.begin(), words.end());
  CommandResult result = RunCommand(command);
  if (result.exit_code != 0) {
    return Fail(EIO, "txfs " + words[0] + ": exit code " +
                         std::to_string(result.exit_code) + ": " +
                         result.errors);
  }
  return std::move(result.output);
}

Status MountDriver::Mount() {
  TRY(Txfs({"mount", workspace_, mountpoint_}));
  daemon_ = static_cast<pid_t>(TRY(StatusNumber("pid")));
  return {};
}

Status MountDriver::Remount() {
  TRY(Txfs({"umount", mountpoint_}));
  daemon_ = 0;
  return Mount();
}

Status MountDriver::Commit() {
  // Some tests remove most of what there is.
  TRY(Txfs({"commit", "-m", "test", "--accept", "txfs-mass-deletion"}));
  return {};
}

Status MountDriver::Discard() {
  TRY(Txfs({"discard"}));
  return {};
}

Status MountDriver::MakeSavepoint(const std::string& name) {
  TRY(Txfs({"savepoint", name}));
  return {};
}

Status MountDriver::Rollback(const std::string& name) {
  TRY(Txfs({"rollback", name}));
  return {};
}

Status MountDriver::MarkCall(const std::string& id, bool end) {
  std::vector<std::string> words{"savepoint", "--call", id, "--host", "test"};
  if (end) words.emplace_back("--end");
  TRY(Txfs(std::move(words)));
  return {};
}

Result<std::vector<std::string>> MountDriver::RevertCall(
    const std::string& id) {
  constexpr int kBuiltOn = 3;
  const CommandResult result = RunCommand(
      {TxfsBinary(), "-C", workspace_, "revert", "--call", id, "--json"});
  if (result.exit_code != 0 && result.exit_code != kBuiltOn) {
    return Fail(EIO, "txfs revert: " + result.errors);
  }
  std::vector<std::string> paths;
  const cli::Json report = cli::ParseBounded(result.output);
  for (const cli::Json& entry : cli::GetMember(report, "built_on")) {
    paths.push_back(PathIn(entry, "path"));
  }
  return paths;
}

Status MountDriver::Undo() {
  TRY(Txfs({"undo"}));
  return {};
}

Status MountDriver::UsePolicy(const std::string& text) {
  const std::string file = workspace_ + "/.txfs/policy.toml";
  if (!(std::ofstream(file) << text << std::flush)) return Fail(EIO, file);
  TRY(Txfs({"policy", "reload", mountpoint_}));
  return {};
}

Result<CommitOutcome> MountDriver::Review(const CommitChoice& choice) {
  constexpr int kHeld = 4;
  std::vector<std::string> words{
      TxfsBinary(), "-C", workspace_, "commit", "--json", "--message", "test"};
  for (const std::string& rule : choice.rules) {
    words.insert(words.end(), {"--accept", rule});
  }
  for (const std::string& path : choice.accepted_paths) {
    words.insert(words.end(), {"--accept", "./" + path});
  }
  if (choice.without_held) words.emplace_back("--without-held");
  if (choice.dry_run) words.emplace_back("--dry-run");
  if (choice.takes_theirs) words.emplace_back("--on-conflict=theirs");
  for (const std::string& path : choice.paths) words.push_back("./" + path);
  const CommandResult result = RunCommand(words);
  if (result.exit_code != 0 && result.exit_code != kHeld) {
    return Fail(EIO, "txfs commit: " + result.errors);
  }
  const cli::Json report = cli::ParseBounded(result.output);
  CommitOutcome outcome{.committed = result.exit_code == 0 && !choice.dry_run};
  for (const cli::Json& held : cli::GetMember(report, "held")) {
    if (cli::GetBool(held, "accepted")) continue;
    const std::string rule = cli::GetBytes(held, "rule") + " ";
    const std::string path = PathIn(held, "path");
    outcome.held.push_back(rule + cli::GetBytes(held, "change") + " " + path);
    for (const cli::Json& line : cli::GetMember(held, "lines")) {
      outcome.lines.push_back(rule + path + ": " + line.get<std::string>());
    }
  }
  std::ranges::sort(outcome.held);
  std::ranges::sort(outcome.lines);
  return outcome;
}

Result<std::vector<Refused>> MountDriver::ReadRefused() {
  std::istringstream lines(TRY(Txfs({"log", "--denied", "--json"})));
  std::vector<Refused> refused;
  for (std::string line; std::getline(lines, line);) {
    const auto json = cli::Json::parse(line, nullptr, false);
    if (json.is_discarded()) return Fail(EBADMSG, "log --json: " + line);
    refused.push_back({.op = cli::GetBytes(json, "op"),
                       .path = PathIn(json, "path"),
                       .new_path = PathIn(json, "new_path"),
                       .error = cli::GetBytes(json, "result"),
                       .rule = cli::GetBytes(json, "rule"),
                       .count = cli::GetUint(json, "count")});
  }
  return refused;
}

Status MountDriver::Settle() {
  TRY(Txfs({"log", "-n", "1"}));
  return {};
}

Result<uint64_t> MountDriver::StatusNumber(const std::string& key) {
  const std::string json = TRY(Txfs({"status", "--json"}));
  const size_t name = json.find("\"" + key + "\"");
  const size_t digits = json.find_first_of("0123456789", name + key.size() + 2);
  if (name == std::string::npos || digits == std::string::npos) {
    return Fail(EBADMSG, "status --json has no " + key + ": " + json);
  }
  return std::strtoull(json.c_str() + digits, nullptr, 10);
}

Result<uint64_t> MountDriver::StoreBytes() {
  return StatusNumber("store_bytes");
}

void MountDriver::Kill(int signal) {
  KillAndWait(daemon_, signal);
  daemon_ = 0;
}

}  // namespace txfs::testing
