#!/bin/sh
# Hooks of agents' hosts: their answers in a mount, in a run and outside of both,
# what becomes of them without a daemon, and their installation.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs python3 shfmt git
alone

mkdir ws mnt plain
(cd ws && git init -q && echo a >a && echo key >.env && git add a && git commit -qm a)
work=$PWD

# bash DIR COMMAND: the call of Claude Code, and its answer.
call() {
  python3 -c 'import json, sys
print(json.dumps({"session_id": "s", "cwd": sys.argv[1], "permission_mode": "default", "hook_event_name": "PreToolUse", "tool_name": sys.argv[2],
  "tool_input": dict(a.split("=", 1) for a in sys.argv[3:]), "tool_use_id": "toolu_1", "prompt_id": "p"}))' "$@"
}
# decision: of the answer on stdin; "none" for silence.
decision() {
  python3 -c 'import json, sys
text = sys.stdin.read()
print(json.loads(text)["hookSpecificOutput"]["permissionDecision"] if text else "none")'
}
judge() { call "$@" | txfs hook claude-code | decision; }
bash_in() { judge "$1" Bash "command=$2"; }

# Outside of a mount.
equal allow "$(bash_in "$work/plain" 'ls -l')" "reads"
equal none "$(bash_in "$work/plain" 'cat ~/.netrc')" "reads the home"
equal none "$(bash_in "$work/plain" make)" "not known"
equal ask "$(bash_in "$work/plain" 'rm -rf build')" "nothing takes it back"
equal deny "$(bash_in "$work/plain" 'rm -rf /')" "refused"

# In a mount.
cat >rules.toml <<'END2'
schema = 1

[[fs]]
id = "generated"
path = "gen/**"
ops = ["make", "content", "remove"]
reason = "a program makes these files"
suggest = "change the program"

[[exec]]
id = "deploy"
program = "deploy"
action = "deny"
reason = "only the release does it"
suggest = "deploy to staging"
END2
txfs mount ws mnt --policy rules.toml
mkdir mnt/src
equal allow "$(bash_in "$work/mnt" 'rm -rf build')" "the transaction takes it back"
equal allow "$(bash_in "$work/mnt/src" 'mkdir deep && touch deep/x')" "the same, below"
equal none "$(bash_in "$work/mnt/src" 'git reset --hard')" "it may bring what no rule was asked about"
equal none "$(bash_in "$work/mnt" make)" "a mount does not keep the rest of the machine"
equal ask "$(bash_in "$work/mnt" 'git push --force')" "leaves the machine"
equal deny "$(bash_in "$work/mnt" './deploy --prod')" "a rule of the mount"
equal allow "$(judge "$work/mnt" Write "file_path=$work/mnt/src/new.c" content=x)" "a file in the mount"
equal allow "$(judge "$work/plain" Edit "file_path=$work/mnt/a" old_string=a new_string=b)" "the same, from elsewhere"
equal allow "$(judge "$work/mnt" Edit file_path=a old_string=a new_string=b)" "a relative path"
equal deny "$(judge "$work/mnt" Write file_path=gen/x content=x)" "refused by a rule"
ln -s gen/x mnt/link
mkdir -p ws/gen
equal deny "$(judge "$work/mnt" Write file_path=link content=x)" "the same, by a link"
equal none "$(judge "$work/mnt" Write "file_path=$work/plain/x" content=x)" "outside of the mount"
equal ask "$(judge "$work/mnt" Write "file_path=$HOME/.bashrc" content=x)" "what opens a way in"
contains "$(call "$work/mnt" Write file_path=gen/x content=x | txfs hook claude-code)" \
  "txfs: a program makes these files. Instead: change the program (rule generated)"
patch='*** Begin Patch
*** Add File: src/y
+y
*** Delete File: gen/x
*** End Patch'
contains "$(call "$work/mnt" apply_patch "command=$patch" | txfs hook codex)" '"permissionDecision":"deny"'
# Calls that are not refused have a mark, with the host's ids and until their end.
calls() { txfs -C mnt log --calls --json; }
before=$(calls | wc -l)
call "$work/mnt" Bash 'command=touch called' | sed 's/toolu_1/toolu_begun/' >call.json
txfs hook claude-code <call.json >/dev/null
touch mnt/called
sed 's/PreToolUse/PostToolUse/' call.json | txfs hook claude-code >out
[ ! -s out ] || fail "the end of a call is answered: $(cat out)"
equal deny "$(bash_in "$work/mnt" 'rm -rf /')" "not marked"
equal $((before + 1)) "$(calls | wc -l)" "calls"
equal "('claude-code', 's', 'p', 'toolu_begun', 'Bash', 'touch called', True, 1)" "$(calls | tail -n 1 |
  json '(d["host"], d["session"], d["turn"], d["call"], d["tool"], d["command"], d["ended"] is not None, d["changes"])')" "the call"
txfs -C mnt revert --call toolu_begun >/dev/null 2>&1
[ ! -e mnt/called ] || fail "the call was not reverted"
# What real hosts asked, and obeyed.
for host in claude-code codex gemini copilot opencode; do
  python3 "$TXFS_SOURCE_DIR/tests/cli/hooks/replay.py" $host \
    "$TXFS_SOURCE_DIR/tests/cli/hooks/recorded/$host.jsonl" "$work/mnt" "$HOME" >count ||
    fail "the recorded session of $host"
  [ "$(cat count)" -ge 4 ] || fail "$host: $(cat count) calls"
done
# New rules hold from the next call on.
sed -i 's/"gen/"other/' rules.toml
(cd mnt && txfs policy reload) >/dev/null
equal allow "$(judge "$work/mnt" Write file_path=gen/x content=x)" "after a reload"

# Without the daemon the rules of the mount are not known: nothing is allowed.
kill -KILL "$(txfs -C mnt status --json | json 'd["pid"]')"
tries=0
while stat mnt/a >/dev/null 2>&1 && [ $tries -lt 10000 ]; do
  tries=$((tries + 1))
done
equal ask "$(bash_in "$work/mnt" 'ls')" "a dead mount"
contains "$(call "$work/mnt" Bash command=ls | txfs hook codex)" '`txfs mount` clears it and mounts again'
equal deny "$(bash_in "$work/mnt" 'rm -rf /')" "a dead mount: refused"
txfs umount mnt >/dev/null 2>&1
# A policy with an error.
mkdir -p "$HOME/.config/txfs"
echo 'schema = 2' >"$HOME/.config/txfs/policy.toml"
contains "$(call "$work/plain" Bash command=ls | txfs hook claude-code)" "policy.toml:1: "
contains "$(call "$work/plain" Bash command=ls | txfs hook claude-code)" "; correct the line"
refuses_with_hint 125 "policy.toml:1: " txfs -C ws run -- ls
equal ask "$(bash_in "$work/plain" 'ls')" "a policy with an error"
rm "$HOME/.config/txfs/policy.toml"
# What is no call is refused, and so is one in another user's directory that
# cannot be looked at.
status=0
echo nothing | txfs hook claude-code >out 2>err || status=$?
equal 2 $status "no JSON"
[ ! -s out ] || fail "printed $(cat out)"
contains "$(cat err)" "is not a JSON object"
status=0
txfs hook claude-code </dev/null >out 2>err || status=$?
equal 2 $status "no input"
status=0
call "$work/plain" Bash command=ls | txfs hook claude-code >&- 2>/dev/null || status=$?
equal 2 $status "an answer that is lost"
refuses 2 "subcommand" txfs hook unknown-host

# In a run.
if command -v bwrap >/dev/null; then
  # A sandbox has its own /tmp.
  cp "$TXFS" ws/program
  for case in "make=allow" "rm -rf ~/x=allow" "curl x | sh=allow" "git push --force=ask"; do
    call "$work/ws" Bash "command=${case%=*}" >ws/call.json
    equal "${case##*=}" "$(txfs -C ws run --on-success=discard -- sh -c "./program hook claude-code <call.json" 2>/dev/null | decision)" \
      "${case%=*} in a run"
  done
  # Calls in a run are marked, too.
  call "$work/ws" Bash "command=make" >ws/call.json
  txfs -C ws run --keep --name kept -- sh -c './program hook claude-code <call.json; touch made' >/dev/null 2>&1
  contains "$(txfs -C ws -t kept log --calls)" make
  txfs -C ws -t kept discard >/dev/null 2>&1
  rm ws/call.json ws/program
fi

# Installation.
mkdir project
cd project
for host in claude-code codex gemini cursor copilot opencode; do
  for where in --user --project; do
    txfs hook install $host $where --dry-run >dry 2>note
    file=$(cat note)
    [ ! -e "$file" ] || fail "$host $where: --dry-run wrote $file"
    contains "$(txfs hook install $host $where 2>note)" "installed in $file"
    cmp "$file" dry || fail "$host $where: not what --dry-run printed"
    # The units of timeouts, what a failure of the hook means, and the matchers.
    diff -u "$TXFS_SOURCE_DIR/tests/cli/hooks/installed/$host.${file##*.}" "$file" >&2 ||
      fail "$host $where: another configuration"
    contains "$(txfs hook install $host $where 2>note)" "$file has the hook already"
    cmp "$file" dry || fail "$host $where: it changed"
    grep -q txfs "$file"
  done
  # The doctor calls it.
  txfs doctor >found 2>&1 || :
  contains "$(cat found)" "ok    hook-$host: "
  for where in --user --project; do
    contains "$(txfs hook uninstall $host $where)" "removed from"
    contains "$(txfs hook uninstall $host $where)" "has no hook of txfs"
  done
done
rm dry note found
# The doctor reads what is installed, as the host does.
doctor() { txfs doctor 2>&1 | grep -A1 "hook-$1" || :; }
txfs hook install claude-code >/dev/null 2>&1
sed -i 's/"txfs"/"\/gone\/txfs"/' "$HOME/.claude/settings.json"
contains "$(doctor claude-code)" "names the program /gone/txfs"
contains "$(doctor claude-code)" '`txfs hook install claude-code` writes it anew'
txfs hook install claude-code >/dev/null 2>&1
contains "$(doctor claude-code)" "ok    hook-claude-code"
mkdir .claude
echo '{"disableAllHooks": true}' >.claude/settings.local.json
contains "$(doctor claude-code)" "switches hooks off"
rm -r .claude
txfs hook uninstall claude-code >/dev/null
# It does not run what only a project names.
txfs hook install codex --project >/dev/null 2>&1
printf '#!/bin/sh\ntouch "%s/ran"\n' "$PWD" >txfs
chmod 755 txfs
sed -i "s|txfs hook|$PWD/txfs hook|" .codex/hooks.json
contains "$(doctor codex)" "which is not the txfs in PATH"
[ ! -e ran ] || fail "the doctor ran a program of the project"
txfs hook uninstall codex --project >/dev/null
rm txfs
txfs hook install opencode --project >/dev/null 2>&1
sed -i 2,5d .opencode/plugins/txfs.js
contains "$(doctor opencode)" "is not the plugin of this txfs"
txfs hook uninstall opencode --project >/dev/null
equal "" "$(find . -mindepth 1)" "left in the project"
equal "" "$(find "$HOME" -path "$HOME/.local" -prune -o -type f -print)" "left in the home"
contains "$(txfs hook install codex 2>&1 >/dev/null)" "/hooks"

# What the workspace has in its place is not followed, and not understood.
mkdir .claude elsewhere
ln -s ../elsewhere/settings.json .claude/settings.json
echo '{}' >elsewhere/settings.json
refuses_with_hint 1 "without symbolic links" txfs hook install claude-code --project
rm -r .claude
ln -s elsewhere .claude
refuses_with_hint 1 "" txfs hook install claude-code --project
rm .claude
equal '{}' "$(cat elsewhere/settings.json)" "where the links lead"
mkdir .gemini
echo '{ "a": 1, // comment
}' >.gemini/settings.json
refuses_with_hint 1 "is not a JSON object without comments" txfs hook install gemini --project
contains "$(cat .gemini/settings.json)" "// comment"
# A configuration that is there keeps its members and its mode.
mkdir .codex
printf '{\n  "x": [1, 2],\n  "hooks": {"Stop": [{"hooks": []}]}\n}\n' >.codex/hooks.json
chmod 640 .codex/hooks.json
txfs hook install codex --project >/dev/null 2>&1
equal '["x", "hooks"] ["Stop", "PreToolUse", "PermissionRequest", "PostToolUse"] 640' \
  "$(python3 -c 'import json; d = json.load(open(".codex/hooks.json")); print(json.dumps(list(d)), json.dumps(list(d["hooks"])))') $(stat -c %a .codex/hooks.json)" \
  "members and mode"
txfs hook uninstall codex --project >/dev/null
equal '{"x": [1, 2], "hooks": {"Stop": [{"hooks": []}]}}' \
  "$(python3 -c 'import json; print(json.dumps(json.load(open(".codex/hooks.json"))))')" "uninstalled"
