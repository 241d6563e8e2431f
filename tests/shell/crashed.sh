#!/bin/bash
# Daemons that died: `list` finds them, and each can be resumed or discarded.
# As root, and once more as an ordinary user through fusermount3.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
if [ "$(id -u)" -eq 0 ] && [ -z "${IN_NAMESPACE-}" ]; then
  IN_NAMESPACE=root unshare --mount bash -eu "$0" || exit $?
  command -v fusermount3 setpriv >/dev/null || exit 0
  # /dev/fuse is only for root on some machines.
  mkdir "$TMPDIR/user" && mknod -m 666 "$TMPDIR/fuse" c 10 229 || exit 0
  # The sources may be where only root looks, as in a mount.
  cp "$TXFS" "$TMPDIR/txfs"
  chmod 755 "$TMPDIR/txfs"
  mkdir -p "$TMPDIR/source/tests/shell"
  cp "$0" "$TXFS_SOURCE_DIR/tests/shell/common" "$TMPDIR/source/tests/shell"
  export TXFS_SOURCE_DIR=$TMPDIR/source
  chown 65534:65534 "$TMPDIR/user"
  export IN_NAMESPACE=user
  exec unshare --mount bash -eu -c '
    mount --bind "$TMPDIR/fuse" /dev/fuse
    cd "$TMPDIR/user"
    export HOME=$TMPDIR/user XDG_STATE_HOME=$TMPDIR/user/state
    export PATH=$TMPDIR:$PATH TMPDIR=$TMPDIR/user
    exec setpriv --reuid=65534 --regid=65534 --clear-groups bash -eu "$0"' \
    "$TXFS_SOURCE_DIR/tests/shell/${0##*/}"
fi
make_workspace
mkdir ma mb mc
field() { txfs -C "$1" list --json | json "[t['$3'] for t in d if t['name'] == '$2' and t['state'] == 'active'][0]"; }
pid_of() { txfs -C "$1" status --json | json 'd["pid"]'; }
# kill_daemon MOUNT: and waits until it is gone.
kill_daemon() {
  pid=$(pid_of "$1")
  kill -KILL "$pid"
  ended "$pid"
}

for name in a b c; do
  txfs mount ws "m$name" --name $name
  echo $name >"m$name/$name"
done
kill_daemon ma
kill_daemon mb
equal "dead running" "$(field ws a daemon) $(field mc c daemon)" "what the list says"
equal "$PWD/ma None" "$(field ws a mountpoint) $(field ws a pid)" "where it was"
contains "$(txfs -C ws list)" "died; \`txfs mount --name a\` resumes it"
contains "$(txfs -C ws -t a status)" "died; \`txfs mount --name a\` resumes it"
refuses_with_hint 1 "is dead" txfs -C ma status
contains "$(txfs -C ws -t a diff)" "+a"
# The living commit all the same.
txfs -C mc commit >/dev/null
equal c "$(cat ws/c)" "committed beside the dead"

# Discarded where it lies; resumed elsewhere, where the dead mount does not matter.
txfs -C ws -t b discard >/dev/null
txfs umount mb 2>said
contains "$(cat said)" "cleared the dead mount"
if mountpoint -q mb; then fail "the dead mount is still there"; fi
txfs mount ws mb --name a 2>said
contains "$(cat said)" "cleared the dead mount at $PWD/ma"
if mountpoint -q ma; then fail "the dead mount is still there"; fi
equal "a c" "$(cat mb/a) $(cat mb/c)" "resumed elsewhere"
txfs umount mb

# Over the workspace itself: with a daemon left, everything goes on; without one
# the mount is in the way until it is cleared.
txfs mount ws --name a
kill_daemon ws
equal dead "$(field mc a daemon)" "seen from another mount"
equal dead "$(field ws a daemon)" "seen from the dead mount"
contains "$(txfs -C ws -t a diff)" "+a"
txfs umount mc
refuses_with_hint 1 "is dead" txfs -C ws status
txfs umount ws 2>said
contains "$(cat said)" "cleared the dead mount"
equal dead "$(field ws a daemon)" "after clearing"
txfs mount ws --name a
equal a "$(cat ws/a)" "resumed over the workspace"
kill_daemon ws
contains "$(txfs -C ws list 2>said)" "died; \`txfs mount --name a\` resumes it"
contains "$(cat said)" "cleared the dead mount at $PWD/ws"
txfs mount ws --name a
kill_daemon ws
txfs mount ws mb --name b 2>said
contains "$(cat said)" "cleared the dead mount at $PWD/ws"
if mountpoint -q ws; then fail "the dead mount is still there"; fi

# A shutdown: SIGTERM to all, and SIGKILL to whoever is not fast enough.
txfs mount ws ma --name a
echo more >>ma/a
echo b >mb/b
txfs mount ws mc --name c
echo c >mc/c2
pids="$(pid_of ma) $(pid_of mb) $(pid_of mc)"
exec 5<mb/b
kill -TERM $pids
kill -KILL ${pids##* } 2>/dev/null || true
ended $pids
exec 5<&-
for name in a b c; do txfs mount ws "m$name" --name $name; done
equal "a more" "$(xargs <ma/a)" "a after the shutdown"
equal b "$(cat mb/b)" "b after the shutdown"
equal c "$(cat mc/c2)" "c after the shutdown"
for name in a b c; do
  txfs -C "m$name" commit >/dev/null
  txfs umount "m$name"
done
equal "a more b c" "$(cat ws/a ws/b ws/c2 | xargs)" "what was committed in the end"
equal 0 "$(txfs -C ws list --json | json 'len([t for t in d if t["state"] == "active"])')" "open transactions"
equal 0 "$(ls "$(store_of ws)/txn" | wc -l)" "directories of open transactions"

# Where one died, another is mounted by now, of this workspace or of another: what
# the dead one is asked for is not done to that.
mkdir other
for live in ws other; do
  txfs mount ws ma --name a
  echo dead >ma/dead
  kill_daemon ma
  txfs mount $live ma 2>said
  contains "$(cat said)" "cleared the dead mount at $PWD/ma"
  echo live >ma/live
  equal dead "$(field ws a daemon)" "with a mount of $live in its place"
  equal dead "$(txfs -C ws -t a diff --json | json '" ".join(c["path"] for c in d)')" \
    "what it changed, not what $live did"
  refuses_with_hint 1 "is not mounted" txfs -C ws -t a umount
  txfs -C ws -t a savepoint one >/dev/null
  txfs -C ws -t a discard >/dev/null
  equal live "$(cat ma/live)" "what was done in $live after the discard"
  equal 0 "$(txfs -C ma status --json | json 'len(d["savepoints"])')" "savepoints of $live"
  txfs -C ma discard >/dev/null
  txfs umount ma
done
txfs mount ws ma --name a
echo dead >ma/dead
kill_daemon ma
txfs mount other ma 2>said
echo live >ma/live
txfs mount ws mb --name a
equal dead "$(cat mb/dead)" "resumed beside what is in its place"
txfs -C ws -t a commit >/dev/null
txfs -C ma commit >/dev/null
txfs -C ws undo >/dev/null
equal "live no" "$(cat other/live) $(test -e ws/dead && echo yes || echo no)" \
  "an undo in the workspace of the dead one"
txfs umount ma
txfs umount mb

# In a dead mount, and told its mountpoint, `txfs mount` brings back what was there.
for where in "-C ma mount" "mount ma"; do
  txfs mount ws ma --name a
  echo again >ma/again
  kill_daemon ma
  # shellcheck disable=SC2086 # options and a command
  txfs $where >said 2>&1
  contains "$(cat said)" "(a) resumed"
  contains "$(cat said)" "mounted $PWD/ws at $PWD/ma"
  equal again "$(cat ma/again)" "brought back by $where"
  txfs -C ma discard >/dev/null
  txfs umount ma
done
equal 0 "$(txfs -C ws list --json | json 'len([t for t in d if t["state"] == "active" and t["name"]])')" "named transactions at the end"
