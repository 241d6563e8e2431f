#!/bin/sh
# Owners and groups that an ordinary user's commit keeps, or says that it does not.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs fusermount3 setpriv unshare
needs_root
if [ -z "${IN_NAMESPACE-}" ]; then
  IN_NAMESPACE=1 exec unshare --mount sh -eu "$0"
fi
mknod -m 666 "$TMPDIR/fuse" c 10 229 || skip "no device nodes here"
mount --bind "$TMPDIR/fuse" /dev/fuse
echo user_allow_other >fuse.conf
[ -e /etc/fuse.conf ] || skip "no /etc/fuse.conf"
mount --bind fuse.conf /etc/fuse.conf
as_user() { setpriv --reuid=65534 --regid=65534 --groups=65534,4322 "$@"; }
cp "$TXFS" txfs-program
chmod 755 txfs-program "$TMPDIR"
TXFS=$PWD/txfs-program
mkdir ws ws/shared
chown -R 65534:65534 "$HOME" . "$XDG_STATE_HOME" 2>/dev/null || true
chgrp 4321 ws/shared
chmod 2777 ws/shared
echo of-group >ws/of-group
echo mine >ws/mine
chown 65534:4321 ws/of-group
chown 65534:65534 ws/mine
as_user "$TXFS" mount --allow-other ws

# What the kernel lets the user keep.
as_user sh -c 'echo new >ws/shared/new; head -c 3000000 /dev/zero >ws/shared/large
  echo more >>ws/of-group; chgrp 4322 ws/mine; echo more >>ws/mine'
equal 4321 "$(stat -c %g ws/shared/new)" "group in the mount"
as_user "$TXFS" -C ws commit -m kept 2>err
grep -q "not committed" err && fail "said: $(cat err)"
as_user "$TXFS" umount ws
for name in shared/new shared/large of-group; do
  equal 65534:4321 "$(stat -c %u:%g ws/$name)" "owner of $name"
done
equal 4322 "$(stat -c %g ws/mine)" "a group of the user's"
equal "of-group
more" "$(cat ws/of-group)" "content"
equal "" "$(find ws -name '.txfs-vault*' -prune -o -name '*tmp*' -print)" "leftovers"

# What it does not.
as_user "$TXFS" mount --allow-other ws
as_user mkdir ws/shared/sub ws/shared/sub2
as_user touch ws/shared/sub/file
chown 1234 ws/mine
as_user "$TXFS" -C ws commit --dry-run >/dev/null 2>err
contains "$(cat err)" "owner not committed: mine"
contains "$(cat err)" "group not committed: shared/sub and 1 more"
as_user "$TXFS" -C ws commit -m withheld 2>err
contains "$(cat err)" "owner not committed: mine"
contains "$(cat err)" "group not committed: shared/sub and 1 more"
as_user "$TXFS" umount ws
equal 65534 "$(stat -c %u ws/mine)" "owner"
equal 4321 "$(stat -c %g ws/shared/sub/file)" "group of a file in a new directory"
as_user "$TXFS" -C ws fsck >/dev/null

# What only another user can commit, and the way on that the hint shows.
mkdir ws/theirs
echo theirs >ws/theirs/old
chown -R 1234 ws/theirs
as_user "$TXFS" mount --allow-other ws
echo new >ws/theirs/new
echo mine too >>ws/mine
status=0
as_user "$TXFS" -C ws commit -m refused 2>err || status=$?
equal 1 $status "exit code of a commit for another user"
contains "$(cat err)" "theirs/new: its directory belongs to user 1234, not to user 65534"
contains "$(cat err)" "txfs discard PATH"
as_user "$TXFS" -C ws discard theirs/new
mv ws/theirs ws/moved
echo new >ws/moved/new
status=0
as_user "$TXFS" -C ws commit -m refused 2>err || status=$?
equal 1 $status "exit code of a commit into a moved directory"
contains "$(cat err)" "moved/new: its directory belongs to user 1234, not to user 65534"
as_user "$TXFS" -C ws discard moved/new
mv ws/moved ws/theirs
as_user "$TXFS" -C ws commit -m rest
as_user "$TXFS" umount ws
equal old "$(ls ws/theirs)" "what is theirs"
contains "$(cat ws/mine)" "mine too"
