#!/bin/sh
# Filesystems inside a mount or a workspace that are in the way: commands name
# them.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs_root
make_workspace
mkdir mnt ws/part
tear_down() {
  umount mnt/part 2>/dev/null || true
  txfs umount mnt 2>/dev/null || true
  txfs umount ws/part 2>/dev/null || true
}
trap tear_down EXIT

txfs mount ws mnt
mount -t tmpfs none mnt/part
refuses_with_hint 6 "another filesystem is mounted inside $PWD/mnt: $PWD/mnt/part" txfs umount mnt
contains "$(cat "$TMPDIR/err")" "\`umount $PWD/mnt/part\`"
umount mnt/part
txfs umount mnt

# A txfs mount inside the workspace has a transaction of its own.
txfs mount ws/part
txfs mount ws mnt
echo 1 >mnt/part/inner
echo 1 >mnt/outer
refuses_with_hint 1 "cannot commit changes below part: that is a txfs mount itself, of $PWD/ws/part" \
  txfs -C mnt commit
contains "$(cat "$TMPDIR/err")" "\`txfs discard part\`"
[ ! -e ws/outer ] || fail "a commit that was refused committed"
txfs -C mnt discard part
txfs -C mnt commit
equal 1 "$(cat ws/outer)" "what was committed after that"
[ ! -e ws/part/inner ] || fail "committed into the other mount"
txfs umount mnt
txfs umount ws/part
