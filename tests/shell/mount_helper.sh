#!/bin/sh
# mount.fuse.txfs, as mount(8) calls it. mount(8) itself looks for helpers in
# /sbin only, which a test does not touch: root's part has an /sbin of its own.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
# Others may be let in only by root, or where /etc/fuse.conf says so.
others=
[ "$(id -u)" -ne 0 ] || others=,allow_other
make_workspace
mkdir mnt store
ln -s "$TXFS" mount.fuse.txfs

# silent COMMAND...: it succeeds and prints nothing.
silent() {
  "$@" >"$TMPDIR/out" 2>&1 || fail "$*: $(cat "$TMPDIR/out")"
  [ ! -s "$TMPDIR/out" ] || fail "$*: said $(cat "$TMPDIR/out")"
}
options() { findmnt -no OPTIONS "$1"; }
has() {
  case ",$(options "$1")," in *",$2,"*) ;; *) fail "$3: no $2 in $(options "$1")" ;; esac
}
lacks() {
  case ",$(options "$1")," in *",$2,"*) fail "$3: $2 in $(options "$1")" ;; esac
}

silent ./mount.fuse.txfs "$PWD/ws" "$PWD/mnt" -o rw,noatime$others,fsname=my-name,store="$PWD/store"
equal my-name "$(findmnt -no SOURCE mnt)" "source"
has mnt noatime "noatime"
contains "$(options mnt)" "${others#,}"
echo x >mnt/x
[ ! -e ws/.txfs ] || fail "the store is in the workspace"
[ -e store/FORMAT ] || fail "the store is not where it was told to be"
umount mnt

silent ./mount.fuse.txfs "$PWD/ws" "$PWD/mnt" -o ro,store="$PWD/store"
equal x "$(cat mnt/x)" "content of the resumed transaction"
{ echo y >mnt/y; } 2>err && fail "written to a read-only mount"
contains "$(cat err)" "Read-only"
umount mnt

./mount.fuse.txfs "$PWD/ws" "$PWD/mnt" -v -o store="$PWD/store" >out 2>&1
contains "$(cat out)" "mounted $PWD/ws at $PWD/mnt"
[ "$(id -u)" -eq 0 ] ||
  refuses_with_hint 1 "cannot remount" ./mount.fuse.txfs "$PWD/ws" "$PWD/mnt" -o remount,ro
umount mnt

refuses 2 nonsense ./mount.fuse.txfs "$PWD/ws" "$PWD/mnt" -o nonsense
refuses_with_hint 2 strictatime ./mount.fuse.txfs "$PWD/ws" "$PWD/mnt" -o strictatime
refuses_with_hint 2 "not the mountpoint" ./mount.fuse.txfs "$PWD/ws" "$PWD/mnt" -o remount,ro

needs_root
needs unshare findmnt
cat >"$TMPDIR/inside" <<'END'
. "$TXFS_SOURCE_DIR/tests/shell/common"
mkdir sbin
mount -t tmpfs none sbin
cp -a /usr/sbin/. sbin/
ln -sf "$TXFS" sbin/mount.fuse.txfs
mount --bind sbin "$(realpath /sbin)"
END
sed -n '/^silent()/,/^}/p;/^options()/p;/^has()/,/^}/p;/^lacks()/,/^}/p' \
  "$TXFS_SOURCE_DIR/tests/shell/mount_helper.sh" >>"$TMPDIR/inside"
cat >>"$TMPDIR/inside" <<'END'
trap 'umount mnt 2>/dev/null || true' EXIT
silent mount -t fuse.txfs "$PWD/ws" "$PWD/mnt" -o "nosuid,nodev,store=$PWD/store"
equal x "$(cat mnt/x)" "content by mount(8)"
has mnt nosuid "nosuid"
has mnt nodev "nodev"

# What a remount names changes, the rest stays.
silent mount -o remount,ro mnt
{ echo y >mnt/y; } 2>err && fail "written after remount,ro"
has mnt nosuid "after remount,ro"
txfs -C mnt status >/dev/null
silent mount -o remount,noatime mnt
has mnt noatime "remount,noatime"
has mnt ro "after remount,noatime"
silent mount -o remount,rw,atime mnt
lacks mnt noatime "remount,atime"
echo y >mnt/y
silent mount -o remount,noexec,dev mnt
has mnt noexec "remount,noexec"
lacks mnt nodev "remount,dev"
has mnt nosuid "after remount,dev"
silent mount -o remount,exec,suid,nodev mnt
lacks mnt noexec "remount,exec"
lacks mnt nosuid "remount,suid"
has mnt nodev "remount,nodev"
txfs umount mnt >/dev/null

# Root's suid and dev are in force where root asks for them; for mount(8) they
# are the default.
txfs --store store mount ws mnt >/dev/null
has mnt nosuid "txfs mount"
has mnt nodev "txfs mount"
txfs mount ws mnt -o remount,dev
has mnt nosuid "txfs mount -o remount,dev"
lacks mnt nodev "txfs mount -o remount,dev"
txfs umount mnt >/dev/null
txfs --store store mount ws mnt -o suid >/dev/null
lacks mnt nosuid "txfs mount -o suid"
has mnt nodev "txfs mount -o suid"
txfs umount mnt >/dev/null
silent mount -t fuse.txfs "$PWD/ws" "$PWD/mnt" -o "suid,dev,store=$PWD/store"
lacks mnt nosuid "suid"
lacks mnt nodev "dev"
txfs umount mnt >/dev/null

# But never against the base.
mkdir base
mount -t tmpfs -o nosuid,noexec none base
silent mount -t fuse.txfs "$PWD/base" "$PWD/mnt" -o suid,dev,exec
has mnt nosuid "a nosuid base"
has mnt noexec "a noexec base"
lacks mnt nodev "a base with devices"
silent mount -o remount,suid,exec mnt
has mnt nosuid "a nosuid base, remounted"
has mnt noexec "a noexec base, remounted"
txfs umount mnt >/dev/null
umount base
mkdir ws/part
mount -t tmpfs -o nosuid none ws/part
silent mount -t fuse.txfs "$PWD/ws" "$PWD/mnt" -o "suid,dev,store=$PWD/store"
has mnt nosuid "a nosuid filesystem inside the base"
lacks mnt nodev "a filesystem with devices inside the base"
txfs umount mnt >/dev/null
END
unshare -m sh -eu "$TMPDIR/inside"
