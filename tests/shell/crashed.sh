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
  tail -s 0.05 --pid="$pid" -f /dev/null
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
for pid in $pids; do tail -s 0.05 --pid="$pid" -f /dev/null; done
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
equal 0 "$(ls ws/.txfs/txn | wc -l)" "directories of open transactions"
