#!/bin/sh
# A program that lies in the mount, or in the workspace, is no git, whatever it is
# called: what only git may do it may not.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_root
needs_fuse
needs git unshare
# /opt is another one here.
[ -n "${APART-}" ] || APART=1 exec unshare --mount sh -eu "$0"
mount -t tmpfs none /opt

mkdir /opt/ws /opt/mnt /opt/tools
cd /opt/ws
git init -q -b main
git commit -q --allow-empty -m one
bash=$(command -v bash)
mkdir bin
cp "$bash" bin/git # comes with the repository
cp "$bash" /opt/tools/git
chmod -R u+w .git
before=$(cat .git/config .git/HEAD)
loose=$(find .git/objects -type f | head -1)
cd /

# refused_to PROGRAM: may not do what only git may.
refused_to() {
  # shellcheck disable=SC2016 # by that shell
  for attempt in ': >.git/HEAD' ": >$loose" 'echo x >.git/refs/heads/main' ': >.git/logs/HEAD'; do
    (cd "$mount" && "$1" -c "$attempt" 2>/dev/null) && fail "not refused to $1: $attempt"
  done
  equal "$before" "$(cat "$mount/.git/config" "$mount/.git/HEAD")" "what $1 did"
}

mount=/opt/mnt
txfs mount /opt/ws /opt/mnt
cp "$bash" /opt/mnt/git
ln /opt/mnt/git /opt/mnt/again
mkdir -p /opt/mnt/usr/bin
mv /opt/mnt/again /opt/mnt/usr/bin/git
refused_to /opt/mnt/git
refused_to /opt/mnt/usr/bin/git
refused_to /opt/mnt/bin/git
refused_to /opt/ws/bin/git
mkdir /opt/bound
mount --bind /opt/mnt /opt/bound
refused_to /opt/bound/git
umount /opt/bound
contains "$(txfs -C /opt/mnt log --denied)" "txfs-git-refs-kept"
contains "$(txfs -C /opt/mnt log --denied --json)" "/opt/mnt/git"
# What lies elsewhere is what the rules say that it is.
(cd /opt/mnt && /opt/tools/git -c 'echo noted >>.git/logs/HEAD')
git -C /opt/mnt config user.name Somebody
# What a mount namespace of its own has at that path is something else.
mkdir /opt/empty /opt/copy
cp "$bash" /opt/copy/git
# refused_with MOUNT...: a program that lies at /opt/tools by mount's MOUNT.
refused_with() {
  # shellcheck disable=SC2016 # by that shell
  unshare --mount sh -ec 'mount "$@" /opt/tools; cd /opt/mnt
    exec /opt/tools/git -c ": >.git/HEAD"' sh "$@" >/opt/said 2>&1 &&
    fail "not refused with mount $*"
  contains "$(cat /opt/said)" "not permitted"
}
refused_with --bind /opt/ws/bin
refused_with --bind /opt/copy
refused_with -t overlay -o "lowerdir=/opt/mnt/bin:/opt/empty" none
txfs umount /opt/mnt
txfs -C /opt/ws discard

# Over the workspace itself the program has the same path as below it.
mount=/opt/ws
txfs mount /opt/ws
cp "$bash" /opt/ws/git
refused_to /opt/ws/git
refused_to /opt/ws/bin/git
git -C /opt/ws config user.name Somebody
txfs umount /opt/ws
