#!/bin/sh
# Names that decide something for txfs, where others lead to them, too: on a
# filesystem that folds case, and on one that is not known to tell names apart.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_root
needs_fuse
needs python3
# In a mount namespace of its own, which takes the loop devices along.
[ -n "${FOLDING-}" ] || FOLDING=1 exec unshare --mount sh -eu "$0"

image() { truncate -s 64M "$1.img" && mkdir "$1"; }
mkdir mnt
kinds=
if command -v mkfs.vfat >/dev/null && grep -qw vfat /proc/filesystems; then
  image vfat && mkfs.vfat vfat.img >/dev/null && mount -o loop vfat.img vfat && kinds="$kinds vfat"
fi
if [ -e /sys/fs/ext4/features/casefold ]; then
  image ext4 && mkfs.ext4 -q -O casefold ext4.img && mount -o loop ext4.img ext4 &&
    mkdir ext4/ws && chattr +F ext4/ws && kinds="$kinds ext4/ws"
fi
if command -v fuse-overlayfs >/dev/null; then
  mkdir overlay upper work lower
  fuse-overlayfs -o lowerdir=lower,upperdir=upper,workdir=work overlay && kinds="$kinds overlay"
fi
[ -n "$kinds" ] || skip "no filesystem that folds case can be mounted here"

rules='schema = 1'
denied() {
  got=$(cd mnt && python3 -c "
import os, errno
try:
    $1
    print('ok')
except OSError as e:
    print(errno.errorcode[e.errno])")
  case $got in
    EPERM | ENOENT) ;;
    *) fail "$kind: $1: $got" ;;
  esac
}

for kind in $kinds; do
  mkdir -p "$kind/sub" "$kind/ruled/.txfs" "$kind/.txfs"
  echo "$rules" >"$kind/ruled/.txfs/policy.toml"
  echo "$rules" >"$kind/.txfs/policy.toml"
  echo plain >"$kind/plain"
  txfs mount --store store "$kind" mnt
  # The long s folds to s, and a zero width joiner is ignored.
  for name in .TXFS .Txfs ".txf$(printf '\305\277')" ".tx$(printf '\342\200\215')fs" .TXFS-vault; do
    denied "os.mkdir('sub/$name')"
    denied "os.mkdir('$name')"
    denied "os.rename('plain', 'sub/$name')"
    denied "os.symlink('x', 'sub/$name')"
  done
  for name in ruled/.TXFS ruled/TXFS~1 .TXFS TXFS~1; do
    denied "open('$name/policy.toml', 'w')"
    denied "os.rename('plain', '$name/policy.toml')"
  done
  echo x >mnt/sub/.txfs2
  txfs -C mnt commit >/dev/null
  txfs umount mnt
  rm -rf store
  equal "$rules" "$(cat "$kind/ruled/.txfs/policy.toml")" "the rules in $kind"
  equal "$rules" "$(cat "$kind/.txfs/policy.toml")" "the rules of $kind"
  equal "sub/.txfs2" "$(cd "$kind" && find sub -name '.*')" "names in $kind"
done
