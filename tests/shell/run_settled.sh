#!/bin/sh
# txfs run: the outcome and the exit code say what became of the transaction,
# also if the daemon dies while it commits.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs bwrap
alone
mkdir ws mnt
files=2000

# killed DIR SIGN: a run in DIR whose daemon is killed as soon as SIGN holds.
killed() {
  rm -rf ws/new begun go
  mkfifo begun go
  txfs -C "$1" run --json "$TMPDIR/report" --rw "$PWD/begun" --rw "$PWD/go" -- sh -c \
    "mkdir new; i=0; while [ \$i -lt $files ]; do i=\$((i + 1)); echo \$i >new/\$i; done
    echo >$PWD/begun; cat $PWD/go" >"$TMPDIR/out" 2>"$TMPDIR/err" &
  supervisor=$!
  cat begun >/dev/null
  daemon=$(txfs -C ws list --json | json '[t["pid"] for t in d if t["pid"]][0]')
  echo >go
  until $2; do
    kill -0 $supervisor 2>/dev/null || fail "the run ended before: $(cat "$TMPDIR/err")"
  done
  kill -9 "$daemon"
  status=0
  wait $supervisor || status=$?
  equal "$status" "$(json 'd["exit_code"]' <"$TMPDIR/report")" "exit code in the report"
}
outcome() { json 'd["outcome"]' <"$TMPDIR/report"; }
# committed WHERE: the base, the exit code, the report and the record say so.
committed() {
  [ -e ws/new/$files ] || fail "the base is torn $1: $(find ws/new | wc -l) files; $(cat "$TMPDIR/err")"
  equal 0 $status "exit code $1 ($(cat "$TMPDIR/err"))"
  equal committed "$(outcome)" "outcome $1"
  contains "$(cat "$TMPDIR/err")" "warning: the daemon of the workspace died"
  contains "$(tail -n 1 "$TMPDIR/err")" "committed $((files + 1)) changes"
  contains "$(txfs -C ws list)" "(committed)"
}
is_applied() { [ -e ws/new ]; }
is_late() { sleep 0.3; }

# A transaction and a mount of its own.
killed ws is_applied
committed "in a mount of its own"
[ -z "$(txfs -C ws list | grep active || true)" ] || fail "a transaction is left: $(txfs -C ws list)"
! grep "^$PWD" /proc/mounts || fail "a mount is left"

# A part of a transaction.
txfs mount ws mnt >/dev/null
echo before >mnt/earlier
killed mnt is_applied
committed "in a mount"
[ ! -e ws/earlier ] || fail "a change from before the run was committed"
txfs mount ws mnt >/dev/null 2>&1
equal before "$(cat mnt/earlier)" "what was there before"

# Before the commit.
killed mnt true
equal 125 $status "exit code without a commit"
equal "rolled back" "$(outcome)" "outcome without a commit"
contains "$(cat "$TMPDIR/err")" "rolled back: txfs failed"
[ ! -e ws/new ] || fail "the base has changes of a run without a commit"
txfs mount ws mnt >/dev/null 2>&1
[ ! -e mnt/new ] || fail "the transaction has changes of a run without a commit"
equal before "$(cat mnt/earlier)" "what was there before"
txfs -C mnt discard >/dev/null

# The same in a mount over the workspace itself.
txfs umount mnt >/dev/null
for sign in true is_late; do
  rm -rf ws/new
  txfs mount ws ws >/dev/null 2>&1
  echo before >ws/earlier
  killed ws $sign
  txfs umount ws >/dev/null 2>&1 || :
  [ ! -e ws/earlier ] || fail "a change from before the run was committed"
  case $status in
    0) [ -e ws/new/$files ] || fail "the base is torn: $(find ws/new | wc -l) files" ;;
    125) [ ! -e ws/new ] && equal "rolled back" "$(outcome)" "outcome in a mount over the workspace" ;;
    *) fail "exit code $status" ;;
  esac
  txfs mount ws ws >/dev/null 2>&1
  equal before "$(cat ws/earlier)" "what was there before"
  [ $status -eq 0 ] || [ ! -e ws/new ] || fail "the transaction has changes of a run without a commit"
  txfs -C ws discard >/dev/null
  txfs umount ws >/dev/null
done
txfs mount ws mnt >/dev/null

# The exit code is that of the transaction, though the report cannot be written.
status=0
txfs -C mnt run --json /dev/full -- sh -c 'echo q >q' >"$TMPDIR/out" 2>"$TMPDIR/err" || status=$?
equal 0 $status "exit code with a full report"
equal q "$(cat ws/q)" "what was committed"
contains "$(cat "$TMPDIR/err")" "warning: cannot write the report /dev/full"
status=0
txfs -C mnt run --json /dev/full -- sh -c 'echo r >r; exit 7' >"$TMPDIR/out" 2>"$TMPDIR/err" || status=$?
equal 7 $status "exit code of a failure with a full report"
txfs umount mnt >/dev/null

# What the report has of limits and phases.
status=0
txfs -C ws run --json "$TMPDIR/report" --timeout 1m --files 10 --validate true -- touch made 2>/dev/null || status=$?
equal 0 $status "exit code with limits"
equal "{'timeout_milliseconds': 60000, 'files': 10}" "$(json 'd["limits"]' <"$TMPDIR/report")" "limits"
equal "['begin', 'run', 'validate', 'home', 'commit']" "$(json 'list(d["milliseconds"])' <"$TMPDIR/report")" "phases"
txfs -C ws run --json "$TMPDIR/report" --home ro -- true 2>/dev/null
equal "{} ['begin', 'run', 'settle']" "$(json 'str(d["limits"]) + " " + str(list(d["milliseconds"]))' <"$TMPDIR/report")" "phases"

# What is kept of a run that fails is said.
status=0
txfs -C ws run --rw "$HOME/kept" -- sh -c 'mkdir ~/kept; echo it >~/kept/it; exit 3' 2>"$TMPDIR/err" || status=$?
equal 3 $status "exit code"
contains "$(cat "$TMPDIR/err")" "note: kept under ~: 2 paths: ~/kept, ~/kept/it"
txfs -C ws run --rw "$HOME/kept" -- sh -c 'echo more >~/kept/it' 2>"$TMPDIR/err"
! grep "kept under" "$TMPDIR/err" || fail "a run that succeeds says what it kept"
