#!/bin/sh
# txfs run: outcomes, exit codes and the report, as root and as an ordinary user.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs bwrap python3 setpriv unshare
needs_fuse
alone
if [ "$(id -u)" -eq 0 ] && [ -z "${AS_USER-}" ]; then
  AS_ROOT=1
else
  AS_ROOT=
fi

# has_left: nothing of a run is left.
has_left() {
  ! grep "^txfs-home:$HOME \|^$TMPDIR" /proc/mounts || fail "mounts are left"
  [ -z "$(ls -A "$XDG_STATE_HOME/txfs/runs")" ] || fail "a store of a home is left"
}

# run CODE OUTCOME OPTION...: the exit code, and a part of the last lines on stderr.
run() {
  code=$1 outcome=$2
  shift 2
  status=0
  txfs run "$@" >"$TMPDIR/out" 2>"$TMPDIR/err" || status=$?
  equal "$code" "$status" "exit code of: txfs run $* ($(cat "$TMPDIR/err"))"
  contains "$(cat "$TMPDIR/err")" "$outcome"
}

outcomes() {
  rm -rf ws
  mkdir ws
  echo old >ws/file
  cd ws
  run 0 "committed 2 changes in" -- sh -c 'echo new >file; mkdir dir; echo out'
  equal out "$(cat "$TMPDIR/out")" "stdout"
  equal new "$(cat file)" "committed content"
  [ -d dir ] || fail "the directory was not committed"

  run 7 "rolled back: exit 7 after" -- sh -c 'rm -r dir; echo no >file; exit 7'
  run 143 "rolled back: exit 143 after" -- sh -c 'echo no >file; kill $$'
  run 124 "rolled back: timeout after" --timeout 500ms -- sh -c 'echo no >file; exec sleep 600'
  run 124 "rolled back: timeout after" --timeout 500ms -- sh -c \
    'trap "" TERM; echo no >file; while :; do sleep 1; done'
  run 5 'rolled back: `exit 9` failed' --validate true --validate 'exit 9' -- sh -c 'echo no >file'
  run 127 "cannot run no-such-program" -- no-such-program
  run 126 "cannot run ./file" -- ./file
  run 0 "nothing changed in" -- true
  equal new "$(cat file)" "content after failures"
  [ -d dir ] || fail "a failed run changed the workspace"

  # What is validated is what is committed.
  run 0 "committed 1 change in" --validate 'grep -q valid file; echo junk >junk' -- \
    sh -c 'echo valid >file'
  equal valid "$(cat file)" "validated content"
  [ ! -e junk ] || fail "what a validator wrote was committed"

  # Standard output has what the command prints, and nothing else.
  for sandbox in "" --no-sandbox; do
    # shellcheck disable=SC2086
    equal out "$(txfs run $sandbox --validate 'echo noise' -- echo out 2>"$TMPDIR/err")" "stdout $sandbox"
    contains "$(cat "$TMPDIR/err")" noise
  done

  run 0 "kept 1 change" --keep -- sh -c 'echo kept >file'
  name=$(sed -n 's/.*`txfs -t \(run-[a-z0-9]*\) diff`.*/\1/p' "$TMPDIR/err")
  equal valid "$(cat file)" "content of a kept run"
  contains "$(txfs -t "$name" diff)" "+kept"
  txfs -t "$name" discard >/dev/null
  run 0 "rolled back" --on-success discard -- sh -c 'echo no >file'
  run 3 "committed 1 change in" --on-failure commit -- sh -c 'echo three >file; exit 3'
  equal three "$(cat file)" "committed after a failure"

  # The report.
  run 3 "rolled back" --json "$TMPDIR/report" -- sh -c 'echo no >file; exit 3'
  equal "rolled back exit 3 3 file" "$(json \
    '" ".join([d["outcome"], d["why"], str(d["exit_code"]), d["changes"][0]["path"]])' <"$TMPDIR/report")" \
    "report"

  # What was used, without limits, too.
  run 0 "nothing changed" --json "$TMPDIR/report" -- python3 -c 'sum(range(2000000))'
  equal True "$(json 'd["peak_memory"] > 1 << 20 and d["cpu_milliseconds"] > 0' <"$TMPDIR/report")" "what was used"
  # The message of the commit.
  run 0 "committed 1 change" -m "three to four" -- sh -c 'echo four >file'
  contains "$(txfs list | tail -n 1)" "three to four"
  # A conflict with the base, which is within reach without a sandbox.
  run 3 "kept 1 change: 1 path of the workspace changed" --no-sandbox --name clash --json "$TMPDIR/report" -- \
    sh -c 'echo mine >file; echo theirs >"$1"' sh "$(realpath file)"
  equal "kept ['file'] 3" "$(json '" ".join(map(str, (d["outcome"], d["conflicts"], d["exit_code"])))' \
    <"$TMPDIR/report")" "report of a conflict"
  equal theirs "$(cat file)" "content with a conflict"
  txfs -t clash discard >/dev/null
  # A commit that exceeds a limit of the policy: of the default one, on mass deletion.
  mkdir many
  seq 60 | (cd many && xargs touch)
  run 4 "kept 60 changes: the commit exceeds a limit of the policy after" --name mass --json "$TMPDIR/report" -- \
    sh -c 'rm many/*'
  contains "$(cat "$TMPDIR/err")" "it removes 60 of "
  contains "$(cat "$TMPDIR/err")" '`txfs -t mass commit --accept txfs-mass-deletion`'
  equal "kept 4 0" "$(json '" ".join(map(str, (d["outcome"], d["exit_code"], d["committed"])))' <"$TMPDIR/report")" \
    "report of a limit"
  equal 60 "$(find many -type f | wc -l)" "files in the base"
  txfs -t mass discard >/dev/null
  # One that only notes.
  mkdir .txfs
  cat >.txfs/policy.toml <<'END'
schema = 1
[[limit]]
id = "own-limit"
at = "commit"
of = "base_removed"
max = 1
action = "audit"
reason = "two are many here"
suggest = "remove one"
END
  run 0 "committed 2 changes in" -- rm many/1 many/2
  contains "$(cat "$TMPDIR/err")" "note: about this commit: "
  contains "$(cat "$TMPDIR/err")" "two are many here"
  rm -r many .txfs

  # A refused operation.
  git init -q .
  run 4 "rolled back: the policy refused 1 operation" --strict -- \
    sh -c 'echo no >file; rm .git/HEAD 2>/dev/null || true'
  run 0 "committed 1 change in" -- sh -c 'echo yes >file; rm .git/HEAD 2>/dev/null || true'

  # What the caller gives: a file as input is only read, and only what the
  # command takes of it; no directory; SIGCHLD may be ignored.
  printf 'one\ntwo\nthree\n' >../input
  run 0 "nothing changed" -- sh -c 'cat >/dev/null; echo torn >/proc/self/fd/0 || true' <../input
  equal "one two three" "$(xargs <../input)" "the caller's input"
  lines=$(while read -r line; do
    txfs run -- true 2>/dev/null
    echo "$line"
  done <../input)
  equal "one two three" "$(echo "$lines" | xargs)" "the rest of the input"
  refuses_with_hint 125 "is a directory" txfs run -- true <..
  status=0
  python3 -c 'import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execvp(sys.argv[1], sys.argv[1:])' txfs run -- sh -c 'echo no >file; exit 3' 2>"$TMPDIR/err" || status=$?
  equal 3 $status "exit code with SIGCHLD ignored"
  run 0 "committed 1 change" --no-sandbox -- sh -c 'echo plain >file'
  run 1 "rolled back" --no-sandbox -- sh -c 'echo no >file; sleep 700 & exit 1'
  ! pgrep -f "^sleep 700$" || fail "a process survived the run"
  equal plain "$(cat file)" "content without a sandbox"
  # The report is not written through a link of the command's.
  echo precious >../precious
  run 0 "committed" --json report -- sh -c 'rm -f report; ln -s ../precious report'
  equal precious "$(cat ../precious)" "a file behind a link"
  # Nothing is left of runs that changed nothing.
  equal "" "$(txfs list | grep active || true)" "open transactions"

  # Bad input: a sentence, a remedy, and nothing changed.
  for options in "" "--timeout 5x -- true" "--on-success never -- true" "--network he/re -- true"; do
    # shellcheck disable=SC2086
    refuses_with_hint 125 "" txfs run $options
  done
  refuses_with_hint 125 "" txfs -C / run -- true
  refuses_with_hint 125 "/nonexist does not exist" txfs -C /nonexist run -- true
  refuses_with_hint 125 "cannot change to" txfs -C file run -- true
  refuses_with_hint 125 "/nonexist does not exist" txfs run -C /nonexist -- true
  # What has no effect, or lets no sandbox start.
  refuses_with_hint 125 "--rw /nonexist: No such file" txfs run --rw /nonexist -- touch no
  refuses_with_hint 125 "--rw $HOME/nonexist: No such file" txfs run --home rw --rw ~/nonexist -- touch no
  # An unset variable of a script must not give up what the option is for.
  for option in --network --timeout --memory --disk --hide --rw --env --on-success --json --name; do
    refuses_with_hint 125 "$option has an empty value" txfs run $option "" -- touch no
  done
  refuses_with_hint 125 "--memory: 5x is no size" txfs run --memory 5x -- touch no
  refuses_with_hint 125 "does not name a variable" txfs run --env =1 -- touch no
  refuses_with_hint 125 "does not name a variable" txfs run --env "A B=1" -- touch no
  run 0 "warning: --hide /nonexist: nothing is there" --hide /nonexist -- true
  refuses_with_hint 125 "--timeout is 0" txfs run --timeout 0 -- touch no
  refuses_with_hint 125 "--validate has no command" txfs run --validate " " -- touch no
  refuses_with_hint 125 "--hide /" txfs run --hide / -- touch no
  # What is missing is found before there is a transaction.
  txfs list >"$TMPDIR/listed"
  mkdir "$TMPDIR/bin"
  ln -s "$(command -v fusermount3)" "$TMPDIR/bin"
  refuses_with_hint 125 "bwrap, which makes the sandbox, is not in PATH" \
    env PATH="$TMPDIR/bin" "$(command -v txfs)" run -- touch no
  ln -s "$(command -v tinyproxy || echo /bin/true)" "$TMPDIR/bin/tinyproxy"
  refuses_with_hint 125 "bwrap, which makes the sandbox, is not in PATH" \
    env PATH="$TMPDIR/bin" "$(command -v txfs)" run --direct=auto --network a.test -- /bin/ls
  rm "$TMPDIR/bin/tinyproxy"
  ln -s "$(command -v bwrap)" "$TMPDIR/bin"
  refuses_with_hint 125 "tinyproxy, which --network needs" \
    env PATH="$TMPDIR/bin" "$(command -v txfs)" run --network a.test -- touch no
  rm -r "${TMPDIR:?}/bin"
  equal "$(cat "$TMPDIR/listed")" "$(txfs list)" "what runs without their programs left"
  cp /bin/true program
  refuses_with_hint 125 "bwrap did not start the command" txfs run --hide /usr -- ./program
  contains "$(cat "$TMPDIR/err")" "try again, without --hide /usr"
  libc=$(ldd program | sed -n 's/.*libc.so.* => \([^ ]*\) .*/\1/p')
  [ -z "$libc" ] || refuses_with_hint 125 "without --hide $libc" txfs run --hide "$libc" -- ./program
  rm program
  mkdir -p "$HOME/.ssh"
  run 0 ".ssh is hidden, so that nothing is written there" --rw ~/.ssh -- true
  run 0 "nothing changed" --rw ~/.ssh --show ~/.ssh -- true
  ! grep -q "is hidden" "$TMPDIR/err" || fail "it is shown: $(cat "$TMPDIR/err")"
  [ ! -e no ] || fail "a command ran"
  mkdir gone
  (
    cd gone
    rmdir ../gone
    refuses_with_hint 125 "the working directory" txfs run -- rm -f file
  )
  equal plain "$(cat file)" "content"
  cd ..
}

# In a mount: the run uses it, and what was there before stays.
in_a_mount() {
  rm -rf ws mnt
  mkdir ws mnt
  echo old >ws/file
  txfs mount ws mnt >/dev/null
  (
    cd mnt
    run 0 "committed 1 change in" -- sh -c 'pwd >../pwd; echo new >file'
    equal "new" "$(cat file)" "content in the mount"
  )
  equal new "$(cat ws/file)" "committed content"
  echo before >mnt/earlier
  (
    cd mnt
    run 1 "rolled back" -- sh -c 'echo no >file; rm earlier; false'
    equal before "$(cat earlier)" "what was there before"
    # One savepoint is the begin of runs without a change in between.
    run 1 "rolled back" -- sh -c 'echo no >earlier; false'
    run 0 "nothing changed" -- true
    equal before "$(cat earlier)" "what was there before"
    equal 1 "$(txfs status --json | json 'len(d["savepoints"])')" "savepoints of runs"
    echo between >earlier
    run 1 "rolled back" -- rm earlier no-such-file
    equal between "$(cat earlier)" "what was changed between two runs"
    echo before >earlier
    run 0 "committed 1 change" -- sh -c 'echo newer >file'
  )
  equal newer "$(cat ws/file)" "content of the second commit"
  [ ! -e ws/earlier ] || fail "a change from before the run was committed"
  equal before "$(cat mnt/earlier)" "what was there before"
  mkdir mnt/dir
  echo mine >mnt/dir/file
  (
    cd mnt
    run 3 "kept" -- chmod 711 dir
  )
  [ ! -e ws/dir ] || fail "a change from before the run was committed"
  # In a mount of its own, the run is where the caller is in another one.
  mkdir ws/sub
  (
    cd mnt/sub
    txfs run -- sh -c 'touch begun; while [ ! -e end ]; do sleep 0.05; done; rm begun end' 2>/dev/null &
    while [ ! -e begun ]; do sleep 0.05; done
    equal "$(realpath ../../ws/sub)" "$(txfs run -- pwd 2>/dev/null)" "directory beside another run"
    mkdir ../new
    cd ../new
    refuses_with_hint 125 "is not in the transaction of the run" txfs run -- pwd
    touch ../sub/end
    wait
  )
  # The command sees the workspace at its own path.
  equal "$(realpath ws)" "$(txfs -C mnt run -- pwd 2>/dev/null)" "directory of the command"
  txfs umount mnt >/dev/null
}

# The home: private unless it is kept.
home() {
  rm -rf ws "$HOME/kept" "$HOME/lost"
  mkdir -p ws "$HOME/.ssh" "$HOME/kept"
  echo key >"$HOME/.ssh/id"
  echo old >"$HOME/kept/file"
  cd ws
  run 0 "1 path changed under ~, not kept: ~/lost" --rw ~/kept -- sh -c \
    'echo new >~/kept/file; echo lost >~/lost; cat ~/.ssh/id 2>/dev/null || echo hidden'
  equal hidden "$(cat "$TMPDIR/out")" "a credential"
  equal new "$(cat "$HOME/kept/file")" "what is kept"
  [ ! -e "$HOME/lost" ] || fail "what is not kept was written"
  run 0 "nothing changed" --show ~/.ssh -- sh -c 'cat ~/.ssh/id'
  run 0 "is a link now" --rw ~/kept -- sh -c 'rm -r ~/kept; ln -s ~/.ssh ~/kept'
  [ ! -L "$HOME/kept" ] || fail "a link was kept"
  run 2 "rolled back" --home ro -- sh -c 'echo no >~/lost'
  run 0 "nothing changed" --home rw -- sh -c 'echo yes >~/written'
  equal yes "$(cat "$HOME/written")" "what --home=rw writes"
  # Secrets in the environment.
  MY_TOKEN=secret PLAIN=1 run 0 "" --json "$TMPDIR/report" -- env
  ! grep -q secret "$TMPDIR/out" || fail "a token was passed"
  grep -q PLAIN=1 "$TMPDIR/out" || fail "a variable is missing"
  equal "['MY_TOKEN']" "$(json 'd["environment_dropped"]' <"$TMPDIR/report")" "names that were dropped"
  MY_TOKEN=secret run 0 "" --env MY_TOKEN --env OTHER=2 -- env
  grep -q MY_TOKEN=secret "$TMPDIR/out" || fail "a token that was named is missing"
  grep -q OTHER=2 "$TMPDIR/out" || fail "a variable that was set is missing"
  # The caller's directory for temporary files may not be in the sandbox.
  run 0 "" -- sh -c 'mktemp; test "$TMPDIR" = /tmp'
  run 0 "" --env TMPDIR -- sh -c 'test "$TMPDIR" != /tmp'
  cd ..
}

outcomes
in_a_mount
home
has_left
[ -n "$AS_ROOT" ] || exit 0

# The same as an ordinary user.
if [ -z "${IN_NAMESPACE-}" ]; then
  mkdir user
  chown 65534:65534 user
  cp "$TXFS" user/txfs
  chmod 755 user/txfs
  IN_NAMESPACE=1 exec unshare --mount sh -euc '
    mknod -m 666 "$TMPDIR/fuse" c 10 229 || exit 77
    mount --bind "$TMPDIR/fuse" /dev/fuse
    cd user
    export TXFS=$PWD/txfs PATH=$PWD:$PATH HOME=$PWD/home XDG_STATE_HOME=$PWD/home/state TMPDIR=$PWD AS_USER=1
    exec setpriv --reuid=65534 --regid=65534 --clear-groups sh -euc "
      mkdir -p \$HOME
      exec sh -eu $0"' "$0"
fi
