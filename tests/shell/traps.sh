#!/bin/sh
# What overlays, and this one once, got wrong.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs git

# A file made behind the mount is nobody's to overwrite, also when it got the
# inode number of one that was looked at.
mkdir a mnt
echo 1 >a/x
txfs mount a mnt
stat mnt/x >/dev/null
echo mine >mnt/new
rm a/x
echo precious >a/new
refuses 3 new txfs -C mnt commit
equal precious "$(cat a/new)" "the base after a conflict"
txfs -C mnt discard
txfs umount mnt

# Symlinks that moved, alone and with their directory, in a patch.
mkdir -p b/dir
ln -s target b/link
ln -s elsewhere b/dir/link
echo text >b/dir/file
cp -a b b.copy
txfs mount b mnt
mv mnt/link mnt/link2
mv mnt/dir mnt/dir2
echo more >>mnt/dir2/file
txfs -C mnt diff >patch
(cd b.copy && git apply ../patch) || fail "git apply refused the patch"
equal target "$(readlink b.copy/link2)" "the moved symlink"
equal elsewhere "$(readlink b.copy/dir2/link)" "the symlink that moved along"
same_tree mnt b.copy
txfs umount mnt

# Two directories that changed places are a change, with equal files or not.
mkdir -p c/A c/B
echo 1 >c/A/f
echo 22 >c/B/f
echo 3 >c/A/g
echo 4 >c/B/g
cp -a c c.copy
txfs mount c mnt
mv mnt/A mnt/t
mv mnt/B mnt/A
mv mnt/t mnt/B
equal 2 "$(txfs -C mnt status --json | json 'd["changes"]')" "changes of a swap"
txfs -C mnt diff >patch
(cd c.copy && git apply ../patch) || fail "git apply refused the swap"
same_tree mnt c.copy
rm -r mnt/A
mv mnt/B mnt/A
txfs -C mnt diff --stat >/dev/null
manifest_with_times mnt >before
txfs -C mnt commit -m swap
manifest_with_times c >after
diff -u before after || fail "commit of the swap"
txfs umount mnt

# A store belongs to one workspace.
mkdir d e store
txfs --store store mount d mnt
echo of-d >mnt/f
txfs umount mnt
refuses_with_hint 1 "$PWD/d" txfs --store store mount e mnt

# Not over everything.
refuses_with_hint 1 / txfs mount /
refuses_with_hint 2 "" txfs mount ""
refuses 1 "$PWD/nowhere" txfs -C nowhere status
