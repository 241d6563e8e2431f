#!/bin/sh
# Profiles: what an agent keeps, sees and gets in a run, by its program's name or
# by --profile, built-in or the user's own.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs bwrap
alone
mkdir -p "$HOME/bin" ws "$HOME/.config/gh"
profiles=$HOME/.config/txfs/profiles
echo login >"$HOME/.config/gh/hosts.yml"
# Not below /tmp, which is private in each run, but the home.
PATH=$HOME/bin:$PATH
export ANTHROPIC_API_KEY=of-anthropic OPENAI_API_KEY=of-openai
# What agents do: state below the home, by a file that is renamed, too; content.
cat >"$HOME/bin/claude" <<'END'
#!/bin/sh
mkdir -p ~/.claude/projects ~/.cache/other
echo "$*" >~/.claude/projects/log
echo state >~/.claude.json.tmp && mv ~/.claude.json.tmp ~/.claude.json
echo cached >~/.cache/other/file
echo "${ANTHROPIC_API_KEY-none} ${OPENAI_API_KEY-none} $(cat ~/.config/gh/hosts.yml 2>/dev/null || echo hidden)"
[ $# -eq 0 ] || echo "$1" >made
exit "${CLAUDE_EXIT:-0}"
END
cp "$HOME/bin/claude" "$HOME/bin/mine"
chmod 755 "$HOME/bin/claude" "$HOME/bin/mine"
cd ws

# forget: what earlier runs kept and made.
forget() {
  rm -rf "$HOME/.claude" "$HOME/.claude.json" "$HOME/.cache" made
}
# kept YES-OR-NO
kept() {
  case $1 in
    yes) [ -f "$HOME/.claude/projects/log" ] && [ -f "$HOME/.claude.json" ] || fail "not kept: $2" ;;
    no) [ ! -e "$HOME/.claude" ] && [ ! -e "$HOME/.claude.json" ] || fail "kept: $2" ;;
  esac
  [ ! -e "$HOME/.cache" ] && [ ! -e "$HOME/.claude.json.tmp" ] || fail "kept what is not named: $2"
}

# wrong PART COMMAND...: txfs says why it does not run the command.
wrong() {
  part=$1
  shift
  status=0
  "$@" >"$TMPDIR/out" 2>"$TMPDIR/err" || status=$?
  case $status in
    125) ;;
    *) fail "$*: exit code $status: $(cat "$TMPDIR/err")" ;;
  esac
  contains "$(cat "$TMPDIR/err")" "$part"
}

# By the program's name.
equal "of-anthropic none hidden" "$(txfs run claude first 2>"$TMPDIR/err")" "claude with its profile"
contains "$(cat "$TMPDIR/err")" "/.cache/other/file"
equal first "$(cat made)" "what claude made"
kept yes "by the program's name"
equal first "$(cat "$HOME/.claude/projects/log")" "the arguments of claude"
forget
equal "of-anthropic none hidden" "$(txfs run -- claude second 2>/dev/null)" "claude after --"
kept yes "by the program's name, after --"
forget
# One that comes by a path can be another program of that name.
equal "none none hidden" "$(txfs run -- "$HOME/bin/claude" third 2>/dev/null)" "claude by a path"
kept no "by a path"
forget
equal "none none hidden" "$(txfs run mine 2>/dev/null)" "a program without a profile"
kept no "without a profile"
equal "none none hidden" "$(txfs run --profile none claude 2>/dev/null)" "claude without a profile"
kept no "with --profile none"
equal "of-anthropic none hidden" "$(txfs run --profile claude-code mine 2>/dev/null)" "--profile"
kept yes "with --profile"
forget

# Options win.
equal "given none hidden" "$(txfs run --env ANTHROPIC_API_KEY=given --hide ~/.claude claude 2>/dev/null)" "options"
[ ! -e "$HOME/.claude" ] || fail "kept what --hide hides"
forget
# Of a home that is only read, what is kept is written itself.
mkdir "$HOME/.claude"
txfs run --home ro claude >/dev/null 2>&1 || :
[ -f "$HOME/.claude/projects/log" ] || fail "not kept in a read-only home"
[ ! -e "$HOME/.cache" ] || fail "wrote to a read-only home"
forget

# The user's own.
mkdir -p "$profiles"
cat >"$profiles/mine.toml" <<'END'
programs = ["mine"]
keep = ["~/.claude", "~/.claude.json"]
show = ["~/.config/gh"]
environment = ["OPENAI_API_KEY"]
network = ["example.org", "*.example.org"]
on_success = "keep"
on_failure = "commit"
nested = true
END
equal "none of-openai login" "$(txfs run mine fourth 2>/dev/null)" "a profile of the user's"
[ ! -e made ] || fail "committed, against on_success"
contains "$(txfs list)" run-
txfs -t "$(txfs list | sed -n '/ active /s/.*\(run-[a-z0-9]*\).*/\1/p')" discard >/dev/null || fail "nothing was kept"
kept yes "by the user's profile"
forget
equal "none of-openai hidden" "$(txfs run --hide ~/.config/gh --on-success commit mine fifth 2>/dev/null)" \
  "options against the user's profile"
equal fifth "$(cat made)" "what --on-success commits"
forget
status=0
CLAUDE_EXIT=7 txfs run mine sixth >/dev/null 2>&1 || status=$?
equal 7 "$status" "exit code"
equal sixth "$(cat made)" "what on_failure commits"
forget
status=0
CLAUDE_EXIT=7 txfs run --on-failure discard mine sixth >/dev/null 2>&1 || status=$?
equal 7 "$status" "exit code"
[ ! -e made ] || fail "committed, against --on-failure"
forget

# Its own sandbox may make user namespaces, if the profile says so.
echo 'nested = true' >"$profiles/nest.toml"
if unshare -U true 2>/dev/null; then
  txfs run --profile nest -- unshare -U true 2>"$TMPDIR/err" || fail "nested: $(cat "$TMPDIR/err")"
  for option in "--profile none" "--profile nest --no-nested"; do
    # shellcheck disable=SC2086 # words
    txfs run $option -- unshare -U true 2>/dev/null && fail "a user namespace in a run with $option"
  done
fi
rm "$profiles/nest.toml"

# One replaces the built-in profile of its name.
echo 'programs = ["mine"]' >"$profiles/claude-code.toml"
rm "$profiles/mine.toml"
equal "none none hidden" "$(txfs run claude 2>/dev/null)" "a replaced profile"
kept no "with a replaced profile"
# Two of the user's for one program.
cp "$profiles/claude-code.toml" "$profiles/other.toml"
wrong "the profiles claude-code and other are both for mine" txfs run mine
rm "$profiles"/*

# What is wrong is said, and nothing runs.
cat >"$profiles/bad.toml" <<'END'
programs = ["claude"]

keeps = ["~/.claude"]
END
wrong "$profiles/bad.toml:3: unknown key \"keeps\" in the profile; expected one of programs, keep, show" \
  txfs run claude
wrong "bad.toml:3: unknown key" txfs run --profile bad -- true
[ ! -e made ] || fail "it ran"
# bad KEY-AND-VALUE WHAT
bad() {
  echo "$1" >"$profiles/bad.toml"
  wrong "$profiles/bad.toml:1: $2" txfs run --profile bad -- true
}
bad 'keep = ["/etc"]' 'keep of the profile has "/etc"; expected paths below the home'
bad 'keep = ["~/a/../../b"]' 'keep of the profile has "~/a/../../b"'
bad 'keep = ["~"]' 'keep of the profile has "~"'
bad 'show = ["~/"]' 'show of the profile has "~/"'
bad 'environment = ["A=b"]' 'environment of the profile has "A=b"'
bad 'programs = ["./claude"]' 'programs of the profile has "./claude"'
bad 'network = ["https://example.org"]' 'network of the profile has "https://example.org"'
bad 'on_success = "push"' 'on_success of the profile is "push"; expected commit, keep or discard'
bad 'nested = 1' 'nested of the profile is not a boolean'
bad 'keep = [' 'not valid TOML'
rm "$profiles/bad.toml"
wrong "unknown profile bad" txfs run --profile bad -- true
contains "$(cat "$TMPDIR/err")" \
  "known are aider, claude-code, codex, copilot, cursor, gemini, opencode"
wrong "unknown profile ../bad" txfs run --profile ../bad -- true
for name in aider claude-code codex copilot cursor gemini opencode; do
  txfs run --profile $name -- true 2>"$TMPDIR/err" || fail "$name: $(cat "$TMPDIR/err")"
done

# Only a file that nobody else can write, and that no run can.
echo 'keep = ["~/.claude"]' >"$profiles/mine.toml"
chmod 666 "$profiles/mine.toml"
wrong "the profile $profiles/mine.toml is writable by other users" txfs run --profile mine -- true
rm "$profiles/mine.toml"
mkfifo "$profiles/mine.toml"
wrong "the profile $profiles/mine.toml is not a regular file" txfs run --profile mine -- true
rm "$profiles/mine.toml"
mkdir ../config-base ../config
txfs mount ../config-base ../config >/dev/null
mkdir -p ../config/txfs/profiles
echo 'keep = ["~/.claude"]' >../config/txfs/profiles/mine.toml
wrong "lies in the mount at ${PWD%/ws}/config" \
  env XDG_CONFIG_HOME="${PWD%/ws}/config" txfs run --profile mine -- true
txfs umount ../config >/dev/null
txfs run --rw "$profiles" -- sh -c "echo >$profiles/new.toml" 2>/dev/null || :
equal "" "$(ls "$profiles")" "profiles that a run made"
