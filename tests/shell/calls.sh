#!/bin/sh
# The calls of an agent: marked, listed, compared, gone back to and reverted.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs python3
make_workspace
mkdir mnt
txfs mount ws mnt
work() { txfs -C mnt "$@"; }
mark() {
  id=$1
  shift
  work savepoint --call "$id" --host claude-code --session s1 --tool Bash "$@"
}

equal "" "$(work log --calls 2>err)" "no calls"
contains "$(cat err)" "no calls"
equal "call 1" "$(mark toolu_01a -- 'make
all')" "first mark"
echo one >mnt/one
echo more >>mnt/docs/README
equal "call 2" "$(mark toolu_01b -- rm "a b")" "second mark"
echo two >mnt/two
mark toolu_02 >/dev/null
equal "no such call runs" "$(work savepoint --call toolu_02 --end)" "the end of another host's"
equal "call 3 has ended" "$(work savepoint --call toolu_02 --end --host claude-code --session s1)" end
echo outside >mnt/outside

# The list, the log and the status.
work log --calls --json >calls
python3 - calls <<'EOF'
import json, sys
calls = [json.loads(line) for line in open(sys.argv[1])]
assert [c["number"] for c in calls] == [1, 2, 3], calls
assert [c["changes"] for c in calls] == [2, 1, 0], calls
assert calls[0]["command"] == "make\nall" and calls[0]["tool"] == "Bash", calls
assert calls[1]["command"] == "rm 'a b'", calls
assert calls[1]["call"] == "toolu_01b" and calls[1]["agent"] is None, calls
assert calls[0]["savepoint"] == "call-1" and not calls[0]["gone"], calls
assert calls[0]["ended"] is None and calls[2]["ended"], calls
EOF
line=$(work log --calls | head -n 1)
contains "$line" "claude-code  Bash  make..."
contains "$line" "2 changes"
log=$(work log)
contains "$log" "call 1  claude-code  Bash  make..."
contains "$log" "outside of calls"
equal 2 "$(work log --json --path two | python3 -c 'import json, sys
print({json.loads(line)["call"] for line in sys.stdin}.pop())')" "call of an operation"
contains "$(work status)" "calls        3"
equal "0 3" "$(work status --json | python3 -c 'import json, sys
d = json.load(sys.stdin); print(len(d["savepoints"]), d["calls"])')" "savepoints that are not calls"

# What one call changed.
equal "M	docs/README
A	one" "$(work diff --call 1 --name-status)" "diff of a call"
equal "A	two" "$(work diff --call toolu_01b --name-status)" "diff by id"
contains "$(work diff --call 1)" "+more"
echo again >>mnt/docs/README
! work diff --call 1 | grep -q again || fail "diff of a call shows later changes"
refuses_with_hint 1 'several calls' work diff --call toolu_01
refuses_with_hint 1 'no call "nonsense"' work diff --call nonsense
refuses 2 "exclude each other" work diff --call 1 --since call-1

# Built on: a list, exit code 3, and nothing changes.
refuses_with_hint 3 "built on call 1" work revert --call 1
contains "$(cat "$TMPDIR/err")" "docs/README: changed later, outside of calls"
[ -e mnt/one ] || fail "a refused revert changed something"
status=0
work revert --call 1 --json >report 2>/dev/null || status=$?
equal 3 "$status" "exit code with --json"
equal "[['docs/README', 'changed later', []]]" "$(json \
  '[[b["path"], b["reason"], b["calls"]] for b in d["built_on"]]' <report)" "built on, as JSON"

# Reverted, and brought back.
contains "$(work revert --call 2)" "reverted call 2: 1 change"
[ ! -e mnt/two ] || fail "a revert left a file"
equal outside "$(cat mnt/outside)" "what is not of the call"
contains "$(work log --calls)" "txfs  revert  txfs revert --call 2  1 change"
contains "$(work log --op revert)" call-2
work rollback --call 4 >/dev/null
equal two "$(cat mnt/two)" "after the rollback of the revert"

# Back to before a call.
contains "$(work rollback --call toolu_01b)" "rolled back to call-2"
[ ! -e mnt/two ] && [ ! -e mnt/outside ] || fail "rollback left a file"
equal one "$(cat mnt/one)" "what was before the call"
contains "$(work log --calls | tail -n 1)" gone
refuses_with_hint 1 "no mark any more" work revert --call toolu_02
echo between >mnt/between
equal "" "$(work diff --call 2)" "a call that was rolled back changes nothing"
refuses_with_hint 1 "no savepoint" work rollback

# The later calls have names. One that was rolled back is not among them.
mark one >/dev/null
mkdir mnt/dir
echo x >mnt/dir/x
mark two >/dev/null
echo y >>mnt/dir/x
work rollback --call two >/dev/null
mark three --agent reviewer >/dev/null
echo y >mnt/dir/y
work savepoint --call four --host claude-code --session s2-2 >/dev/null
chmod 600 mnt/dir/x
work savepoint --call five --host claude-code --session s2-1 >/dev/null
mv mnt/dir/x mnt/dir/z
refuses_with_hint 3 "built on call" work revert --call one
list=$(cat "$TMPDIR/err")
calls=$(work log --calls --json | python3 -c 'import json, sys
print(*(c["number"] for c in map(json.loads, sys.stdin) if c["call"] in ("three", "four", "five") and not c["gone"]))')
set -- $calls
contains "$list" "dir: has later entries, by call $1, $3"
contains "$list" "dir/y: changed later in a directory of the call, by call $1"
contains "$list" "dir/x: changed later, by call $3"
contains "$list" "dir/z: changed later in a directory of the call, by call $2, $3"
contains "$list" "hint: revert calls $3, $2, $1 first, in this order, or go back"
list=$(work log --calls)
contains "$list" "claude-code  session s2-1"
contains "$list" "claude-code  session s2-2"
contains "$list" "claude-code  session s1  agent revi  Bash"
for call in $3 $2 $1 one; do
  work revert --call "$call" >/dev/null
done
[ ! -e mnt/dir ] || fail "the calls are not reverted"

# Names of calls are theirs.
refuses_with_hint 2 "those of calls" work savepoint call-9
refuses_with_hint 2 "only a call has a command" work savepoint -- make

# Hostile ids and commands.
mark "$(printf 'x\033[31m\nid')" -- "$(printf 'echo \033[31m\001'; head -c 100000 /dev/zero | tr '\0' y)" >/dev/null
work log --calls >calls
equal "" "$(tr -d '[:print:]\n' <calls)" "control characters in the list"
equal 1024 "$(work log --calls --json | tail -n 1 | json 'len(d["command"])')" "length of the command"

# What a later call removed has the names that it had.
mark tree >/dev/null
mkdir -p mnt/web/css
echo a >mnt/web/css/a.css
mark gone >/dev/null
rm -r mnt/web
refuses_with_hint 3 "built on call" work revert --call tree
list=$(cat "$TMPDIR/err")
for path in web web/css web/css/a.css; do
  echo "$list" | grep -q "^$path: changed later, by call" || fail "no $path in: $list"
done
! echo "$list" | grep inode || fail "a path is an inode number"

# After a crash and without a mount.
pid=$(work status --json | json 'd["pid"]')
kill -9 "$pid"
txfs mount ws mnt 2>/dev/null
mark last >/dev/null
echo last >mnt/last
txfs umount mnt
contains "$(txfs -C ws revert --call last)" "reverted call"
txfs mount ws mnt
[ ! -e mnt/last ] || fail "a revert without a mount left a file"

# A commit of a part, and of all, ends them.
work commit one >/dev/null
contains "$(work log --calls | head -n 1)" gone
work commit >/dev/null
equal "" "$(work log --calls 2>/dev/null)" "calls of the next transaction"
work fsck >/dev/null
txfs umount mnt
