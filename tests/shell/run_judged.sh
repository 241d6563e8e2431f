#!/bin/sh
# txfs run asks the rules for commands before it begins anything; one that only
# reads needs no transaction.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs bwrap shfmt
alone
make_workspace
mkdir mnt

# report EXPRESSION: of the last report.
report() {
  json "$1" <report.json
}
# judged: in the directory of the workspace, or in its mount, named in $where.
judged() {
  # Refused: nothing begins, nothing is written.
  before=$(manifest ws)
  refuses_with_hint 4 "error: not run: " \
    txfs -C "$where" run --json "$PWD/report.json" -- git push --force origin main
  contains "$(cat "$TMPDIR/err")" "git push --force origin main"
  contains "$(cat "$TMPDIR/err")" "--unjudged"
  equal "refused 4" "$(report 'd["outcome"] + " " + str(d["exit_code"])')" "report"
  rule=$(report 'd["judgement"]["rule"]')
  contains "$(cat "$TMPDIR/err")" "(rule $rule)"
  equal "True irreversible" \
    "$(report 'str(d["judgement"]["verdict"] in ("deny", "ask")) + " " + d["judgement"]["class"]')" \
    "judgement"
  equal "$before" "$(manifest ws)" "the base"
  # Also in the text of a shell.
  refuses 4 "(rule $rule)" \
    txfs -C "$where" run -- sh -c 'echo x >made && git push -f origin main'
  [ ! -e ws/made ] && [ ! -e mnt/made ] || fail "the command ran"
  # Not with --unjudged: it has no repository to push, and runs.
  status=0
  txfs -C "$where" run --unjudged --json "$PWD/report.json" -- \
    sh -c 'echo x >made && git push -f origin main' 2>"$TMPDIR/err" || status=$?
  equal 128 $status "exit code with --unjudged ($(cat "$TMPDIR/err"))"
  equal "rolled back" "$(report 'd["outcome"]')" "outcome with --unjudged"
  # What the run confines is not refused.
  txfs -C "$where" run --json "$PWD/report.json" -- rm -rf docs 2>/dev/null
  equal "committed allow undoable" \
    "$(report '" ".join((d["outcome"], d["judgement"]["verdict"], d["judgement"]["class"]))')" \
    "a removal"
  txfs -C "$where" undo >/dev/null
  # Without the sandbox, less is confined.
  refuses 4 "error: not run: " txfs -C "$where" run --no-sandbox -- rm -rf "$HOME"
  [ -d "$HOME" ] || fail "the home is gone"

  # A command that only reads.
  equal "$(cat ws/run.sh)" \
    "$(txfs -C "$where" run --direct=auto --json "$PWD/report.json" -- cat run.sh 2>"$TMPDIR/err")" \
    "what a direct command prints"
  contains "$(cat "$TMPDIR/err")" "nothing changed in"
  equal "True unchanged" "$(report 'str(d["direct"]) + " " + d["outcome"]')" "a direct run"
  status=0
  txfs -C "$where" run --direct=auto -- cat missing 2>/dev/null || status=$?
  equal 1 $status "exit code of a direct command"
  txfs -C "$where" run --direct=auto --json "$PWD/report.json" -- touch new 2>/dev/null
  equal "False committed" "$(report 'str(d["direct"]) + " " + d["outcome"]')" "one that writes"
  txfs -C "$where" undo >/dev/null
  txfs -C "$where" run --json "$PWD/report.json" -- cat run.sh >/dev/null 2>&1
  equal False "$(report 'd["direct"]')" "without --direct"
}

where=ws
judged
txfs mount ws mnt >/dev/null
where=mnt
judged
# In a run, too.
cp "$TXFS" mnt/inner
status=0
printf '#!/bin/sh\nexec ./inner run -- git push --force\n' >mnt/script
chmod 755 mnt/script
txfs -C mnt run -- ./script 2>"$TMPDIR/err" || status=$?
equal 4 $status "exit code of a run in a run ($(cat "$TMPDIR/err"))"
contains "$(cat "$TMPDIR/err")" "not run: git push --force"
txfs umount mnt >/dev/null
# A rule that is wrong: the sandbox has nothing to write to.
mkdir -p "$HOME/.config/txfs"
cat >"$HOME/.config/txfs/policy.toml" <<'END'
schema = 1
[[exec]]
id = "reads"
program = "writer"
action = "allow"
read_only = true
reason = "it reads"
suggest = "do"
END
status=0
printf '#!/bin/sh\ntouch new "$HOME/new"\n' >ws/writer
chmod 755 ws/writer
PATH=$PWD/ws:$PATH txfs -C ws run --direct=auto -- writer 2>"$TMPDIR/err" || status=$?
equal 1 $status "exit code of a command that writes ($(cat "$TMPDIR/err"))"
contains "$(cat "$TMPDIR/err")" "Read-only file system"
[ ! -e ws/new ] && [ ! -e "$HOME/new" ] || fail "a direct command has written"
# Only a mount refuses to read.
cat >"$HOME/.config/txfs/policy.toml" <<'END'
schema = 1
[[fs]]
id = "secret"
path = "run.sh"
ops = ["read"]
action = "deny"
reason = "it is secret"
suggest = "do without"
END
status=0
txfs -C ws run --direct=auto --json "$PWD/report.json" -- cat run.sh >"$TMPDIR/out" 2>/dev/null || status=$?
equal "1 False" "$status $(report 'd["direct"]')" "a file that may not be read"
[ ! -s "$TMPDIR/out" ] || fail "a direct command has read it"
rm "$HOME/.config/txfs/policy.toml"
# Without a parser no text is judged: it does not run, and a hook asks. A command
# that is no text needs none.
if [ "$(id -u)" -eq 0 ]; then
  cp "$TXFS" ws/inner
  call='{"tool_name": "Bash", "tool_input": {"command": "git status"}}'
  printf '#!/bin/sh\nprintf "%%s" '"'$call'"' | ./inner hook claude-code\n' >ws/ask
  chmod 755 ws/ask
  shfmt=$(command -v shfmt)
  contains "$(txfs -C ws run -- ./ask 2>/dev/null)" '"permissionDecision":"allow"'
  mount --bind /dev/null "$shfmt"
  refuses_with_hint 125 "error: shfmt, which parses shell text, is not installed" \
    txfs -C ws run -- sh -c 'touch made'
  [ ! -e ws/made ] || fail "a text that was not judged has run"
  txfs -C ws run -- touch made 2>/dev/null
  [ -e ws/made ] || fail "a command without text did not run"
  txfs -C ws run --unjudged -- sh -c 'rm made' 2>/dev/null
  answer=$(txfs -C ws run -- ./ask 2>/dev/null)
  contains "$answer" '"permissionDecision":"ask"'
  contains "$answer" "apt install shfmt"
  umount "$shfmt"
  # One that does not work is as none.
  printf '#!/bin/sh\necho broken >&2; exit 1\n' >broken
  chmod 755 broken
  mount --bind broken "$shfmt"
  refuses_with_hint 125 "shfmt does not work: broken" txfs -C ws run -- sh -c true
  umount "$shfmt"
fi
# One that cannot begin has a report, too.
refuses 125 "" txfs -C ws run --json "$PWD/report.json" --name 'no/name' -- true
equal "not begun 125" "$(report 'd["outcome"] + " " + str(d["exit_code"])')" "report of no run"
