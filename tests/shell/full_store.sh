#!/bin/sh
# When the store's filesystem is full the writer is told, what was acknowledged
# stays, and work goes on once there is space.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs_root
needs mkfs.ext4
make_workspace
mkdir mnt disk
truncate -s 64M image
mkfs.ext4 -q -F image
mount -o loop image disk 2>err || skip "no loop device: $(cat err)"
trap 'txfs umount mnt 2>/dev/null || true; umount disk || umount -l disk' EXIT
mkdir disk/store

txfs --store disk/store mount ws mnt
echo before >mnt/before
head -c 20M /dev/zero >disk/filler
written=0
status=0
while [ $status -eq 0 ] && [ $written -lt 100 ]; do
  head -c 1M /dev/urandom >"mnt/big$written" 2>err || status=$?
  written=$((written + 1))
done
[ $status -ne 0 ] || fail "writing 100 MiB to a full store worked"
contains "$(cat err)" "No space left on device"
# Small changes, until they are refused, too; each that was done stays.
count=0
while [ $count -lt 20000 ] && { echo "$count" >"mnt/small$count"; } 2>/dev/null; do
  count=$((count + 1))
done
equal before "$(cat mnt/before)" "content while the store is full"
sha256sum mnt/big0 mnt/before >sums
(cd mnt && find . -name 'small*' -size +0 | wc -l) >small

rm disk/filler
echo after >mnt/after
head -c 1M /dev/urandom >mnt/after-big
rm mnt/big1
equal after "$(cat mnt/after)" "content after space came back"
txfs umount mnt
txfs --store disk/store mount ws mnt
sha256sum --quiet -c sums || fail "content changed over the remount"
equal after "$(cat mnt/after)" "content after the remount"
equal "$(cat small)" "$(cd mnt && find . -name 'small*' -size +0 | wc -l)" "small files"
txfs umount mnt

# Full again, and nobody makes room outside: a deletion inside does, and so
# does a discard.
txfs --store disk/store mount ws mnt
txfs -C mnt discard
fill() {
  status=0
  head -c 100M /dev/urandom >mnt/fill 2>err || status=$?
  [ $status -ne 0 ] || fail "writing 100 MiB to a full store worked"
  contains "$(cat err)" "No space left on device"
}
fill
rm mnt/fill
tries=0
until head -c 4M /dev/urandom >mnt/fits 2>err; do
  tries=$((tries + 1))
  [ $tries -lt 1000 ] || fail "a deletion made no room: $(cat err)"
done
fill
txfs -C mnt discard
[ ! -e mnt/fill ] || fail "discard left a file"
tries=0
until head -c 4M /dev/urandom >mnt/fits 2>err; do
  tries=$((tries + 1))
  [ $tries -lt 1000 ] || fail "a discard made no room: $(cat err)"
done
txfs umount mnt

# Without an inode left nothing is committed or undone.
umount disk
truncate -s 64M few
mkfs.ext4 -q -F -N 1000 few
mount -o loop few disk
mkdir disk/ws
echo old >disk/ws/file
echo old >disk/ws/gone
truncate -s 72M disk/ws/large
head -c 8M /dev/urandom >>disk/ws/large
sha256sum <disk/ws/large >sum
txfs --store "$PWD/disk/kept" mount disk/ws mnt
take_inodes() {
  mkdir disk/inodes
  count=0
  while [ "$(stat -f -c %d disk)" -gt "$1" ]; do
    : >"disk/inodes/$count"
    count=$((count + 1))
  done
}
echo new >mnt/file
rm mnt/gone
echo new >mnt/made
truncate -s 72M mnt/large
for left in 0 8 16 24 23 22 21 20; do
  take_inodes $left
  if txfs -C mnt commit -m all 2>err; then break; fi
  contains "$(cat err)" "No space left on device"
  [ ! -e disk/ws/made ] || fail "$left inodes left: the commit stopped half-way"
  rm -r disk/inodes
done
rm -rf disk/inodes
txfs -C mnt commit -m all
take_inodes 2
refuses_with_hint 1 "nothing was undone" txfs -C mnt undo
equal "new new" "$(cat disk/ws/file mnt/file | tr '\n' ' ' | sed 's/ $//')" "what was not undone"
rm -r disk/inodes

# Where there are no blocks for what a patch of a file brings back, an undo
# stops half-way: the mount shows what the base has by then, the user is told,
# and the next command goes on with it.
head -c 1M /dev/zero >disk/spare
head -c 100M /dev/zero >disk/filler 2>err || true
rm disk/spare
refuses_with_hint 1 "stopped half-way" txfs -C mnt undo
equal "$(ls disk/ws)" "$(ls mnt)" "the names half-way"
refuses_with_hint 1 "stopped half-way" txfs -C mnt status
rm disk/filler
txfs -C mnt status 2>err
contains "$(cat err)" "finished the interrupted commit"
equal "$(ls disk/ws)" "$(ls mnt)" "the names after the undo"
equal "$(cat sum)" "$(sha256sum <mnt/large)" "the large file after the undo"
txfs -C mnt fsck >/dev/null
txfs umount mnt
