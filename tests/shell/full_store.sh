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
