#!/bin/sh
# txfs run: whoever is killed, the workspace is as before or as after, and
# nothing is left.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs bwrap
needs_fuse
needs_root
alone
mkdir ws mnt
echo old >ws/file

supervisor=''
tear_down() {
  kill -9 $supervisor 2>/dev/null || :
  pkill -9 -f "^sleep 600.$$" || :
}
trap tear_down EXIT
trap 'exit 143' TERM INT

# await WHAT COMMAND...: until the command succeeds.
await() {
  what=$1
  shift
  tries=0
  until "$@" >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 3000 ] || fail "$what did not happen"
    sleep 0.01
  done
}
no_command_is_left() { ! pgrep -f "^sleep 600.$$"; }
no_run_is_left() {
  ! grep "^txfs-home:$HOME \|^$TMPDIR" /proc/mounts &&
    [ -z "$(ls -A "$XDG_STATE_HOME/txfs/runs")" ]
}
# start OPTION...: a run that has changed the file and goes on.
start() {
  rm -f started
  setsid txfs "$@" -- sh -c "echo torn >file; mkfifo -m 666 fifo; echo marker-$$ >started
    exec sleep 600.$$" >out 2>err &
  supervisor=$!
  await "the start of the command" pgrep -f "^sleep 600.$$"
}
# ended: nothing is left, and the workspace is as before.
ended() {
  await "the end of the processes of $1" no_command_is_left
  await "the end of everything of $1" no_run_is_left
  equal old "$(cat ws/file)" "content after $1"
  [ ! -e ws/started ] || fail "$1 left a file in the workspace"
}

# A transaction and a mount of its own.
start -C ws run
kill -9 $supervisor
ended "a killed supervisor"
[ -z "$(txfs -C ws list | grep active)" ] || fail "a transaction is left: $(txfs -C ws list)"

start -C ws run --json "$TMPDIR/report"
pkill -9 -f "bwrap.*600.$$"
status=0
wait $supervisor || status=$?
equal 137 $status "exit code after a killed bwrap"
contains "$(cat err)" "rolled back"
equal "137 rolled back exit 137" "$(json 'str(d["exit_code"]) + " " + d["outcome"] + " " + d["why"]' <"$TMPDIR/report")" \
  "the report after a killed bwrap"
ended "a killed bwrap"

start -C ws run
pkill -9 -f "^sleep 600.$$"
status=0
wait $supervisor || status=$?
equal 137 $status "exit code after a killed command"
ended "a killed command"

start -C ws run
kill -TERM $supervisor
status=0
wait $supervisor || status=$?
equal 143 $status "exit code after SIGTERM"
ended "a supervisor that was told to end"

# While bwrap makes the sandbox: what it has started by then is ended, too.
real=$(command -v bwrap)
mkdir slow
cat >slow/bwrap <<END
#!/bin/sh
sleep 600.$$ &
echo >$PWD/begun
wait
exec $real "\$@"
END
chmod 755 slow/bwrap
for signal in KILL TERM; do
  rm -f begun
  PATH=$PWD/slow:$PATH setsid txfs -C ws run -- sh -c 'echo torn >file' >out 2>err &
  supervisor=$!
  await "the start of bwrap" test -e begun
  kill -$signal $supervisor
  status=0
  wait $supervisor || status=$?
  [ $signal = KILL ] || equal 143 $status "exit code after SIGTERM while bwrap starts"
  ended "SIG$signal for a supervisor while bwrap starts"
done

# In a mount that had a change before.
txfs mount ws mnt >/dev/null
echo before >mnt/earlier
start -C mnt run
kill -9 $supervisor
await "the end of the processes" no_command_is_left
await "the rollback" sh -c '[ "$(cat mnt/file)" = old ] && [ ! -e mnt/started ]'
equal before "$(cat mnt/earlier)" "what was there before"
# The mount is free for another run.
equal "" "$(txfs -C mnt run -- true 2>/dev/null)" "output"
equal before "$(cat mnt/earlier)" "what was there before"
txfs umount mnt >/dev/null
ended "a killed supervisor in a mount"

# settled: a run that lost a daemon says so and is rolled back.
settled() {
  status=0
  wait $supervisor || status=$?
  equal 125 $status "exit code after $1 ($(cat err))"
  contains "$(cat err)" "error: a process that serves a mount of the run has died"
  contains "$(cat err)" "hint: "
  contains "$(cat err)" "rolled back: txfs failed"
  equal "125 rolled back txfs failed" "$(json 'str(d["exit_code"]) + " " + d["outcome"] + " " + d["why"]' <"$TMPDIR/report")" \
    "the report after $1"
  ended "$1"
  [ -z "$(txfs -C ws list | grep " active .* run-")" ] || fail "a transaction is left after $1: $(txfs -C ws list)"
}
daemon_of_workspace() { txfs -C ws list --json | json '[t["pid"] for t in d if t["pid"]][0]'; }
# daemons: those of the run: children of the supervisor that lead a session.
daemons() {
  for pid in $(pgrep -P $supervisor); do
    [ "$(ps -o sid= -p "$pid" | tr -d ' ')" != "$pid" ] || echo "$pid"
  done
}

# The daemon of the home alone, which has changes and something to keep.
mkdir "$HOME/kept"
echo old >"$HOME/kept/file"
start -C ws run --json "$TMPDIR/report" --rw "$HOME/kept"
home=$(daemons | grep -vx "$(daemon_of_workspace)")
equal 1 "$(echo "$home" | wc -w)" "daemons of the home"
grep -q "^txfs-home:$HOME " /proc/mounts || fail "the home has no mount"
kill -9 "$home"
settled "a killed daemon of the home"
equal old "$(cat "$HOME/kept/file")" "a kept file after a killed daemon of the home"
# In a mount that stays, what was there before stays.
txfs mount ws mnt >/dev/null
echo before >mnt/earlier
start -C mnt run
home=$(daemons)
equal 1 "$(echo "$home" | wc -w)" "daemons of the home"
kill -9 "$home"
status=0
wait $supervisor || status=$?
equal 125 $status "exit code in a mount after a killed daemon of the home"
equal "old before" "$(cat mnt/file mnt/earlier | xargs)" "the mount after a killed daemon of the home"
[ ! -e mnt/started ] || fail "a change of the run is left in the mount"
txfs -C mnt discard >/dev/null
txfs umount mnt >/dev/null
ended "a killed daemon of the home of a run in a mount"

# The daemon of the workspace alone, then both.
start -C ws run --json "$TMPDIR/report"
kill -9 "$(daemon_of_workspace)"
settled "a killed daemon of the workspace"

start -C ws run --json "$TMPDIR/report"
both=$(daemons)
equal 2 "$(echo "$both" | wc -w)" "daemons of a run"
# shellcheck disable=SC2086 # words
kill -9 $both
settled "killed daemons"
