#!/bin/sh
# The main job without root, through fusermount3.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs fusermount3 setpriv unshare
if [ "$(id -u)" -eq 0 ] && [ -z "${IN_NAMESPACE-}" ]; then
  # /dev/fuse is only for root on some machines: in a mount namespace of its own
  # the test has one that is for all.
  IN_NAMESPACE=1 exec unshare --mount sh -eu "$0"
fi
if [ "$(id -u)" -eq 0 ]; then
  mknod -m 666 "$TMPDIR/fuse" c 10 229 2>/dev/null &&
    mount --bind "$TMPDIR/fuse" /dev/fuse || skip "no device nodes here"
  user="setpriv --reuid=65534 --regid=65534 --clear-groups"
  chmod 755 "$TMPDIR"
  chown -R 65534:65534 "$HOME" .
  cp "$TXFS" txfs-program && chmod 755 txfs-program
  TXFS=$PWD/txfs-program
else
  user=""
fi
as_user() { $user "$@"; }
as_user sh -c '[ -r /dev/fuse ] && [ -w /dev/fuse ]' ||
  skip "/dev/fuse is not for ordinary users here"
as_user sh -eu <<'END'
mkdir ws mnt
echo base >ws/file
"$TXFS" mount ws mnt
echo changed >mnt/file
[ "$(cat ws/file)" = base ]
"$TXFS" -C mnt commit -m x
[ "$(cat ws/file)" = changed ]
echo again >mnt/file
"$TXFS" -C mnt discard
[ "$(cat mnt/file)" = changed ]
"$TXFS" umount mnt
END
