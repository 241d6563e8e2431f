#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "cli/shell/option_words.h"
#include "cli/shell/wrappers.h"

namespace txfs::cli {
namespace {

using policy::BaseName;
using policy::KnownWord;
using policy::Word;
using As = Unwrapped::As;

/// A tool whose subcommand runs a program with its arguments.
struct Runner {
  std::string_view program;
  std::string_view subcommand = "";
  std::string_view short_values = "";
  size_t operands = 0;    ///< before the command, unless "--" begins it
  bool packages = false;  ///< the program is the name of a package
  bool remote = false;
};
constexpr std::string_view kRunnerValues =
    " python with from name prefix extra group env-file env config project "
    "package spec app project-id path dir filter workspace context cwd using "
    "-C ";
constexpr auto kRunners = std::to_array<Runner>({
    {.program = "npx", .short_values = "p", .packages = true},
    {.program = "pnpx", .short_values = "p", .packages = true},
    {.program = "bunx", .short_values = "p", .packages = true},
    {.program = "uvx", .short_values = "p", .packages = true},
    {.program = "npm", .subcommand = "exec", .packages = true},
    {.program = "npm", .subcommand = "x", .packages = true},
    {.program = "pnpm",
     .subcommand = "exec",
     .short_values = "FC",
     .packages = true},
    {.program = "pnpm",
     .subcommand = "dlx",
     .short_values = "p",
     .packages = true},
    {.program = "yarn", .subcommand = "exec", .packages = true},
    {.program = "yarn",
     .subcommand = "dlx",
     .short_values = "p",
     .packages = true},
    {.program = "bun", .subcommand = "x", .packages = true},
    {.program = "lerna", .subcommand = "exec", .packages = true},
    {.program = "nx", .subcommand = "exec", .packages = true},
    {.program = "uv", .subcommand = "run", .short_values = "p"},
    {.program = "uv", .subcommand = "tool run", .packages = true},
    {.program = "pipx", .subcommand = "run", .packages = true},
    {.program = "poetry", .subcommand = "run"},
    {.program = "pipenv", .subcommand = "run"},
    {.program = "pdm", .subcommand = "run"},
    {.program = "rye", .subcommand = "run"},
    {.program = "hatch", .subcommand = "run"},
    {.program = "pixi", .subcommand = "run"},
    {.program = "bundle", .subcommand = "exec"},
    {.program = "spring", .subcommand = ""},
    {.program = "conda", .subcommand = "run", .short_values = "np"},
    {.program = "mamba", .subcommand = "run", .short_values = "np"},
    {.program = "micromamba", .subcommand = "run", .short_values = "np"},
    {.program = "mise", .subcommand = "exec"},
    {.program = "mise", .subcommand = "x"},
    {.program = "rtx", .subcommand = "exec"},
    {.program = "rtx", .subcommand = "x"},
    {.program = "nvm", .subcommand = "exec"},
    {.program = "nvm", .subcommand = "run"},
    {.program = "n", .subcommand = "exec", .operands = 1},
    {.program = "dagger", .subcommand = "run"},
    {.program = "zellij", .subcommand = "run", .short_values = "dnxy"},
    {.program = "asdf", .subcommand = "exec"},
    {.program = "rbenv", .subcommand = "exec"},
    {.program = "pyenv", .subcommand = "exec"},
    {.program = "nodenv", .subcommand = "exec"},
    {.program = "goenv", .subcommand = "exec"},
    {.program = "volta", .subcommand = "run"},
    {.program = "fnm", .subcommand = "exec"},
    {.program = "dotenv", .subcommand = "run", .short_values = "f"},
    {.program = "dotenvx", .subcommand = "run", .short_values = "fe"},
    {.program = "foreman", .subcommand = "run", .short_values = "ef"},
    {.program = "op", .subcommand = "run"},
    {.program = "doppler", .subcommand = "run", .short_values = "pc"},
    {.program = "infisical", .subcommand = "run"},
    {.program = "chamber", .subcommand = "exec", .operands = 1},
    {.program = "aws-vault", .subcommand = "exec", .operands = 1},
    {.program = "teller", .subcommand = "run"},
    {.program = "railway", .subcommand = "run", .short_values = "se"},
    {.program = "devbox", .subcommand = "run"},
    {.program = "devenv", .subcommand = "shell"},
    {.program = "guix", .subcommand = "shell", .operands = 1},
    {.program = "flatpak-spawn"},
    {.program = "toolbox", .subcommand = "run", .short_values = "c"},
    {.program = "distrobox", .subcommand = "enter", .operands = 1},
    {.program = "machinectl",
     .subcommand = "shell",
     .operands = 1,
     .remote = true},
    {.program = "heroku",
     .subcommand = "run",
     .short_values = "ars",
     .remote = true},
    {.program = "adb",
     .subcommand = "shell",
     .short_values = "s",
     .remote = true},
    {.program = "multipass",
     .subcommand = "exec",
     .operands = 1,
     .remote = true},
    {.program = "limactl",
     .subcommand = "shell",
     .operands = 1,
     .remote = true},
    {.program = "docker-machine",
     .subcommand = "ssh",
     .operands = 1,
     .remote = true},
    {.program = "lxc", .subcommand = "exec", .operands = 1, .remote = true},
    {.program = "incus", .subcommand = "exec", .operands = 1, .remote = true},
    {.program = "nomad",
     .subcommand = "alloc exec",
     .operands = 1,
     .remote = true},
    {.program = "oc",
     .subcommand = "rsh",
     .short_values = "nc",
     .operands = 1,
     .remote = true},
    {.program = "crictl", .subcommand = "exec", .operands = 1, .remote = true},
    {.program = "minikube", .subcommand = "ssh", .remote = true},
    {.program = "colima", .subcommand = "ssh", .remote = true},
    {.program = "mosh", .operands = 1, .remote = true},
    {.program = "tsh", .subcommand = "ssh", .operands = 1, .remote = true},
    {.program = "tailscale",
     .subcommand = "ssh",
     .operands = 1,
     .remote = true},
    {.program = "lxc-attach", .short_values = "n", .remote = true},
});

/// A tool that runs the text in an option, or in its last operands.
struct TextRunner {
  std::string_view program;
  std::string_view subcommand = "";
  char letter = '\0';          ///< of the option
  std::string_view name = "";  ///< of the option
  size_t operands = 0;         ///< without an option: before the text
  std::string_view short_values = "";
  bool remote = false;
  bool is_option() const { return letter != '\0' || !name.empty(); }
};
constexpr auto kTextRunners = std::to_array<TextRunner>({
    {.program = "npx", .letter = 'c', .name = "call"},
    {.program = "npm", .subcommand = "exec", .letter = 'c', .name = "call"},
    {.program = "mise", .subcommand = "exec", .letter = 'c', .name = "command"},
    {.program = "mise", .subcommand = "x", .letter = 'c', .name = "command"},
    {.program = "pueue", .subcommand = "add", .short_values = "wgdalo"},
    {.program = "nix-shell", .name = "run"},
    {.program = "nix-shell", .name = "command"},
    {.program = "cached-nix-shell", .name = "run"},
    {.program = "nodemon", .letter = 'x', .name = "exec"},
    {.program = "pwsh", .letter = 'c'},
    {.program = "powershell", .letter = 'c'},
    {.program = "tmux", .letter = 'c'},
    {.program = "sops", .subcommand = "exec-env", .operands = 1},
    {.program = "kubectl-ssh", .letter = 'c', .remote = true},
    {.program = "gcloud",
     .subcommand = "compute ssh",
     .name = "command",
     .remote = true},
    {.program = "fly",
     .subcommand = "ssh console",
     .letter = 'C',
     .name = "command",
     .remote = true},
    {.program = "flyctl",
     .subcommand = "ssh console",
     .letter = 'C',
     .name = "command",
     .remote = true},
    {.program = "vagrant",
     .subcommand = "ssh",
     .letter = 'c',
     .name = "command",
     .remote = true},
    {.program = "eb",
     .subcommand = "ssh",
     .letter = 'c',
     .name = "command",
     .remote = true},
    {.program = "cf",
     .subcommand = "ssh",
     .letter = 'c',
     .name = "command",
     .remote = true},
    {.program = "aws",
     .subcommand = "ecs execute-command",
     .name = "command",
     .remote = true},
    {.program = "az",
     .subcommand = "vm run-command",
     .name = "scripts",
     .remote = true},
    {.program = "pdsh", .short_values = "wxlRtuf", .remote = true},
    {.program = "dsh", .short_values = "mgfr", .remote = true},
    {.program = "pssh", .short_values = "hHlptoexO", .remote = true},
    {.program = "parallel-ssh", .short_values = "hHlptoexO", .remote = true},
    {.program = "clush", .short_values = "wxglotuf", .remote = true},
    {.program = "salt", .operands = 2, .short_values = "t", .remote = true},
    {.program = "knife", .subcommand = "ssh", .operands = 1, .remote = true},
});

/// Packages whose program has another name.
std::string_view ProgramOfPackage(std::string_view package) {
  struct Named {
    std::string_view package, program;
  };
  constexpr auto kNames = std::to_array<Named>({
      {"firebase-tools", "firebase"},
      {"aws-cdk", "cdk"},
      {"cdktf-cli", "cdktf"},
      {"netlify-cli", "netlify"},
      {"eas-cli", "eas"},
      {"heroku-cli", "heroku"},
      {"railway-cli", "railway"},
      {"@railway/cli", "railway"},
      {"@changesets/cli", "changeset"},
      {"@sentry/cli", "sentry-cli"},
      {"@angular/cli", "ng"},
      {"@google-cloud/cli", "gcloud"},
      {"http-server", "http.server"},
      {"awscli", "aws"},
      {"awscli2", "aws"},
      {"google-cloud-sdk", "gcloud"},
  });
  for (const Named& known : kNames) {
    if (known.package == package) return known.program;
  }
  return BaseName(package);
}

/// The program of `vercel@latest`, `@vscode/vsce`, `twine==5.0`.
Word ProgramIn(Word word) {
  if (!word.known || word.text.contains("://")) return word;
  std::string_view text = word.text;
  if (text.starts_with("npm:")) text.remove_prefix(4);
  const size_t version = text.find_first_of("@=[", 1);
  return KnownWord(std::string(ProgramOfPackage(text.substr(0, version))));
}

bool IsVersion(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  return text.starts_with("lts/") || text == "node" || text == "stable" ||
         (!text.empty() && text[0] >= '0' && text[0] <= '9');
}

std::vector<Unwrapped> OfTool(const Runner& runner, WordSpan words) {
  WordSpan rest = words.subspan(1);
  if (!runner.subcommand.empty()) {
    rest = BehindSubcommand(rest, runner.subcommand, runner.short_values,
                            kRunnerValues);
  }
  const WordSpan options = rest;
  rest = BehindOptions(rest, runner.short_values, kRunnerValues);
  const bool is_behind_dashes =
      options.size() > rest.size() &&
      options[options.size() - rest.size() - 1].text == "--";
  if (!is_behind_dashes && runner.operands > 0) {
    const WordSpan behind = BehindDashes(rest);
    rest = !behind.empty()
               ? behind
               : rest.subspan(std::min(runner.operands, rest.size()));
    rest = BehindOptions(rest, "", "");
  } else if (runner.program == "nvm" && !rest.empty() &&
             IsVersion(rest[0].text)) {
    rest = rest.subspan(1);
  } else if (!is_behind_dashes && !runner.packages && !rest.empty() &&
             rest[0].text.contains('@')) {
    // `mise exec node@20 -- npm publish`
    const WordSpan behind = BehindDashes(rest);
    if (!behind.empty()) rest = behind;
  }
  if (rest.empty()) return {};
  Unwrapped inner{.words = Copy(rest), .remote = runner.remote};
  if (runner.packages) inner.words[0] = ProgramIn(inner.words[0]);
  if (runner.remote && inner.words.size() == 1) inner.as = As::kText;
  return {inner};
}

std::vector<Unwrapped> OfText(const TextRunner& runner, WordSpan words) {
  WordSpan rest = words.subspan(1);
  if (!runner.subcommand.empty()) {
    rest = BehindSubcommand(rest, runner.subcommand, runner.short_values,
                            kRunnerValues);
  }
  std::vector<Unwrapped> commands;
  if (runner.is_option()) {
    // Behind "--", options are those of a command.
    const auto dashes = std::ranges::find(rest, "--", &Word::text);
    rest = rest.first(static_cast<size_t>(dashes - rest.begin()));
    for (const Word& text : ValuesOf(rest, runner.letter, runner.name)) {
      commands.push_back(
          {.as = As::kText, .words = {text}, .remote = runner.remote});
    }
    return commands;
  }
  rest = BehindOptions(rest, runner.short_values, kRunnerValues);
  rest = rest.subspan(std::min(runner.operands, rest.size()));
  if (rest.empty()) return {};
  return {
      Unwrapped{.as = As::kText, .words = Copy(rest), .remote = runner.remote}};
}

bool IsContainerTool(std::string_view name) {
  constexpr auto kPrograms = std::to_array<std::string_view>(
      {"docker", "podman", "nerdctl", "kubectl", "oc", "docker-compose",
       "podman-compose", "k", "kubecolor"});
  return std::ranges::find(kPrograms, name) != kPrograms.end();
}

constexpr std::string_view kContainerValues =
    " env user workdir env-file namespace container context index volume "
    "mount publish name network net label entrypoint hostname add-host "
    "platform memory cpus device cap-add cap-drop security-opt ulimit "
    "restart link pull gpus shm-size log-driver log-opt expose dns "
    "group-add ipc pid userns runtime tmpfs volumes-from file project-name "
    "profile project-directory config host log-level image overrides target "
    "kubeconfig cluster ";

/// The operand of --volume: SOURCE:TARGET[:OPTIONS].
std::optional<Binding> BindingOfVolume(std::string_view value) {
  const size_t colon = value.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view rest = value.substr(colon + 1);
  return Binding{.source = std::string(value.substr(0, colon)),
                 .target = std::string(rest.substr(0, rest.find(':')))};
}

/// The operand of --mount: KEY=VALUE,...
std::optional<Binding> BindingOfMount(std::string_view value) {
  Binding binding;
  while (!value.empty()) {
    const std::string_view field = value.substr(0, value.find(','));
    value.remove_prefix(std::min(field.size() + 1, value.size()));
    const size_t equals = std::min(field.find('='), field.size() - 1);
    const std::string_view key = field.substr(0, equals);
    const std::string text(field.substr(equals + 1));
    if (key == "source" || key == "src") binding.source = text;
    if (key == "target" || key == "destination" || key == "dst") {
      binding.target = text;
    }
  }
  if (binding.source.empty()) return std::nullopt;
  return binding;
}

/// What `options` of docker run bind. What is bound to be read only counts,
/// too: it can be sent.
std::vector<Binding> BindingsOf(WordSpan options) {
  std::vector<Binding> bindings;
  const auto add = [&](const Word& word, std::optional<Binding> binding) {
    if (!word.known || !binding || !binding->target.starts_with('/')) return;
    // The name of a volume.
    if (!binding->source.contains('/') && !binding->source.starts_with('.')) {
      binding->source = "/var/lib/docker/volumes/" + binding->source;
    }
    while (binding->target.ends_with('/')) binding->target.pop_back();
    bindings.push_back(*std::move(binding));
  };
  for (const Word& word : ValuesOf(options, 'v', "volume")) {
    add(word, BindingOfVolume(word.text));
  }
  for (const Word& word : ValuesOf(options, '\0', "mount")) {
    add(word, BindingOfMount(word.text));
  }
  return bindings;
}

/// The words that docker and the like run in a container that is there, or that
/// is made.
std::vector<Unwrapped> OfContainer(WordSpan words) {
  size_t at = 1;
  bool is_compose = BaseName(words[0].text).ends_with("compose");
  for (; at < words.size();) {
    const std::string_view text = words[at].text;
    if (text.starts_with('-')) {
      at += SizeOfOption(words[at], "nHcfp", kContainerValues);
    } else if (text == "compose" || text == "container") {
      is_compose = is_compose || text == "compose";
      ++at;
    } else {
      break;
    }
  }
  if (at >= words.size()) return {};
  const std::string verb = words[at].text;
  const bool runs = verb == "run" || verb == "create";
  if (!runs && verb != "exec" && verb != "debug") return {};
  WordSpan rest = words.subspan(at + 1);
  const std::string_view name = BaseName(words[0].text);
  const bool is_cluster = name.starts_with("k") || name == "oc";
  if (is_cluster) {
    rest = BehindDashes(rest);
    if (rest.empty() && verb == "exec") {
      rest = BehindOptions(words.subspan(at + 1), "nc", kContainerValues);
      rest = rest.subspan(std::min<size_t>(1, rest.size()));
    }
    if (rest.empty()) return {};
    return {Unwrapped{.words = Copy(rest), .remote = true}};
  }
  const std::vector<Word> entries = ValuesOf(rest, '\0', "entrypoint");
  const WordSpan all = rest;
  rest = BehindOptions(rest, runs ? "euwvplhcm" : "euwnc", kContainerValues);
  if (rest.empty()) return {};
  const Word image = rest[0];
  rest = rest.subspan(1);
  if (rest.empty()) return {};
  const bool contained = runs && !is_compose;
  std::vector<Unwrapped> commands{
      {.words = Copy(rest), .remote = true, .contained = contained}};
  if (contained) {
    commands[0].bindings = BindingsOf(all.first(all.size() - rest.size() - 1));
  }
  if (contained && image.known) {
    // An image may have a program whose arguments these are.
    std::string program = entries.empty() ? image.text : entries[0].text;
    program = program.substr(0, program.find('@'));
    program = BaseName(program);
    program = program.substr(0, program.find(':'));
    Unwrapped entry = commands[0];
    entry.words.insert(entry.words.begin(),
                       KnownWord(program == "aws-cli"            ? "aws"
                                 : program.contains("cloud-sdk") ? "gcloud"
                                                                 : program));
    commands.push_back(std::move(entry));
  }
  return commands;
}

/// Subcommands of yarn, pnpm and bun; others are programs of the project.
bool IsOwnCommand(std::string_view word) {
  constexpr auto kCommands = std::to_array<std::string_view>(
      {"add",        "install",   "i",         "remove", "rm",
       "uninstall",  "un",        "up",        "update", "upgrade",
       "run",        "exec",      "dlx",       "x",      "create",
       "init",       "link",      "unlink",    "test",   "t",
       "start",      "stop",      "restart",   "pack",   "publish",
       "list",       "ls",        "ll",        "why",    "info",
       "config",     "cache",     "outdated",  "audit",  "npm",
       "workspace",  "global",    "store",     "patch",  "import",
       "rebuild",    "prune",     "version",   "bin",    "root",
       "workspaces", "unpublish", "deprecate", "owner",  "dist-tag",
       "build",      "dev",       "lint",      "pm"});
  return std::ranges::find(kCommands, word) != kCommands.end();
}

/// `yarn TOOL`, `yarn workspace NAME TOOL`.
std::vector<Unwrapped> OfProjectTool(WordSpan words) {
  WordSpan rest =
      BehindOptions(words.subspan(1), "FC", " filter dir cwd prefix ");
  if (rest.empty()) return {};
  Unwrapped inner;
  const std::string_view first = rest[0].text;
  if (first == "workspace" || first == "workspaces") {
    const bool all = first == "workspaces";
    rest = rest.subspan(std::min<size_t>(2, rest.size()));
    if (all) {
      rest = BehindOptions(rest, "", " include exclude from since jobs ");
    }
    if (rest.empty()) return {};
    inner.words = Copy(rest);
    inner.words.insert(inner.words.begin(), words[0]);
    return {inner};
  }
  if (IsOwnCommand(first) || first.contains(':')) return {};
  inner.words = Copy(rest);
  return {inner};
}

std::vector<Unwrapped> OfGit(WordSpan words) {
  const WordSpan rest = BehindOptions(
      words.subspan(1), "Cc", " git-dir work-tree namespace exec-path ");
  if (rest.empty()) return {};
  const std::string_view verb = rest[0].text;
  const auto texts = [&](const std::vector<Word>& found) {
    std::vector<Unwrapped> commands;
    for (const Word& text : found) {
      commands.push_back({.as = As::kText, .words = {text}});
    }
    return commands;
  };
  if (verb == "rebase") return texts(ValuesOf(rest, 'x', "exec"));
  if (verb == "difftool") return texts(ValuesOf(rest, 'x', "extcmd"));
  if (verb == "filter-branch") {
    std::vector<Word> found;
    for (const Word& word : rest) {
      if (!word.text.ends_with("-filter")) continue;
      const size_t at = static_cast<size_t>(&word - rest.data());
      if (at + 1 < rest.size()) found.push_back(rest[at + 1]);
    }
    return texts(found);
  }
  const WordSpan behind = rest.subspan(1);
  if (verb == "bisect" && !behind.empty() && behind[0].text == "run") {
    if (behind.size() < 2) return {};
    return {Unwrapped{.words = Copy(behind.subspan(1))}};
  }
  if (verb == "submodule") {
    WordSpan command = BehindSubcommand(behind, "foreach", "", "");
    command = BehindOptions(command, "", "");
    if (command.empty()) return {};
    return {Unwrapped{.as = As::kText, .words = Copy(command)}};
  }
  return {};
}

/// The windows of tmux and screen.
std::vector<Unwrapped> OfTerminal(WordSpan words, std::string_view name) {
  if (name == "screen") {
    const std::vector<Word> stuffed = ValuesOf(words, 'X', "");
    if (!stuffed.empty() && stuffed[0].text == "stuff") {
      Word text = words.back();
      for (const std::string_view enter : {"^M", "\\n", "\r", "\\015"}) {
        if (text.text.ends_with(enter)) {
          text.text.resize(text.text.size() - enter.size());
        }
      }
      return {Unwrapped{.as = As::kText, .words = {std::move(text)}}};
    }
    const WordSpan rest = BehindOptions(words.subspan(1), "SceghpstT", "");
    if (rest.empty() || !stuffed.empty()) return {};
    return {Unwrapped{.words = Copy(rest)}};
  }
  constexpr auto kVerbs = std::to_array<std::string_view>(
      {"new",      "new-session",    "neww",     "new-window",
       "splitw",   "split-window",   "respawnp", "respawn-pane",
       "respawnw", "respawn-window", "run",      "run-shell",
       "if",       "if-shell",       "popup",    "display-popup",
       "pipep",    "pipe-pane",      "send",     "send-keys"});
  const WordSpan rest = BehindOptions(words.subspan(1), "LSfc", "");
  if (rest.empty() || std::ranges::find(kVerbs, rest[0].text) == kVerbs.end()) {
    return {};
  }
  const bool sends = rest[0].text.starts_with("send");
  const WordSpan text = BehindOptions(rest.subspan(1), "cFnstxyelhw", "");
  Unwrapped inner{.as = As::kText};
  for (const Word& word : text) {
    const bool is_key =
        word.text == "Enter" || word.text == "C-m" || word.text == "KPEnter";
    if (!sends || !is_key) inner.words.push_back(word);
  }
  if (inner.words.empty()) return {};
  return {inner};
}

/// Each operand is a text: `hyperfine 'a' 'b'`.
std::vector<Unwrapped> OfOperands(WordSpan words) {
  std::vector<Unwrapped> commands;
  WordSpan rest = words.subspan(1);
  while (!rest.empty()) {
    const bool is_option = IsOptionWord(rest[0]);
    if (!is_option) commands.push_back({.as = As::kText, .words = {rest[0]}});
    rest = rest.subspan(std::min(
        is_option
            ? SizeOfOption(rest[0], "wmMrLDsnNcC",
                           " warmup min-runs max-runs runs names name shell "
                           "export-json export-csv export-markdown style ")
            : 1,
        rest.size()));
  }
  for (const Word& text : ValuesOf(words, 'p', "prepare")) {
    commands.push_back({.as = As::kText, .words = {text}});
  }
  return commands;
}

/// ansible HOSTS -m MODULE -a TEXT
std::vector<Unwrapped> OfAnsible(WordSpan words) {
  const std::vector<Word> modules = ValuesOf(words, 'm', "module-name");
  const std::string_view module =
      modules.empty() ? "command" : std::string_view(modules[0].text);
  const std::string_view base = module.substr(module.rfind('.') + 1);
  constexpr auto kShells =
      std::to_array<std::string_view>({"command", "shell", "raw", "script"});
  if (std::ranges::find(kShells, base) == kShells.end()) return {};
  const std::vector<Word> texts = ValuesOf(words, 'a', "args");
  if (texts.empty()) return {};
  return {Unwrapped{.as = As::kText, .words = {texts[0]}, .remote = true}};
}

/// The texts in `commands=["a","b"]`, or `commands=a`.
std::vector<Unwrapped> OfSendCommand(WordSpan words) {
  std::vector<Unwrapped> commands;
  for (const Word& word : ValuesOf(words, '\0', "parameters")) {
    const size_t at = word.text.find("ommands");
    if (at == std::string::npos) continue;
    const std::string_view rest = std::string_view(word.text).substr(at);
    size_t begin = rest.find_first_of("[=");
    if (begin == std::string_view::npos) continue;
    if (rest.find('[') == std::string_view::npos) {
      commands.push_back(
          {.as = As::kText,
           .words = {KnownWord(std::string(rest.substr(begin + 1)))},
           .remote = true});
      continue;
    }
    begin = rest.find('[');
    while ((begin = rest.find_first_of("\"'", begin)) !=
           std::string_view::npos) {
      const size_t end = rest.find(rest[begin], begin + 1);
      if (end == std::string_view::npos) break;
      commands.push_back({.as = As::kText,
                          .words = {KnownWord(std::string(
                              rest.substr(begin + 1, end - begin - 1)))},
                          .remote = true});
      begin = end + 1;
    }
  }
  return commands;
}

std::vector<Unwrapped> OfDebugger(WordSpan words) {
  std::vector<Unwrapped> commands;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string_view option = words[i].text;
    const bool runs = option == "-ex" || option == "--eval-command" ||
                      option == "-iex" || option == "-o";
    if (!runs) continue;
    for (const std::string_view prefix :
         {"shell ", "!", "platform shell ", "make "}) {
      if (!words[i + 1].text.starts_with(prefix)) continue;
      commands.push_back(
          {.as = As::kText, .words = {Tail(words[i + 1], prefix.size())}});
      break;
    }
  }
  return commands;
}

/// What stands behind `-c` or `/c` up to the end.
std::vector<Unwrapped> OfForeignShell(WordSpan words) {
  for (size_t i = 1; i + 1 < words.size(); ++i) {
    std::string text = words[i].text;
    std::ranges::transform(text, text.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    if (text == "-c" || text == "-command" || text == "/c" || text == "/k") {
      return {Unwrapped{.as = As::kText, .words = Copy(words.subspan(i + 1))}};
    }
  }
  return {};
}

/// python -m TOOL, and node with a script of a package.
std::vector<Unwrapped> OfModule(WordSpan words, std::string_view name) {
  if (name.starts_with("node")) {
    const WordSpan rest = BehindOptions(words.subspan(1), "r", " require ");
    if (rest.empty() || !rest[0].text.contains("node_modules/.bin/")) return {};
    return {Unwrapped{.words = Copy(rest)}};
  }
  for (size_t i = 1; i + 1 < words.size(); ++i) {
    const std::string_view text = words[i].text;
    if (!text.starts_with('-') || text.contains('c')) return {};
    if (text.ends_with('m')) {
      return {Unwrapped{.words = Copy(words.subspan(i + 1))}};
    }
    if (text == "-W" || text == "-X") ++i;
  }
  return {};
}

/// With `nix develop -c CMD`, all of the rest; `nix run PACKAGES#NAME -- ...`.
std::vector<Unwrapped> OfNix(WordSpan words) {
  const WordSpan run = BehindOptions(
      BehindSubcommand(words.subspan(1), "run", "", " option "), "", "");
  if (!run.empty()) {
    const std::string& package = run[0].text;
    const size_t name = package.find_last_of("#.");
    if (name == std::string::npos) return {};
    Unwrapped inner{.words = {KnownWord(std::string(ProgramOfPackage(
                        std::string_view(package).substr(name + 1))))}};
    WordSpan rest = run.subspan(1);
    if (!rest.empty() && rest[0].text == "--") rest = rest.subspan(1);
    inner.words.insert(inner.words.end(), rest.begin(), rest.end());
    return {inner};
  }
  for (size_t i = 1; i + 1 < words.size(); ++i) {
    const std::string_view text = words[i].text;
    if (text == "-c" || text == "--command") {
      return {Unwrapped{.words = Copy(words.subspan(i + 1))}};
    }
  }
  return {};
}

/// `cmake -E`: its commands for files, and those that run others.
std::vector<Unwrapped> OfCmake(WordSpan words) {
  if (words.size() < 4 || words[1].text != "-E") return {};
  const std::string_view command = words[2].text;
  WordSpan rest = words.subspan(3);
  Unwrapped inner;
  if (command == "env") {
    while (!rest.empty() && (IsOptionWord(rest[0]) || IsAssignment(rest[0]))) {
      if (IsAssignment(rest[0])) inner.environment.push_back(rest[0].text);
      rest = rest.subspan(1);
    }
  } else if (command == "chdir") {
    inner.directory = rest[0];
    rest = rest.subspan(1);
  } else if (command == "rm" || command.starts_with("remove")) {
    inner.words.push_back(KnownWord("rm"));
    if (command == "remove_directory") inner.words.push_back(KnownWord("-r"));
  } else if (command != "time") {
    return {};
  }
  inner.words.insert(inner.words.end(), rest.begin(), rest.end());
  if (rest.empty()) return {};
  return {inner};
}

/// Behind the word `verb`, the words of `program`.
std::vector<Unwrapped> AsProgram(WordSpan words, std::string_view verb,
                                 std::string program) {
  WordSpan rest = BehindSubcommand(words.subspan(1), verb, "p", " profile ");
  if (rest.empty()) return {};
  if (rest[0].text == "--") rest = rest.subspan(1);
  Unwrapped inner{.words = {KnownWord(std::move(program))}};
  inner.words.insert(inner.words.end(), rest.begin(), rest.end());
  return {inner};
}

/// start-stop-daemon --exec PROGRAM -- ARGUMENTS
std::vector<Unwrapped> OfDaemon(WordSpan words) {
  const WordSpan arguments = BehindDashes(words);
  for (const auto& [letter, name] :
       {std::pair('a', "startas"), std::pair('x', "exec")}) {
    std::vector<Word> programs = ValuesOf(words, letter, name);
    if (programs.empty()) continue;
    Unwrapped inner{.words = {std::move(programs[0])}};
    inner.words.insert(inner.words.end(), arguments.begin(), arguments.end());
    return {inner};
  }
  return {};
}

std::vector<Unwrapped> CommandsOfTool(const std::vector<Word>& all) {
  const WordSpan words = all;
  std::string_view name = BaseName(words[0].text);
  if (name.ends_with(".exe")) name.remove_suffix(4);
  if (name == "git") return OfGit(words);
  if (name.starts_with("git-") && name.size() > 4) {
    // A link to git.
    Unwrapped inner{
        .words = {KnownWord("git"), KnownWord(std::string(name.substr(4)))}};
    inner.words.insert(inner.words.end(), words.begin() + 1, words.end());
    return {inner};
  }
  if (name == "cmake") return OfCmake(words);
  if (name == "start-stop-daemon") return OfDaemon(words);
  if (name == "gio") {
    auto trashed = AsProgram(words, "trash", "trash");
    return !trashed.empty() ? trashed : AsProgram(words, "remove", "rm");
  }
  if (name == "minikube" || name == "microk8s" || name == "k3s" ||
      name == "k0s") {
    auto inner = AsProgram(words, "kubectl", "kubectl");
    if (!inner.empty()) return inner;
  }
  if (name == "rvm") {
    const auto verb = std::ranges::find(words, "do", &Word::text);
    if (words.end() - verb < 2) return {};
    return {Unwrapped{.words = {verb + 1, words.end()}}};
  }
  if (name == "tmux" || name == "screen") return OfTerminal(words, name);
  if (name == "hyperfine" || name == "concurrently") return OfOperands(words);
  if (name == "ansible") return OfAnsible(words);
  if (name == "gdb" || name == "lldb") return OfDebugger(words);
  if (name == "nix") return OfNix(words);
  if (name == "cmd" || name == "pwsh" || name == "powershell") {
    return OfForeignShell(words);
  }
  if (name.starts_with("python") || name.starts_with("pypy") ||
      name == "node" || name == "nodejs") {
    return OfModule(words, name);
  }
  if (name == "aws" &&
      std::ranges::find(words, "send-command", &Word::text) != words.end()) {
    return OfSendCommand(words);
  }
  if (name == "fab") {
    const WordSpan rest = BehindDashes(words);
    if (rest.empty()) return {};
    return {Unwrapped{.as = As::kText, .words = Copy(rest), .remote = true}};
  }
  if (name == "gcloud" || name == "wait-for-it" || name == "dockerize") {
    // `gcloud compute ssh VM -- CMD`
    const WordSpan rest = BehindDashes(words);
    const bool is_ssh =
        name != "gcloud" ||
        std::ranges::find(words, "ssh", &Word::text) != words.end();
    if (is_ssh && !rest.empty()) {
      return {Unwrapped{.words = Copy(rest), .remote = name == "gcloud"}};
    }
  }
  for (const TextRunner& runner : kTextRunners) {
    if (runner.program != name) continue;
    if (auto inner = OfText(runner, words); !inner.empty()) return inner;
  }
  for (const Runner& runner : kRunners) {
    if (runner.program != name) continue;
    if (auto inner = OfTool(runner, words); !inner.empty()) return inner;
  }
  if (name == "yarn" || name == "pnpm" || name == "bun") {
    return OfProjectTool(words);
  }
  if (IsContainerTool(name)) return OfContainer(words);
  return {};
}

}  // namespace

std::vector<Unwrapped> UnwrapTool(const std::vector<Word>& words) {
  std::vector<Unwrapped> commands = CommandsOfTool(words);
  for (Unwrapped& one : commands) one.acts = true;
  return commands;
}

std::vector<std::string> RecipesIn(std::string_view text) {
  std::vector<std::string> recipes;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with('\t')) {
      line.remove_prefix(1);
    } else {
      const size_t recipe = line.find(';');
      if (recipe == std::string_view::npos) continue;
      line.remove_prefix(recipe + 1);
    }
    line.remove_prefix(std::min(line.find_first_not_of(" @+-"), line.size()));
    if (!line.empty()) recipes.emplace_back(line);
  }
  return recipes;
}

}  // namespace txfs::cli
