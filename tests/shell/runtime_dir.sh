#!/bin/bash
# The directory of the control socket: one that others made is passed over, and
# commands find a daemon whatever appears or goes while it is mounted.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs fusermount3 setpriv unshare
needs_root
if [ -z "${IN_NAMESPACE-}" ]; then
  IN_NAMESPACE=1 exec unshare --mount bash -eu "$0"
fi
mknod -m 666 "$TMPDIR/fuse" c 10 229 2>/dev/null &&
  mount --bind "$TMPDIR/fuse" /dev/fuse || skip "no device nodes here"
[ -d /run/user ] || mkdir /run/user 2>/dev/null || skip "no /run/user"
mount -t tmpfs none /run/user
uid=64997
# fusermount3 wants a user of a name.
cp /etc/passwd "$TMPDIR/passwd"
echo "txfs-test:x:$uid:$uid::/:/bin/sh" >>"$TMPDIR/passwd"
mount --bind "$TMPDIR/passwd" /etc/passwd
mkdir user
cp "$TXFS" user/txfs
chmod 755 user/txfs
mkdir -p user/ws user/mnt
# As long as a home may be: longer than the name of a socket may be.
state=$PWD/user/$(printf '%0120d' 0)
echo base >user/ws/file
chown -R $uid:$uid user
txfs() {
  setpriv --reuid=$uid --regid=$uid --clear-groups \
    env HOME="$PWD/user" XDG_STATE_HOME="$state" "$PWD/user/txfs" "$@"
}
trap 'rm -rf "/tmp/txfs-$uid"' EXIT
daemon_of() { txfs -C user/ws list --json | json '[t["daemon"] for t in d if t["state"] == "active"]'; }
# works WHEN: all commands reach the daemon.
works() {
  equal "['running']" "$(daemon_of)" "what the list says: $1"
  equal "$PWD/user/mnt" "$(txfs -C user/mnt status --json | json 'd["mountpoint"]')" "in the mount: $1"
  equal "$PWD/user/mnt" "$(txfs -C user/ws status --json | json 'd["mountpoint"]')" "in the workspace: $1"
  setpriv --reuid=$uid --regid=$uid --clear-groups sh -c "echo '$1' >user/mnt/file"
  txfs -C user/mnt commit >/dev/null
  equal "$1" "$(cat user/ws/file)" "committed: $1"
}
ends() {
  txfs umount user/mnt >said 2>&1
  contains "$(cat said)" "unmounted"
}

# /tmp/txfs-UID made by another user, in each way: a directory, a link, a file.
for made in "mkdir -m 700" "mkdir -m 777" "ln -s $PWD" touch; do
  # shellcheck disable=SC2086 # a command
  $made "/tmp/txfs-$uid"
  txfs mount user/ws user/mnt
  works "with $made"
  ends
  rm -rf "/tmp/txfs-$uid"
done
# One's own that others may enter is none either.
mkdir -m 755 "/tmp/txfs-$uid"
chown $uid "/tmp/txfs-$uid"
txfs mount user/ws user/mnt
works "beside one that others may enter"
ends
rm -rf "/tmp/txfs-$uid"

# A login while it is mounted.
txfs mount user/ws user/mnt
mkdir -m 700 "/run/user/$uid"
chown $uid "/run/user/$uid"
works "after a login"
ends

# A logout while it is mounted, and a login after it.
txfs mount user/ws user/mnt
[ -n "$(ls "/run/user/$uid/txfs")" ] || fail "no socket in /run/user/$uid"
rm -rf "/run/user/$uid"
works "after a logout"
mkdir -m 700 "/run/user/$uid"
chown $uid "/run/user/$uid"
works "after the next login"
ends
equal 0 "$(find "/run/user/$uid" "$state/txfs/run" -name '*.sock' | wc -l)" "sockets left"

# Without any socket a daemon is still none that died, and the mount can be
# ended.
txfs mount user/ws user/mnt
rm -rf "/run/user/$uid" "$state/txfs/run"
equal "['running']" "$(daemon_of)" "without a socket"
refuses_with_hint 1 "cannot reach the daemon" txfs -C user/mnt status
ends
txfs mount user/ws user/mnt
works "mounted again"
ends
