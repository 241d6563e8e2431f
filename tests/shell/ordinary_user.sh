#!/bin/sh
# The main job without root, through fusermount3.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs fusermount3
if [ "$(id -u)" -eq 0 ]; then
  needs setpriv
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
