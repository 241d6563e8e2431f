#!/bin/sh
# A daemon whose mount is gone leaves alone what is mounted in its place, which
# may have the same device number.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs_root
needs python3
mkdir first second mnt
txfs mount first mnt
first=$(txfs -C mnt status --json | json 'd["pid"]')
kill -STOP "$first"
umount -l mnt
txfs mount second mnt
kill -CONT "$first"
tail --pid="$first" -f /dev/null
echo new >mnt/file
[ ! -e second/file ] || fail "the base was written to"
mountpoint -q mnt || fail "the second mount is gone"
txfs -C mnt commit >/dev/null
equal new "$(cat second/file)" "what was committed"
txfs umount mnt
