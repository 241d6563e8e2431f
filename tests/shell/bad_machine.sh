#!/bin/sh
# Filesystems that cannot hold a store and a machine without FUSE, which only
# root can bring about, are told of as bad_input.sh demands.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs_root
make_workspace
mkdir mnt other

# Stores that cannot be used.
mkdir ro
mount -t tmpfs -o ro none ro
mkdir full
mount -t tmpfs -o size=64k none full
refuses_with_hint 1 "$PWD/ro" txfs --store ro mount other mnt
refuses_with_hint 1 "$PWD/full" txfs --store full mount other mnt
umount ro full
! mountpoint -q mnt || fail "a refused mount is there"
[ -z "$(ls -A other)" ] || fail "a refused mount left something"
mount -t tmpfs -o ro none other
# The store is elsewhere: work goes on, a commit does not.
txfs mount other mnt
echo x >mnt/x
refuses_with_hint 1 "$PWD/other" txfs -C mnt commit
txfs umount mnt
umount other

# No FUSE: in a mount namespace where /dev/fuse is hidden.
unshare -m sh -c 'mount -t tmpfs none /dev && exec "$@"' sh \
  "$TXFS" mount ws mnt 2>err && fail "mounted without /dev/fuse"
contains "$(cat err)" /dev/fuse
grep -q '^hint: ' err || fail "no hint about /dev/fuse"
