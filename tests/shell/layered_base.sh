#!/bin/sh
# Workspaces on filesystems that do less than others: an overlay, which neither
# renames directories of its lower layers nor writes to files of several names
# there without making others of them; and filesystems mounted in a workspace
# that are gone when it comes to the commit.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs_root
mkdir disk mnt
mount -t tmpfs none disk || skip "no tmpfs"
cd disk
mkdir -p lower/old lower/kept upper work ws
echo 1 >lower/old/file
echo 2 >lower/file
ln lower/file lower/second
mount -t overlay none ws \
  -o lowerdir=lower,upperdir=upper,workdir=work,redirect_dir=off,index=off ||
  skip "no overlay"
cd ..
txfs mount disk/ws mnt

# What the overlay would refuse half-way is refused before anything happened.
rm -r mnt/old
mv mnt/kept mnt/moved
echo new >mnt/new
for dry_run in "" --dry-run; do
  refuses_with_hint 1 "is in a lower layer of an overlay" txfs -C mnt commit $dry_run
done
[ ! -e disk/ws/new ] || fail "half of a commit is in the base"
equal 1 "$(cat disk/ws/old/file)" "what was to be deleted"
txfs -C mnt discard old kept
txfs -C mnt commit
equal new "$(cat disk/ws/new)" "the rest of it"

# Directories that are only of the upper layer are as everywhere.
mkdir mnt/upper
echo 3 >mnt/upper/file
txfs -C mnt commit
mv mnt/upper mnt/other
rm mnt/new
txfs -C mnt commit
equal 3 "$(cat disk/ws/other/file)" "a directory of the upper layer"
txfs -C mnt undo
equal 3 "$(cat disk/ws/upper/file)" "after undo"

# A file of two names: no commit that could not be undone.
echo more >>mnt/file
refuses_with_hint 1 "several hard links in a lower layer" txfs -C mnt commit
equal 2 "$(cat disk/ws/file)" "a file of two names"
txfs -C mnt commit --on-conflict=mine
equal "2 more" "$(xargs <disk/ws/file)" "a file of its own"
txfs -C mnt undo
equal 2 "$(cat disk/ws/file)" "after undo"
contains "$(txfs -C mnt fsck)" "no problems"
txfs umount mnt

# What was made on a filesystem that is not there any more is not committed
# beneath its mountpoint, and nothing else depends on it.
mkdir -p plain/inner
mount -t tmpfs none plain/inner
txfs mount plain mnt
echo 4 >mnt/inner/new
echo 5 >mnt/new
txfs umount mnt
umount plain/inner
refuses_with_hint 1 "is not mounted in the workspace" txfs -C plain commit
equal "" "$(ls -A plain/inner)" "beneath the mountpoint"
txfs -C plain commit new
equal 5 "$(cat plain/new)" "a part of it"
txfs -C plain discard
