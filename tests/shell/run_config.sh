#!/bin/sh
# [run] in the configuration of the user, which sets defaults, and in that of the
# workspace, which can only restrict.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs bwrap
needs_fuse
alone
config=$HOME/.config/txfs/config.toml
mkdir -p "$HOME/.config/txfs/profiles" "$HOME/kept" "$HOME/seen" "$HOME/.aws" ws/.txfs ws/sub
echo secret >"$HOME/seen/file"
echo key >"$HOME/.aws/credentials"
echo file >ws/file
cd ws

# configure FILE LINE...: the lines of [run].
configure() {
  file=$1
  shift
  { echo '[run]' && printf '%s\n' "$@"; } >"$file"
}
user() { configure "$config" "$@"; }
workspace() { configure .txfs/config.toml "$@"; }

# run CODE PART OPTION...: the exit code, and a part of what is on stderr.
run() {
  code=$1 part=$2
  shift 2
  status=0
  txfs run --json "$TMPDIR/report" "$@" >"$TMPDIR/out" 2>"$TMPDIR/err" || status=$?
  equal "$code" "$status" "exit code of: txfs run $* ($(cat "$TMPDIR/err"))"
  contains "$(cat "$TMPDIR/err")" "$part"
}
# taken KEYS: the settings of files that the report of the last run has.
taken() {
  equal "$1" "$(json '" ".join(sorted(s["key"] for s in d["configuration"]))' <"$TMPDIR/report")" "settings"
}
has_network() { echo 'grep -q "[^o]:" /proc/net/dev && [ "$(grep -c : /proc/net/dev)" -gt 1 ]'; }

# Without files.
run 0 "committed 1 change" -- sh -c 'echo a >file'
taken ""

# The user's: each key is the default of its option.
user 'on_success = "keep"'
run 0 "kept 1 change" -- sh -c 'echo b >file'
taken on_success
equal "$config:2" "$(json 'd["configuration"][0]["from"]' <"$TMPDIR/report")" "place of the setting"
txfs -t "$(json 'd["name"]' <"$TMPDIR/report")" discard >/dev/null
run 0 "committed 1 change" --on-success commit -- sh -c 'echo b >file'
taken ""
run 0 "committed 1 change" --no-config -- sh -c 'echo c >file'
taken ""
user 'on_failure = "commit"'
run 9 "committed 1 change" -- sh -c 'echo d >file; exit 9'
user 'timeout = "300ms"' 'validate = "grep -q good file"'
run 124 "rolled back: timeout" -- sleep 600
user 'timeout = "10m"' 'validate = "grep -q good file"'
run 5 'rolled back: `grep -q good file` failed' -- sh -c 'echo bad >file'
taken "timeout validate"
run 5 '`false` failed' --validate false -- sh -c 'echo good >file'
user 'timeout = "300ms"' 'validate = "grep -q good file"'
run 0 "committed 1 change" --timeout 10m -- sh -c 'sleep 0.4; echo good >file'
taken validate
user 'pids = 3'
run 123 "limit of 3" -- sh -c 'sleep 60 & sleep 60 & sleep 60 & sleep 60 & wait'
run 0 "" --pids 100 -- sh -c 'sleep 0 & sleep 0 & sleep 0 & sleep 0 & wait'
user 'disk = "1M"' 'files = 3'
run 123 "disk limit of 1.0 MiB exceeded" -- sh -c 'head -c 2M /dev/zero >large'
run 123 "limit of 3 new files exceeded" -- sh -c 'touch 1 2 3 4; sleep 1'
taken "disk files"
run 0 "committed 5 changes" --disk 4M --files 9 -- sh -c 'touch 1 2 3 4; head -c 2M /dev/zero >large'
taken ""
rm 1 2 3 4 large
user 'memory = "64M"' 'cpu_time = "10m"'
run 0 "" -- true
taken "cpu_time memory"
[ "$(json 'd["limits_by"]' <"$TMPDIR/report")" != None ] || fail "no limits"
user 'network = "none"'
run 1 "" -- sh -c "$(has_network)"
run 0 "" --network host -- sh -c "$(has_network)"
user 'home = "ro"' "rw = [\"~/kept\", \"$HOME/none\"]"
run 0 "nothing changed" -- sh -c 'echo yes >~/kept/file; ! touch ~/other 2>/dev/null'
equal yes "$(cat "$HOME/kept/file")" "what rw keeps"
run 0 "not kept: ~/other" --home cow --hide ~/kept -- sh -c '! cat ~/kept/file 2>/dev/null && touch ~/other'
user 'hide = "~/seen"' 'show = "~/.aws"'
run 0 "" -- sh -c '! cat ~/seen/file 2>/dev/null && cat ~/.aws/credentials'
equal key "$(cat "$TMPDIR/out")" "a file that is shown"
run 0 "" --show ~/seen -- cat "$HOME/seen/file"
run 1 "" --hide ~/.aws -- cat "$HOME/.aws/credentials"
user 'env = ["MY_TOKEN", "OTHER=of-user"]'
MY_TOKEN=1 run 0 "" --env OTHER=given -- env
contains "$(cat "$TMPDIR/out")" MY_TOKEN=1
contains "$(cat "$TMPDIR/out")" OTHER=given
user 'strict = true' 'nested = true'
git init -q .
run 4 "the policy refused" -- sh -c 'rm .git/HEAD 2>/dev/null || true'
if unshare -U true 2>/dev/null; then
  run 0 "" -- unshare -U true
  run 1 "" --no-nested -- unshare -U true
fi
# Without a sandbox, what needs one is refused as an option, or else named.
for network in none example.org; do
  refuses_with_hint 125 "--network=$network does not go with --no-sandbox" \
    txfs run --no-sandbox --network "$network" -- touch no
done
user 'network = "none"' 'hide = "~/seen"' 'home = "rw"' 'nested = false' 'timeout = "10m"'
run 0 "not enforced without a sandbox: --hide, hide ($config:3), nested ($config:5)" \
  --no-sandbox --network host --hide ~/kept -- true
run 0 "not enforced without a sandbox: network ($config:2), --home, --hide, hide ($config:3), --no-nested" \
  --no-sandbox --home ro --hide ~/kept --no-nested -- true
taken timeout
user 'network = "example.org"'
run 0 "not enforced without a sandbox: network ($config:2)" --no-sandbox -- true
user 'home = "rw"' 'nested = true'
run 0 "warning: without a sandbox" --no-sandbox -- true
! grep -q "not enforced" "$TMPDIR/err" || fail "nothing was asked for: $(cat "$TMPDIR/err")"
rm "$config"
workspace 'network = "none"' 'home = "cow"' 'hide = "sub"' 'nested = false' 'pids = 100'
at=$PWD/.txfs/config.toml
run 0 "not enforced without a sandbox: network ($at:2), home ($at:3), hide ($at:4), nested ($at:5)" --no-sandbox -- true
contains "$(cat "$TMPDIR/err")" "restricts the run: pids"
taken pids
rm "$at"
[ ! -e no ] || fail "a command ran"
# A profile: weaker than options, stronger than [run].
printf 'keep = ["~/kept"]\non_success = "commit"\n' >"$HOME/.config/txfs/profiles/mine.toml"
user 'profile = "mine"' 'on_success = "discard"'
run 0 "committed 1 change" -- sh -c 'echo profile >file; echo profile >~/kept/file'
equal profile "$(cat "$HOME/kept/file")" "what the profile keeps"
taken profile
run 0 "rolled back" --profile none -- sh -c 'echo none >file'
taken on_success
rm "$config"

# The workspace's restricts, against options, too, and says so.
restricted() {
  workspace "timeout = \"$1\"" 'network = "none"' 'strict = true' 'pids = 3' 'home = "cow"' 'nested = false' \
    'hide = ["sub", "~/seen"]' 'memory = "1G"' 'cpu_time = "10m"'
}
restricted 300ms
run 124 ".txfs/config.toml restricts the run: network, hide, timeout, memory, cpu_time, pids, strict" \
  --timeout 1h --network host --pids 1000 --memory 2G -- sleep 600
taken "cpu_time hide memory network pids strict timeout"
restricted 10m
run 1 "" --network host -- sh -c "$(has_network)"
run 4 "the policy refused" -- sh -c 'rm .git/HEAD 2>/dev/null || true'
run 123 "limit of 3" --pids 9 -- sh -c 'sleep 60 & sleep 60 & sleep 60 & sleep 60 & wait'
echo below >sub/file
run 0 "" --show ~/seen -- sh -c '! cat sub/file 2>/dev/null && ! cat ~/seen/file 2>/dev/null'
run 0 "restricts the run: network, home" --home rw -- sh -c 'touch ~/new'
taken "cpu_time hide home memory network pids strict timeout"
[ ! -e "$HOME/new" ] || fail "the home was written"
run 0 "" --no-config --memory 512M --timeout 5m -- true
taken "cpu_time hide network pids strict"
run 0 "" -- sh -c '! touch .txfs/config.toml 2>/dev/null'
workspace 'disk = "1M"' 'files = 3'
run 123 "disk limit of 1.0 MiB exceeded" --disk 1G --files 2 -- sh -c 'head -c 2M /dev/zero >large'
taken disk
equal "{'disk': 1048576, 'files': 2}" "$(json 'd["limits"]' <"$TMPDIR/report")" "limits in the report"
run 123 "limit of 3 new files exceeded" -- sh -c 'touch 1 2 3 4; sleep 1'
taken "disk files"
run 123 "limit of 3 new files exceeded" -- sh -c 'cd && touch 1 2 3 4; sleep 1'
# Where the workspace is mounted over, the file of the base counts.
workspace 'network = "none"'
txfs mount . . >/dev/null 2>&1
(
  cd "$PWD"
  run 1 "restricts the run: network" -- sh -c "$(has_network)"
)
txfs umount . >/dev/null
cd "$PWD"
# It cannot do anything else.
for line in 'show = "~/.ssh"' 'rw = "~/kept"' 'env = "MY_TOKEN"' 'validate = "touch ~/x"' 'profile = "mine"' \
  'on_success = "commit"' 'on_failure = "commit"' 'strict = false' 'nested = true' 'network = "host"' \
  'timeout = "0"' 'pids = 0' 'files = 0' 'disk = "0"' 'hide = "../other"' 'hide = "/"' 'home = "all"' 'home = "ro"' 'home = "rw"'; do
  workspace "$line"
  refuses 125 "$PWD/.txfs/config.toml:2: ${line%% *}" txfs run -- true || fail "$line"
done
workspace 'new = 1'
refuses 125 ".txfs/config.toml:2: unknown key \"new\" in [run]; expected one of network, home, timeout" txfs run -- true
echo '[[run]]' >.txfs/config.toml
refuses 125 ".txfs/config.toml:1: run of the configuration is no table; expected [run]" txfs run -- true
echo 'run.timeout = "1s' >.txfs/config.toml
refuses 125 ".txfs/config.toml:1: not valid TOML" txfs run -- true
workspace 'strict = true'
chmod 666 .txfs/config.toml
refuses_with_hint 125 "the configuration $PWD/.txfs/config.toml is writable by other users" txfs run -- true
rm .txfs/config.toml
ln -s ../file .txfs/config.toml
refuses_with_hint 125 "is reached through a symbolic link" txfs run -- true
rm .txfs/config.toml

# Nor can the user's have what txfs does not know, or be another user's.
for line in 'timeout = "x"' 'memory = "0"' 'home = "none"' 'on_success = "push"' 'pids = "3"' 'hide = "a/b"' \
  'env = "1=2"' 'strict = 1'; do
  user "$line"
  refuses 125 "$config:2: ${line%% *}" txfs run -- true
done
user 'timeouts = "1s"'
refuses 125 "$config:2: unknown key \"timeouts\" in [run]; expected one of network, home" txfs run -- true
user 'strict = true'
chmod 666 "$config"
refuses_with_hint 125 "the configuration $config is writable by other users" txfs run -- true
chmod 644 "$config"
run 0 "nothing changed" -- true
equal "" "$(txfs list | grep ' active .*run-' || true)" "open transactions"
