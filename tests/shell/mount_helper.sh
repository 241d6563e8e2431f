#!/bin/sh
# mount.fuse.txfs, as mount(8) calls it. mount(8) itself looks for helpers in
# /sbin only, which a test does not touch: the helper is called directly.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
# Others may be let in only by root, or where /etc/fuse.conf says so.
others=
[ "$(id -u)" -ne 0 ] || others=,allow_other
make_workspace
mkdir mnt store
ln -s "$TXFS" mount.fuse.txfs

./mount.fuse.txfs "$PWD/ws" "$PWD/mnt" -o rw,noatime$others,fsname=my-name,store="$PWD/store"
equal my-name "$(findmnt -no SOURCE mnt)" "source"
contains "$(findmnt -no OPTIONS mnt)" noatime
contains "$(findmnt -no OPTIONS mnt)" "${others#,}"
echo x >mnt/x
[ ! -e ws/.txfs ] || fail "the store is in the workspace"
[ -e store/FORMAT ] || fail "the store is not where it was told to be"
umount mnt

./mount.fuse.txfs "$PWD/ws" "$PWD/mnt" -o ro,store="$PWD/store"
equal x "$(cat mnt/x)" "content of the resumed transaction"
{ echo y >mnt/y; } 2>err && fail "written to a read-only mount"
contains "$(cat err)" "Read-only"
umount mnt

refuses 2 nonsense ./mount.fuse.txfs "$PWD/ws" "$PWD/mnt" -o nonsense
