#!/bin/sh
# Every wrong input gets one sentence with its path and what to do, the
# documented exit code, and loses nothing.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
make_workspace
mkdir mnt ws/inside
: >file

# Usage.
refuses 2 --no-such-option txfs --no-such-option
refuses 2 --no-such-option txfs mount --no-such-option ws mnt
refuses 2 no-such-command txfs no-such-command
refuses 2 "" txfs mount ws mnt one-too-many

# Workspaces and mountpoints that are none.
refuses_with_hint 1 "$PWD/absent" txfs mount absent mnt
refuses_with_hint 1 "$PWD/file" txfs mount file mnt
refuses_with_hint 1 "$PWD/absent" txfs mount ws absent
refuses_with_hint 1 "$PWD/file" txfs mount ws file
refuses_with_hint 1 "$PWD/mnt" txfs -C mnt status
refuses 1 "$PWD/absent" txfs -C absent status
for command in status diff commit discard log; do
  refuses 1 "" txfs -C mnt "$command"
done

# One inside the other would wait for itself for ever.
refuses_with_hint 1 "$PWD/ws/inside" txfs mount ws ws/inside
refuses_with_hint 1 "$PWD/ws/inside" txfs mount ws/inside ws
! mountpoint -q ws || fail "a refused mount is there"

# Already mounted; inside a mount.
txfs mount ws mnt
echo kept >mnt/kept
mkdir mnt2
refuses_with_hint 6 "$PWD/ws" txfs mount ws mnt2
refuses_with_hint 6 "$PWD/mnt" txfs mount ws mnt
mkdir other
refuses_with_hint 6 "$PWD/mnt" txfs mount other mnt
status=0
txfs mount mnt/docs mnt2 2>err || status=$?
[ $status -ne 0 ] || fail "mounted a directory of a mount"
equal kept "$(cat mnt/kept)" "content after refused mounts"
refuses 2 "" txfs -C mnt diff --color=sometimes
refuses 2 /etc/passwd txfs -C mnt diff /etc/passwd
txfs umount mnt
refuses_with_hint 1 "$PWD/mnt" txfs umount mnt

# A damaged journal, and one of a newer version.
store=$(store_of ws)
db=$(find "$store/txn" -name data.mdb)
cp "$db" saved
head -c 8192 /dev/urandom | dd of="$db" conv=notrunc status=none
refuses_with_hint 1 "$store" txfs mount ws mnt
! mountpoint -q mnt || fail "mounted a damaged journal"
cp saved "$db"
cp "$store/FORMAT" saved
echo 999 >"$store/FORMAT"
refuses_with_hint 1 "$store" txfs mount ws mnt
cp saved "$store/FORMAT"
txfs mount ws mnt
equal kept "$(cat mnt/kept)" "content after the journal was mended"
txfs umount mnt
