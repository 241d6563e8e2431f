#!/bin/sh
# fallocate takes the space at once: it fails when there is not enough, and what
# it reserved can be written although the store's filesystem is full.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs_root
needs mkfs.ext4 fallocate
make_workspace
mkdir mnt disk
truncate -s 96M image
mkfs.ext4 -q -F -m 0 image
mount -o loop image disk 2>err || skip "no loop device: $(cat err)"
trap 'txfs umount mnt 2>/dev/null || true; umount disk || umount -l disk' EXIT
mkdir disk/store
head -c 100000 /dev/urandom >ws/old
head -c 8M /dev/urandom >part
txfs --store disk/store mount ws mnt

blocks() { stat -c %b "$1"; }
free_blocks() { stat -f -c %f disk; }
# has_space FILE: 16 MiB of it.
has_space() {
  [ "$(blocks "$1")" -ge 32768 ] || fail "$1 has $(blocks "$1") blocks"
}

# More than there is: nothing is taken.
before=$(free_blocks)
status=0
fallocate -l 200M mnt/large 2>err || status=$?
[ $status -ne 0 ] || fail "200 MiB were reserved on a disk of 96 MiB"
contains "$(cat err)" "No space left on device"
equal 0 "$(stat -c %s mnt/large)" "size of what was refused"
rm mnt/large
[ "$(free_blocks)" -gt $((before - 1000)) ] || fail "the refused space is gone"

fallocate -l 16M mnt/new
: >mnt/kept-size
fallocate -n -l 16M mnt/kept-size
fallocate -o 100000 -l 16M mnt/old
equal 16777216 "$(stat -c %s mnt/new)" "size of the new file"
equal 0 "$(stat -c %s mnt/kept-size)" "size with --keep-size"
has_space mnt/new
has_space mnt/kept-size
has_space mnt/old
[ "$(free_blocks)" -lt $((before - 3 * 4096)) ] || fail "no space was taken"

head -c 200M /dev/zero >disk/filler 2>err || true
contains "$(cat err)" "No space left on device"
status=0
head -c 4M part >mnt/other 2>err || status=$?
[ $status -ne 0 ] || fail "unreserved content on a full disk"

# write FILE OPTION...: part, at the place that dd(1) is told.
write() {
  file=$1
  shift
  dd if=part of="$file" conv=notrunc status=none "$@" ||
    fail "no space for what was reserved in $file"
}
# The second half first, in small pieces.
write mnt/new bs=4k seek=2048
write mnt/new bs=1M
write mnt/kept-size bs=1M
write mnt/old bs=4k seek=100000 oflag=seek_bytes
sync mnt/new
cat part part | cmp - mnt/new
cmp part mnt/kept-size
tail -c +100001 mnt/old | head -c 8M | cmp - part

# What is not reserved any more is free for others.
rm mnt/kept-size
txfs -C mnt status >/dev/null
truncate -s 100000 mnt/old
tries=0
until head -c 4M part >mnt/other 2>err; do
  tries=$((tries + 1))
  [ $tries -lt 1000 ] || fail "a removed reservation made no room: $(cat err)"
done
rm disk/filler

# A file of the workspace that goes.
free=$(free_blocks)
fallocate -o 100000 -l 16M mnt/old
[ "$(free_blocks)" -lt $((free - 4000)) ] || fail "no space was taken"
rm mnt/old
tries=0
until [ "$(free_blocks)" -gt $((free - 1000)) ]; do
  tries=$((tries + 1))
  [ $tries -lt 1000 ] || fail "a deleted file of the workspace keeps its reservation"
  txfs -C mnt status >/dev/null
done

# A commit has the space that was reserved and not used.
before=$(free_blocks)
fallocate -l $(((before - 24000) * $(stat -f -c %S disk) * 15 / 16)) mnt/most
head -c 8M part >mnt/committed
txfs -C mnt commit -m room >/dev/null
cmp part ws/committed

# A file that is unlinked and open.
exec 3>mnt/unlinked
rm mnt/unlinked
free=$(free_blocks)
fallocate -l 16M /proc/self/fd/3
[ "$(free_blocks)" -lt $((free - 4000)) ] || fail "no space was taken"
cat part part >&3
exec 3>&-

txfs umount mnt
txfs --store disk/store mount ws mnt
cat part part | cmp - mnt/new
txfs -C mnt fsck >/dev/null
txfs -C mnt commit -m all >/dev/null
cat part part | cmp - ws/new
txfs umount mnt
