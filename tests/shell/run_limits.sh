#!/bin/sh
# The limits of `txfs run` for memory, CPU time and processes: each ends the whole
# run, which is rolled back and says why, and no control group is left. As root
# by control groups, where these can be made; as another user by counting.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs bwrap fusermount3 python3 setpriv unshare
needs_root
alone
mknod -m 666 "$TMPDIR/fuse" c 10 229 || skip "no device nodes here"
mount --bind "$TMPDIR/fuse" /dev/fuse
cp "$TXFS" txfs-program
chmod 755 txfs-program "$TMPDIR"
TXFS=$PWD/txfs-program
out=$PWD/out err=$PWD/err

# The control groups in which the shell is, as it sees them.
cat >groups.sh <<'END'
find /sys/fs/cgroup -type d -name 'txfs-run-*' 2>/dev/null |
  while read -r group; do
    ! grep -qx $$ "$group/processes/cgroup.procs" || echo "$group"
  done
END
# hog MIB: uses that much memory until it is ended.
cat >hog.py <<'END'
import signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
memory = b"x" * (int(sys.argv[1]) << 20)
signal.pause()
END

# Whether the user that acts can make control groups, in the ways that txfs knows.
makes_groups() {
  [ "$uid" -eq 0 ] || return 1
  [ ! -w /sys/fs/cgroup/memory/memory.limit_in_bytes ] || return 0
  # The topmost group that a container sees is not the topmost one.
  own=$(sed -n 's/^0:://p' /proc/self/cgroup)
  [ -w /sys/fs/cgroup/cgroup.subtree_control ] &&
    grep -qw memory /sys/fs/cgroup/cgroup.controllers &&
    { [ "$own" != / ] || [ ! -e /sys/fs/cgroup/cgroup.type ]; }
}

act() { setpriv --reuid="$uid" --regid="$uid" --clear-groups "$@"; }

# run CODE LINE OPTION... -- SCRIPT [ARGUMENT...]: `txfs run` of a script of sh, which prints
# its groups first. It ends with CODE, the last line that is said begins with LINE,
# and nothing is left.
run() {
  code=$1 line=$2
  shift 2
  status=0
  act "$TXFS" -C ws run "$@" >"$out" 2>"$err" || status=$?
  [ "$status" -eq "$code" ] ||
    fail "$*: expected exit code $code, got $status: $(cat "$err")"
  said=$(grep -v "^hint: " "$err" | tail -n 1)
  case $said in
    "$line"*) ;;
    *) fail "$*: expected '$line', got: $(cat "$err")" ;;
  esac
  gone
}

# The groups in the output have been removed.
gone() {
  while read -r group; do
    case $group in
      /sys/*) [ ! -e "$group" ] || fail "left: $group" ;;
    esac
  done <"$out"
}

# in_group WHAT: the last run was in control groups, if the user can make them.
in_group() {
  if makes_groups; then
    grep -q '^/sys/' "$out" || fail "no control group for $1"
  else
    ! grep -q '^/sys/' "$out" || fail "a control group for $1"
  fi
}

check_limits() {
  uid=$1
  rm -rf ws
  mkdir ws
  cp groups.sh hog.py ws
  echo before >ws/file
  chown -R "$uid:$uid" ws "$HOME"
  cp -a ws expected
  files="sh groups.sh; echo after >file; echo new >new"

  # What keeps to its limits is as without them.
  run 0 "committed 2 changes in " --memory 500M --cpu-time 1m --pids 50 -- \
    sh -c "$files; python3 -c 'print(sum(range(1000000)))'"
  in_group "the limits"
  equal "after new" "$(cat ws/file ws/new | xargs)" "committed"
  run 7 "rolled back: exit 7 after " --memory 500M -- sh -c 'rm new; exit 7'
  rm ws/new
  act cp -a expected/. ws

  # Memory: one process, whose parent would go on; and two, each of which is
  # within the limit.
  memory="rolled back: memory limit of 200.0 MiB exceeded after "
  run 123 "$memory" --memory 200M -- \
    sh -c "$files; python3 hog.py 400; echo went on >file; exit 0"
  in_group "memory"
  same_tree expected ws
  run 123 "$memory" --memory 200M -- sh -c "sh groups.sh; python3 hog.py 130 &
    setsid python3 hog.py 131 & wait; sleep 1000"
  same_tree expected ws
  # What a shared memory filesystem has in it counts in a group.
  if makes_groups; then
    run 123 "$memory" --memory 200M -- \
      sh -c 'head -c 400M /dev/zero >/dev/shm/file; sleep 1000'
  else
    # Else each place has that much.
    run 0 "nothing changed in " --memory 60M -- sh -c '
      for place in /tmp /var/tmp /dev/shm /run; do
        ! head -c 70M /dev/zero >$place/file 2>/dev/null || exit 1
        [ "$(stat -c %s $place/file)" -le 62914560 ] || exit 2
      done'
  fi
  act "$TXFS" -C ws run -- sh -c '! touch /dev/file 2>/dev/null' 2>"$err" || fail "/dev can be written: $(cat "$err")"

  # CPU time, of several processes together.
  run 123 "rolled back: CPU time limit of 1.5 s exceeded after " \
    --cpu-time 1500ms -- sh -c "$files
      for i in 1 2 3; do setsid sh -c 'trap \"\" TERM; while :; do :; done' & done
      wait; sleep 1000"
  in_group "CPU time"
  same_tree expected ws

  # Processes. Within its limit a shell can have as many as it says.
  run 0 "nothing changed in " --pids 4 -- \
    sh -c 'sleep 0.3 & sleep 0.3 & sleep 0.3 & wait'
  run 123 "rolled back: limit of 20 processes exceeded after " --pids 20 -- \
    sh -c "$files
      for i in \$(seq 30); do setsid sleep 1000 & done; wait; sleep 1000"
  in_group "processes"
  same_tree expected ws
  run 123 "rolled back: limit of 1 process exceeded after " --pids 1 -- \
    sh -c 'sleep 1000; sleep 1000'

  # Where they are counted, resource limits bound each process, without a sandbox, too.
  for sandbox in --nested --no-sandbox; do
    act "$TXFS" -C ws run "$sandbox" --memory 2G --cpu-time 10s -- sh -c 'ulimit -d; ulimit -t' >"$out" 2>"$err" ||
      fail "$sandbox: $(cat "$err")"
    makes_groups || equal "4194304 12" "$(xargs <"$out")" "resource limits with $sandbox"
  done
  run 123 "$memory" --no-sandbox --memory 200M -- sh -c 'python3 hog.py 400'

  # A validator has the same limits.
  run 5 "rolled back: " --memory 200M --validate "python3 hog.py 400" -- \
    sh -c "$files"
  same_tree expected ws

  # The first limit that is exceeded ends the run; --keep keeps what is there.
  run 123 "kept 1 change: limit of 20 processes exceeded after " \
    --memory 1G --cpu-time 1h --pids 20 --name kept --keep -- \
    sh -c 'echo new >new; for i in $(seq 30); do sleep 1000 & done; wait; sleep 1000'
  act "$TXFS" -C ws discard --transaction kept >/dev/null

  # The supervisor is killed. Whoever has the output open has ended with the run.
  mkfifo pipe
  chmod 666 pipe
  setpriv --reuid="$uid" --regid="$uid" --clear-groups \
    "$TXFS" -C ws run --memory 300M --pids 50 --cpu-time 1h -- \
    sh -c "$files; echo ready; sleep 1000" >pipe 2>"$err" &
  supervisor=$!
  exec 3<pipe
  : >"$out"
  while read -r line <&3 && [ "$line" != ready ]; do
    echo "$line" >>"$out"
  done
  in_group "the run to be killed"
  kill -9 "$supervisor"
  wait "$supervisor" || true
  cat <&3 >/dev/null
  exec 3<&-
  rm pipe
  # The daemon removes them before it unmounts.
  while grep -q "^$PWD/ws .*txfs" /proc/self/mounts ||
    pgrep -f "$TXFS" >/dev/null; do
    sleep 0.02
  done
  gone
  same_tree expected ws
  rm -rf expected
}

for user in $(some 0 65534); do check_limits "$user"; done

# What is no limit.
uid=0
for option in "--memory 0" "--memory 12Q" "--memory M" "--memory 9999T" \
  "--pids 0" "--pids many" "--cpu-time 0" "--cpu-time soon"; do
  # shellcheck disable=SC2086 # two words
  status=0
  # shellcheck disable=SC2086
  act "$TXFS" -C ws run $option -- touch never >"$out" 2>"$err" || status=$?
  equal 125 "$status" "exit code of $option"
  [ ! -e ws/never ] || fail "$option ran"
done
