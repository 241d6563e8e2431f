#!/bin/sh
# txfs run in a run: a savepoint of the outer run, one in the other.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs bwrap
needs_fuse
alone
mkdir -p ws/bin
cp "$TXFS" ws/bin/txfs # where the sandbox has it
cd ws
PATH=$PWD/bin:$PATH

# run CODE PART OPTION...: the exit code, and a part of what is on stderr.
run() {
  code=$1 part=$2
  shift 2
  status=0
  timeout -k 5 60 txfs run "$@" >"$TMPDIR/out" 2>"$TMPDIR/err" || status=$?
  equal "$code" "$status" "exit code of: txfs run $* ($(cat "$TMPDIR/err"))"
  contains "$(cat "$TMPDIR/err")" "$part"
}

# What an inner run that fails wrote is gone; the rest is the outer run's.
run 0 "committed 2 changes" -- sh -c '
  echo 1 >first
  txfs run -- sh -c "echo 2 >second"
  txfs run -- sh -c "echo 3 >third; rm first; exit 4" || [ $? = 4 ]'
equal "1 2" "$(cat first second | xargs)" "content"
[ ! -e third ] || fail "the inner run was not rolled back"
run 1 "rolled back: exit 1" -- sh -c 'txfs run -- sh -c "echo 3 >third"; exit 1'
[ ! -e third ] || fail "the outer run was not rolled back"

# Outside of the workspace, too.
run 0 "committed 1 change" -- sh -c "cd /tmp && txfs run -- touch '$PWD/from_tmp'"
[ -e from_tmp ] || fail "a run in a run, in /tmp, has no effect"
run 1 "this is in \`txfs run\`" -- txfs list

# One in another one in another one.
run 0 "committed 2 changes" -- txfs run -- sh -c '
  echo a >a
  txfs run -- sh -c "echo b >b; txfs run -- sh -c \"echo c >c\"; exit 1" || echo d >d'
equal "a d" "$(find . -name "[a-d]" -printf "%f\n" | sort | xargs)" "files"

# A second one that is not in the first does not begin: the savepoint of the first
# would take its changes back, or end it.
run 0 "committed 1 change" -- sh -c '
  txfs run -- sh -c "echo >begun; sleep 1; exit 1" 2>/dev/null &
  while [ ! -e begun ]; do sleep 0.05; done
  status=0
  txfs run -- sh -c "echo B >B" || status=$?
  wait
  txfs run -- sh -c "echo $status >code"'
equal 125 "$(cat code)" "exit code of the second"
contains "$(cat "$TMPDIR/err")" "another run in the run around this command has not ended"
[ ! -e B ] || fail "the second one began"

# One that is killed goes back, also if it is the outer one of two.
run 0 "a run in this run was stopped" -- sh -c '
  txfs run -- sh -c "echo >begun; txfs run -- sh -c \"echo half >half; sleep 60\"" &
  while [ ! -e half ]; do sleep 0.05; done
  kill -9 $!
  while [ -e half ]; do sleep 0.05; done
  [ ! -e begun ]
  txfs run -- sh -c "echo next >next"'
[ ! -e half ] || fail "the half work was committed"
equal next "$(cat next)" "the run after the one that was killed"

# One that has not ended when the command ends goes back, too.
run 0 "a run in this run was stopped" -- sh -c '
  txfs run -- sh -c "echo half >half; sleep 60" &
  while [ ! -e half ]; do sleep 0.05; done'
[ ! -e half ] || fail "the half work was committed"

# Validators: what they write goes, and a run in a validator is possible.
run 0 "committed 1 change" -- sh -c 'txfs run --validate "rm v; echo junk >junk" -- sh -c "echo v >v"'
equal v "$(cat v)" "what was validated"
[ ! -e junk ] || fail "what a validator in a run in a run wrote was committed"
run 0 noise -- txfs run --validate "echo noise" -- echo out
equal out "$(cat "$TMPDIR/out")" "stdout"
run 5 "rolled back" -- txfs run --validate "exit 3" -- sh -c 'echo no >v'
run 0 "committed 1 change" --validate 'txfs run -- sh -c "echo junk >junk"' \
  --validate 'txfs run -- sh -c "exit 3" || [ $? = 3 ]' -- sh -c 'echo w >v'
equal w "$(cat v)" "what was validated"
[ ! -e junk ] || fail "what a run in a validator wrote was committed"

# Without a sandbox.
run 0 "committed 1 change" --no-sandbox -- sh -c 'echo x >v; txfs run -- sh -c "echo y >v; exit 1" || :'
equal x "$(cat v)" "content without a sandbox"

# What an inner run cannot give is refused before the command runs; the rest works.
for option in "--network none" "--network example.org" "--hide /usr/share" "--memory 1G" "--pids 50" "--disk 1G" \
  "--files 9" "--cpu-time 1m" "--home ro" "--home cow" "--strict" "--no-nested" "--name other"; do
  run 125 "${option%% *} has no effect for a run in a run" -- sh -c "txfs run $option -- sh -c 'echo no >v'"
done
run 124 "rolled back: timeout" -- txfs run --timeout 300ms -- sleep 600
run 3 "rolled back" --on-failure commit -- sh -c '
  txfs run --json report --env WORD=word -- sh -c "echo \$WORD; exit 3"'
equal word "$(cat "$TMPDIR/out")" "a variable that was set"
equal "rolled back exit 3 3" "$(json '" ".join([d["outcome"], d["why"], str(d["exit_code"])])' <report)" "report"
