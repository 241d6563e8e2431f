#!/bin/sh
# What denials leave behind: counted, bounded, with texts, and safe to look at.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs python3

mkdir -p ws/kept ws/free mnt
echo old >ws/kept/file
echo SECRET=1 >ws/.env
cat >policy.toml <<'END_OF_RULES'
schema = 1

[[fs]]
id = "kept"
path = "kept/"
reason = "it is to stay as it is"
suggest = "write to free/"

[[fs]]
id = "secrets"
path = ".env"
errno = "EROFS"
reason = "secrets are not for agents"
suggest = "write to .env.example"
END_OF_RULES

txfs mount --no-default-policy ws mnt --policy policy.toml
id=$(txfs -C mnt status --json | json 'd["id"]')

# Nothing is said where nothing was refused.
equal "" "$(txfs -C mnt log --denied 2>&1)" "an empty log"
equal "nothing was refused at kept or below" "$(txfs -C mnt why kept 2>&1)" why
equal "[]" "$(txfs -C mnt status --json | json 'd["denied"]')" status
case $(txfs -C mnt status) in *refused*) fail "status speaks of refusals" ;; esac
case $(txfs -C mnt list) in *refused*) fail "list speaks of refusals" ;; esac

# attempt N: N times the same by processes of their own.
attempt() {
  for _ in $(seq "$1"); do
    (cd mnt && rm -f kept/file 2>/dev/null) && fail "rm was not refused"
  done
  return 0
}
attempt 3
log=$(txfs -C mnt log --denied)
equal 1 "$(printf '%s\n' "$log" | grep -c ' by kept')" "entries of the same"
contains "$log" "unlink  kept/file  EPERM by kept, 3 times since "
contains "$log" "    reason: it is to stay as it is"
contains "$log" "    instead: write to free/"
contains "$(txfs -C mnt log)" "unlink  kept/file  EPERM by kept, 3 times since "
equal "3 kept rm EPERM unlink kept/file" "$(txfs -C mnt log --denied --json | json \
  '" ".join([str(d["count"]), d["rule"], d["exe"].split("/")[-1], d["result"], d["op"], d["path"]])')" json
equal "it is to stay as it is|write to free/" "$(txfs -C mnt log --denied --json |
  json 'd["reason"] + "|" + d["suggest"]')" texts

# Why, from inside and outside, of it and of what is above.
contains "$(cd mnt/kept && txfs why file)" "EPERM by kept, 3 times"
contains "$(txfs why ws/kept)" "EPERM by kept, 3 times"
contains "$(cd mnt && txfs why .)" "instead: write to free/"
equal "nothing was refused at free or below" "$(cd mnt && txfs why free)" "why of another"
equal "1 kept/file" "$(cd mnt && txfs why --json kept | json \
  '"%d %s" % (len(d["denials"]), d["denials"][0]["path"])')" "why --json"
refuses_with_hint 2 "why takes one path" txfs -C mnt why
refuses_with_hint 2 "why takes one path" txfs -C mnt why a b

# Names are the agent's: no line, no escape sequence of theirs is printed.
python3 - <<'END_OF_NAMES'
import os
for name in (b"a\n2026  1 rm  uid 0  unlink  x  ok", b"b\x1b[2J\x9b", b"c\xff", b"d\xc2\x9b",
             "e\u202Etxt.\u2066\u200B\U000E0041".encode()):
    try:
        os.mkdir(b"mnt/kept/" + name)
        raise SystemExit("mkdir was not refused")
    except PermissionError:
        pass
END_OF_NAMES
log=$(txfs -C mnt log --denied)
equal 6 "$(printf '%s\n' "$log" | grep -c '^20.* by kept')" lines
contains "$log" 'kept/a\n2026'
contains "$log" 'kept/b\033[2J\233'
contains "$log" 'kept/c\377'
contains "$log" 'kept/d\302\233'
contains "$log" 'kept/e\342\200\256txt.\342\201\246\342\200\213\363\240\201\201'
# In whatever tells of them, to people, programs and the agent itself.
{
  printf '%s\n' "$log"
  txfs -C mnt log --denied --json
  txfs -C mnt log
  txfs -C mnt why kept
  txfs -C mnt why --json kept
  txfs -C mnt status
  cat mnt/.txfs/policy.md mnt/.txfs/status.json mnt/.txfs/last_denial.json mnt/.txfs/denials.jsonl
} >"$TMPDIR/told"
python3 - "$TMPDIR/told" <<'END_OF_CHECK'
import sys, unicodedata
text = open(sys.argv[1], "rb").read().decode()
hidden = {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")} - {"\n"}
if hidden: raise SystemExit("came through: %r" % hidden)
END_OF_CHECK
equal "kept/c� a2VwdC9j/w==" "$(cd mnt && txfs log --denied --json | python3 -c '
import json, sys
for line in sys.stdin:
    d = json.loads(line)
    if "path_bytes" in d and d["path"].startswith("kept/c"):
        print(d["path"], d["path_bytes"])')" "a name that is no UTF-8"

# A savepoint goes back, and what was refused was refused.
txfs -C mnt savepoint before
echo new >mnt/free/file
attempt 1
txfs -C mnt rollback before
contains "$(txfs -C mnt log --denied)" "unlink  kept/file  EPERM by kept, 4 times"

# A flood of different ones is counted, and what came last is kept. The table
# does not grow with it.
flood() {
  (cd mnt && python3 -c "
import os
for i in range($1, $2):
    try:
        os.mkdir('kept/%d' % i)
        raise SystemExit('mkdir was not refused')
    except PermissionError: pass")
}
flood 0 5000
txfs -C mnt savepoint middle
tables=$(store_of ws)/txn/$id/db/data.mdb
size=$(stat -c %b "$tables")
flood 5000 15000
equal 1000 "$(txfs -C mnt log --denied --json 2>"$TMPDIR/err" | wc -l)" "denials that are kept"
grep -q '^note: 14006 older refused operations are not listed' "$TMPDIR/err" ||
  fail "not said: $(cat "$TMPDIR/err")"
contains "$(txfs -C mnt log --denied -n 1 2>/dev/null)" "mkdir  kept/14999  EPERM by kept"
contains "$(txfs why mnt/kept/14500 2>/dev/null)" "mkdir  kept/14500  EPERM by kept"
contains "$(txfs why mnt/kept/13 2>&1)" "14006 older refused operations are not listed"
equal "kept 15009" "$(txfs -C mnt status --json |
  json '"%s %d" % (d["denied"][0]["rule"], d["denied"][0]["count"])')" "count by rule"
grown=$(($(stat -c %b "$tables") - size))
[ "$grown" -le 2048 ] || fail "the tables grew by $grown blocks"
txfs -C mnt fsck

# They survive the daemon's death as the log does, with the texts of the rules
# that refused them, whatever the policy says by now.
(cd mnt && { echo x >.env; } 2>/dev/null) && fail ".env was written"
daemon=$(txfs -C mnt status --json | json 'd["pid"]')
kill -KILL "$daemon"
ended "$daemon" || fail "the daemon does not end"
txfs umount mnt
sed 's/secrets are not/changed/' policy.toml >changed.toml
txfs -C ws fsck
equal "kept 15009 secrets 1" "$(txfs -C ws status --json | json \
  '" ".join("%s %d" % (r["rule"], r["count"]) for r in d["denied"])')" "after kill -9"
txfs mount --no-default-policy ws mnt --policy changed.toml
contains "$(txfs why mnt/.env 2>/dev/null)" "reason: secrets are not for agents"
equal 1000 "$(txfs -C mnt log --denied --json 2>/dev/null | wc -l)" "denials after kill -9"

# Who looks at the transaction is told.
status=$(txfs -C mnt status)
contains "$status" "refused      15010 operations by kept (15009), secrets (1)"
contains "$status" "txfs log --denied"
contains "$(txfs -C ws list)" ", 15010 refused"
txfs -C mnt commit 2>"$TMPDIR/err"
grep -q "^note: the policy refused 15010 operations by kept (15009), secrets (1); .txfs log --denied. shows them" "$TMPDIR/err" ||
  fail "an empty commit says: $(cat "$TMPDIR/err")"
echo new >mnt/free/file
equal committed "$(txfs -C mnt commit --json 2>"$TMPDIR/err" | json 'd["state"]')" commit
equal "" "$(cat "$TMPDIR/err")" "stderr of --json"
contains "$(txfs -C ws show "$id")" "refused      15010 operations by kept (15009), secrets (1)"
equal 15009 "$(txfs -C ws show "$id" --json | json 'd["denied"][0]["count"]')" "show --json"
contains "$(txfs -C ws list)" "1 change, 15010 refused"

# The next one is another.
equal "[]" "$(txfs -C mnt status --json | json 'd["denied"]')" "the next transaction"
equal "" "$(txfs -C mnt log --denied 2>&1)" "its log"
attempt 1
echo more >mnt/free/file
txfs -C mnt commit 2>"$TMPDIR/err" >"$TMPDIR/out"
grep -q '^note: the policy refused 1 operation by kept; .txfs show [0-9a-f]*. shows the counts' "$TMPDIR/err" ||
  fail "a commit says: $(cat "$TMPDIR/err")"
attempt 2
txfs -C mnt discard
contains "$(txfs -C ws list)" ", 2 refused"

# A flood by one rule takes nothing away that another one refused.
(cd mnt && { echo x >.env; } 2>/dev/null) && fail ".env was written"
flood 0 3000
contains "$(txfs why mnt/.env 2>/dev/null)" "reason: changed for agents"
contains "$(txfs -C mnt log --denied 2>/dev/null)" "mkdir  kept/0  EPERM by kept"
contains "$(txfs -C mnt log --denied 2>/dev/null)" "mkdir  kept/2999  EPERM by kept"
txfs -C mnt fsck
txfs umount mnt
