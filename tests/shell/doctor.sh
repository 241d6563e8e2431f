#!/bin/sh
# What `txfs doctor` finds where all is well, and where something is missing:
# it says so, names the remedy, and leaves nothing behind.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_root
needs_fuse
needs bwrap fusermount3 setpriv unshare python3
if [ -z "${IN_NAMESPACE-}" ]; then
  IN_NAMESPACE=1 exec unshare --mount sh -eu "$0"
fi
mknod -m 666 "$TMPDIR/fuse" c 10 229 2>/dev/null || skip "no device nodes here"
mknod -m 600 "$TMPDIR/fuse-of-root" c 10 229
mount --bind "$TMPDIR/fuse" /dev/fuse
# Runs of others have their directories in /run, and mounts that are dead.
mount -t tmpfs none /run
awk '$3 == "fuse.txfs" { print $2 }' /proc/mounts | while read -r others; do
  umount -l "$others" || true
done
uid=64996
# fusermount3 wants a user of a name.
cp /etc/passwd "$TMPDIR/passwd"
echo "txfs-doctor:x:$uid:$uid::/:/bin/sh" >>"$TMPDIR/passwd"
mount --bind "$TMPDIR/passwd" /etc/passwd
trap 'rm -rf "/tmp/txfs-$uid"' EXIT

mkdir roots roots/ws roots/tmp user user/ws user/tmp empty
cp "$TXFS" program
chmod 755 program
echo base | tee roots/ws/file >user/ws/file
chown -R $uid:$uid user
as_root() { env -C roots/ws HOME="$PWD/roots" XDG_STATE_HOME="$PWD/roots/state" TMPDIR="$PWD/roots/tmp" "$@"; }
as_user() {
  setpriv --reuid=$uid --regid=$uid --clear-groups env -C user/ws HOME="$PWD/user" \
    XDG_STATE_HOME="$PWD/user/state" TMPDIR="$PWD/user/tmp" "$@"
}
txfs=$PWD/program

# says STATE NAME PART REMEDY COMMAND...: the probe NAME, of the command with
# --json, has STATE, and PART and REMEDY are in what it says.
says() {
  state=$1 name=$2 part=$3 remedy=$4
  shift 4
  status=0
  "$@" --json >found 2>err || status=$?
  [ ! -s err ] || fail "$*: said on stderr: $(cat err)"
  equal "$state" "$(json "next(p['state'] for p in d['probes'] if p['name'] == '$name')" <found)" \
    "state of $name in $(cat found)"
  contains "$(json "next(p['meaning'] for p in d['probes'] if p['name'] == '$name')" <found)" "$part"
  contains "$(json "next(p['remedy'] for p in d['probes'] if p['name'] == '$name')" <found)" "$remedy"
  case $state in
    fail) equal 1 $status "exit code of $*" ;;
    *) equal 0 $status "exit code of $*: $(cat found)" ;;
  esac
  equal "$status" "$(json '0 if d["works"] else 1' <found)" "works"
}
# run_names REMEDY COMMAND...: the run fails with that hint, and did nothing.
run_names() {
  remedy=$1
  shift
  status=0
  "$@" run -- /usr/bin/touch made >out 2>err || status=$?
  equal 125 $status "exit code of $* run ($(cat err))"
  grep -q "^hint: .*$remedy" err || fail "$* run: said $(cat err)"
  [ ! -e roots/ws/made ] && [ ! -e user/ws/made ] || fail "$* run: the command ran"
}
remedy_of() { json "next(p['remedy'] for p in d['probes'] if p['name'] == '$1')" <found; }
nothing_is_left() {
  equal "" "$(find roots/tmp user/tmp -mindepth 1)" "temporary files"
  equal "" "$(grep -F "$PWD/" /proc/self/mountinfo || true)" "mounts"
  equal "roots/ws/file user/ws/file" "$(find roots/ws user/ws -mindepth 1 -printf '%p ' | sed 's/ $//')" "files"
  [ ! -e roots/state ] && [ ! -e user/state ] || fail "the state directory was made"
  equal "" "$(find /run/txfs /run/user "/tmp/txfs-$uid" 2>/dev/null)" "in the runtime directories"
}

# All is well.
for as in as_root as_user; do
  $as "$txfs" doctor >found 2>err || fail "$as: $(cat found err)"
  contains "$(tail -n 1 found)" "txfs run works here"
  equal "" "$(grep -v '^ok \|^txfs\|^note  cgroups\|^      remedy: run txfs where a cgroup\|^note  network-proxy\|^      remedy: install it: apt install tinyproxy' found || true)" "$as"
  says ok mount "written to, read, committed" None $as "$txfs" doctor
  nothing_is_left
done
# Also for a workspace that is named, and from elsewhere.
as_user "$txfs" doctor "$PWD/user/ws" >found || fail "with an argument: $(cat found)"
contains "$(cat found)" "a commit to $PWD/user/ws replaces"

# Programs that are missing.
says fail bwrap "is not in PATH" "apt install bubblewrap" as_root env PATH="$PWD/empty" "$txfs" doctor
says fail fusermount3 "is not in PATH" "apt install fuse3" as_user env PATH="$PWD/empty" "$txfs" doctor
tinyproxy=$(command -v tinyproxy || :)
[ -z "$tinyproxy" ] || mount --bind /dev/null "$tinyproxy"
says note network-proxy "is not in PATH" "apt install tinyproxy-bin" as_root "$txfs" doctor
[ -z "$tinyproxy" ] || umount "$tinyproxy"
shfmt=$(command -v shfmt || :)
[ -z "$shfmt" ] || mount --bind /dev/null "$shfmt"
says fail shell-parser "shfmt" "apt install shfmt" as_root "$txfs" doctor
[ -z "$shfmt" ] || umount "$shfmt"
nothing_is_left
run_names "apt install bubblewrap" as_root env PATH="$PWD/empty" "$txfs"
rm -rf roots/state /run/txfs

# A device that is not for everybody.
mount --bind "$TMPDIR/fuse-of-root" /dev/fuse
says fail fuse-device "Permission denied" "chmod 666 /dev/fuse" as_user "$txfs" doctor
says fail mount "" "chmod 666 /dev/fuse" as_user "$txfs" doctor
umount /dev/fuse
nothing_is_left

# Root of a user namespace that has only some ids, as in a container.
says ok sandbox "runs in a sandbox" None as_root unshare -Urm "$txfs" doctor
as_root unshare -Urm "$txfs" run -- touch made 2>err || fail "run in a user namespace: $(cat err)"
rm roots/ws/made
rm -rf roots/state /run/txfs

# Root of a container that may not map ids.
unable() { as_root setpriv --bounding-set=-setuid,-setgid --inh-caps=-setuid,-setgid "$@"; }
says fail user-namespace "no ids can be mapped" "SETUID and SETGID" unable "$txfs" doctor
run_names "SETUID and SETGID" unable "$txfs"
rm -rf roots/state /run/txfs

# No user namespaces, for the reasons that there are.
cat >none-left <<'END2'
echo 0 >/proc/sys/user/max_user_namespaces
exec "$@"
END2
limited() { as_root unshare -Urm sh "$PWD/none-left" "$@"; }
says fail user-namespace "user.max_user_namespaces is 0" "sysctl -w user.max_user_namespaces" limited "$txfs" doctor
nothing_is_left
run_names "sysctl -w user.max_user_namespaces" limited "$txfs"
rm -rf roots/state /run/txfs
# What one does in a sandbox where no more namespaces are allowed.
as_user bwrap --unshare-user --disable-userns --dev-bind / / "$txfs" doctor >found && fail "worked in a sandbox"
contains "$(cat found)" "no user namespace can be made"

case $(uname -m) in
  x86_64) unshare=272 renameat2=316 ;;
  aarch64) unshare=97 renameat2=276 ;;
  *) unshare="" ;;
esac
# refusing NUMBER ERRNO COMMAND...: with a seccomp filter that fails one system call.
cat >refusing <<'END2'
import ctypes, os, struct, sys
number, errno = int(sys.argv[1]), int(sys.argv[2])
code = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | errno),
        (0x06, 0, 0, 0x7fff0000)]
filter = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *c) for c in code))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(code), ctypes.addressof(filter)))
if ctypes.CDLL(None, use_errno=True).prctl(22, 2, ctypes.byref(program), 0, 0) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
os.execv(sys.argv[3], sys.argv[3:])
END2
refusing() { as_root "$PYTHON" "$PWD/refusing" "$@"; }
if [ -n "$unshare" ]; then
  says fail user-namespace "a seccomp filter forbids it" "seccomp=unconfined" refusing $unshare 1 "$txfs" doctor
  run_names "seccomp=unconfined" refusing $unshare 1 "$txfs"
  rm -rf roots/state /run/txfs
  # A filesystem without the renames; commits have other means there.
  says note workspace "RENAME_EXCHANGE, RENAME_NOREPLACE" "no other program" refusing $renameat2 22 "$txfs" doctor
  # Kernel parameters of other distributions.
  mkdir kernel
  echo 1 >kernel/apparmor_restrict_unprivileged_userns
  echo 1 >kernel/unprivileged_userns_clone
  mount --bind kernel /proc/sys/kernel
  says fail user-namespace "kernel.apparmor_restrict_unprivileged_userns is 1, as on Ubuntu" \
    "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0" refusing $unshare 1 "$txfs" doctor
  umount /proc/sys/kernel
fi
# A container covers parts of /proc; then the kernel allows no other one.
mount -t tmpfs none /proc/sys/fs
says fail sandbox "mount proc" "systempaths=unconfined" as_user "$txfs" doctor
says fail sandbox "mount proc" "systempaths=unconfined" as_root "$txfs" doctor
run_names "systempaths=unconfined" as_root "$txfs"
umount /proc/sys/fs
rm -rf roots/state /run/txfs
says fail fusermount3 "no_new_privs" "outside of this sandbox" as_user setpriv --no-new-privs "$txfs" doctor
nothing_is_left

# Workspaces and stores that are of no use.
says fail workspace "belongs to root" "work as root" as_user "$txfs" doctor "$PWD/roots/ws"
mount --bind user/ws user/ws
mount -o remount,bind,ro user/ws
says fail workspace "Read-only file system" "may write to" as_user "$txfs" doctor
umount user/ws
mkdir -m 777 open
says fail state-directory "is writable by other users" "XDG_STATE_HOME" \
  as_user env XDG_STATE_HOME="$PWD/open/state" "$txfs" doctor
mkdir small
mount -t tmpfs -o size=1M,mode=777 none small
says fail workspace-store "has no space" "txfs gc" as_root "$txfs" doctor --store "$PWD/small/store"
umount small
nothing_is_left

# In a mount: it stays as it is, and so does what is beneath it.
as_root "$txfs" mount . >out 2>&1
echo new >roots/ws/new
says ok workspace "a commit to $PWD/roots/ws" None as_root "$txfs" doctor
says fail workspace-store "network or FUSE" "local filesystem" as_root "$txfs" doctor --store "$PWD/roots/ws/store"
equal "A	new" "$(as_root "$txfs" diff --name-status)" "changes"
as_root "$txfs" commit 2>err >out || fail "commit: $(cat err)"
as_root "$txfs" discard >out 2>&1

# Leftovers and dead mounts are named with the command that clears them.
kill -KILL "$(as_root "$txfs" status --json | json 'd["pid"]')"
tries=0
while stat roots/ws/file >/dev/null 2>&1 && [ $tries -lt 10000 ]; do
  tries=$((tries + 1))
done
mkdir -p roots/state/txfs/runs/run-aaaaaa /run/txfs/run-bbbbbb /run/txfs/run-cccccc /run/txfs/run-dddddd
mount -t tmpfs none /run/txfs/run-cccccc
as_root "$txfs" mount ../../empty /run/txfs/run-dddddd >out 2>&1
kill -KILL "$(as_root "$txfs" -C /run/txfs/run-dddddd status --json | json 'd["pid"]')"
in_roots() { (cd / && HOME=$PWD/roots XDG_STATE_HOME="$roots/state" TMPDIR="$roots/tmp" "$@"); }
roots=$PWD/roots
says note workspace "lies in a dead mount" "txfs umount" in_roots "$txfs" doctor "$PWD/roots/ws"
says note dead-mounts "$PWD/roots/ws" "txfs umount" in_roots "$txfs" doctor "$PWD/empty"
in_roots sh -c "$(remedy_of dead-mounts)" >out 2>&1 || fail "the remedy: $(cat out)"
equal "" "$(grep -F "$PWD/" /proc/self/mountinfo || true)" "mounts after the remedy"
says note leftovers "2 paths" "run-bbbbbb" as_root "$txfs" doctor
as_root sh -c "$(remedy_of leftovers)"
[ -d /run/txfs/run-cccccc ] || fail "a mountpoint in use was removed"
says ok leftovers "" None as_root "$txfs" doctor
equal "" "$(find roots/tmp user/tmp -mindepth 1)" "temporary files"
