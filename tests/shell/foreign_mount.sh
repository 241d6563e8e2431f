#!/bin/bash
# A mount that another user made to look like txfs', with a daemon of that user
# behind it: root believes nothing of it, and waits for nothing.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs fusermount3 setpriv unshare python3
needs_root
if [ -z "${IN_NAMESPACE-}" ]; then
  IN_NAMESPACE=1 exec unshare --mount bash -eu "$0"
fi
mknod -m 666 "$TMPDIR/fuse" c 10 229 2>/dev/null &&
  mount --bind "$TMPDIR/fuse" /dev/fuse || skip "no device nodes here"
echo user_allow_other >"$TMPDIR/fuse.conf"
[ -e /etc/fuse.conf ] || skip "no /etc/fuse.conf"
mount --bind "$TMPDIR/fuse.conf" /etc/fuse.conf
uid=64998
# fusermount3 wants a user of a name.
cp /etc/passwd "$TMPDIR/passwd"
for id in $uid 64997; do
  echo "txfs-test$((uid - id)):x:$id:$id::/:/bin/sh" >>"$TMPDIR/passwd"
done
mount --bind "$TMPDIR/passwd" /etc/passwd
trap 'rm -rf "/tmp/txfs-$uid" /tmp/txfs-64997' EXIT
rm -rf "/tmp/txfs-$uid" /tmp/txfs-64997
as_bob() { setpriv --reuid=$uid --regid=$uid --clear-groups env HOME="$PWD/bob" XDG_STATE_HOME="$PWD/bob/state" "$@"; }
mkdir bob ws mnt
chown $uid:$uid bob
cp "$TXFS" bob/txfs-program
chmod 755 bob/txfs-program
echo base >ws/file
as_bob mkdir bob/mnt bob/ws
ln -s bob/mnt link
ln -s "$TXFS" mount.fuse.txfs

# Where bob's daemon would listen, which a real one shows.
as_bob bob/txfs-program mount bob/ws bob/mnt
sockets=$(find "/tmp/txfs-$uid" "/run/user/$uid/txfs" bob/state -name '*.sock' 2>/dev/null || true)
[ -n "$sockets" ] || fail "no sockets of bob's"
# What is honest is not root's all the same.
refuses_with_hint 1 "is a mount of user $uid" timeout 30 txfs -C bob/mnt status
# Root acts for bob where that is said, also by a path.
as_bob bob/txfs-program umount bob/mnt
as_bob bob/txfs-program mount bob/ws bob/mnt
cp "$TXFS" /tmp/txfs-program-$uid
PATH_OF=/tmp/txfs-program-$uid
chmod 755 $PATH_OF
$PATH_OF --as-owner umount bob/mnt
rm $PATH_OF
mountpoint -q bob/mnt && fail "root could not unmount for bob"
refuses_with_hint 1 "belongs to" txfs adopt ws --from "$(dirname "$(find bob/state/txfs/workspaces -name FORMAT | head -n 1)")"

# Mounts with txfs' name, and never answers; takes what connects, and never
# answers either.
cat >attack.py <<'END'
import array, os, socket, sys
mountpoint, options, sockets = sys.argv[1], sys.argv[2], sys.argv[3:]
listeners = []
for path in sockets:
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    os.chmod(path, 0o777)
    listener.listen(64)
    listeners.append(listener)
ours, theirs = socket.socketpair()
pid = os.fork()
if pid == 0:
    os.dup2(theirs.fileno(), 3)
    os.environ["_FUSE_COMMFD"] = "3"
    os.execvp("fusermount3", ["fusermount3", "-o", options, "--", mountpoint])
_, control, _, _ = ours.recvmsg(1, socket.CMSG_SPACE(4))
os.waitpid(pid, 0)
if not control:
    sys.exit("fusermount3 did not mount")
print("ready", flush=True)
sys.stdin.read()
END
is_there() { grep -q "^[^ ]* $PWD/bob/mnt fuse\.[a-z]* " /proc/self/mounts; }

# What is root's own goes on, and does not ask bob.
txfs mount ws mnt
echo mine >mnt/file
# A link that a repository ships, and places of which a command is told.
mkdir linked adopting other
ln -s "$PWD/bob/mnt" linked/.txfs
for options in "subtype=txfs" "subtype=txfs,allow_other" "subtype=other,allow_other"; do
  mkfifo ready keep
  # shellcheck disable=SC2086 # paths without blanks
  as_bob python3 attack.py "$PWD/bob/mnt" "$options,fsname=$PWD/ws" $sockets <keep >ready &
  attacker=$!
  exec 7>keep
  read -r _ <ready
  is_there || fail "the attack did not begin"
  for command in "-C bob/mnt status" "-C bob/mnt/deep list" "-C link status" "-C link/below diff" \
    "umount bob/mnt" "umount --lazy link" "mount ws bob/mnt --name x" "mount bob/mnt" "enter bob/mnt" \
    "--store bob/mnt/store list" "-C ws policy show ../bob/mnt" "-C mnt diff $PWD/link/x" \
    "policy check bob/mnt/file" "policy test bob/mnt/cases" "policy lint link/file" \
    "mount ws other --name x --policy link/file" "adopt adopting --from link/store"; do
    # shellcheck disable=SC2086 # words
    refuses_with_hint 1 "$PWD/bob/mnt is a mount of user $uid" timeout 30 txfs $command
    grep -q -- --as-owner "$TMPDIR/err" || fail "$command: no way on is said"
  done
  refuses_with_hint 1 "is a mount of user $uid" timeout 30 ./mount.fuse.txfs "$PWD/ws" "$PWD/bob/mnt"
  equal "['running']" "$(timeout 30 txfs -C ws list --json | json '[t["daemon"] for t in d if t["state"] == "active"]')" "the list"
  refuses 1 "is not inside a txfs workspace" timeout 30 txfs -C linked list
  # Bob's own command waits for what bob mounted, like any other of bob's.
  case $options in
    subtype=txfs*) refuses_with_hint 1 "does not answer" timeout 30 txfs --as-owner -C link list ;;
  esac
  timeout 30 txfs -C mnt diff >out 2>err
  contains "$(cat out)" "+mine"
  equal "" "$(cat err)" "what is said of a mount that concerns nobody"

  timeout 30 txfs mount ws other --name second 2>err
  timeout 30 txfs umount other
  timeout 30 txfs -C ws -t second discard >/dev/null
  is_there || fail "somebody removed the mount"
  exec 7>&-
  wait $attacker || true
  umount -l bob/mnt
  rm ready keep
  # shellcheck disable=SC2086
  rm -f $sockets
done

# Where a daemon of another user, or root, would have its socket.
for user in 64997 0; do
  [ ! -e /tmp/txfs-$user ] || continue
  mkdir -m 777 /tmp/txfs-$user
  chown $uid /tmp/txfs-$user
  mkfifo ready keep
  as_bob python3 attack.py /tmp/txfs-$user subtype=other,allow_other <keep >ready &
  attacker=$!
  exec 7>keep
  read -r _ <ready
  mkdir -p eve/ws eve/mnt
  cp "$TXFS" eve/txfs-program
  chown -R $user eve
  as_user() { setpriv --reuid=$user --regid=$user --clear-groups env HOME="$PWD/eve" XDG_STATE_HOME="$PWD/eve/state" "$@"; }
  as_user timeout 60 eve/txfs-program mount eve/ws eve/mnt
  as_user timeout 60 eve/txfs-program -C eve/mnt status >out
  contains "$(cat out)" "$PWD/eve/mnt"
  as_user timeout 60 eve/txfs-program umount eve/mnt
  exec 7>&-
  wait $attacker || true
  umount -l /tmp/txfs-$user
  rmdir /tmp/txfs-$user
  rm -rf ready keep eve
done

# Nor does a link of his decide where root mounts.
mkdir aim
as_bob ln -s "$PWD/aim" bob/aim
for command in "mount ws bob/aim --name x" "mount bob/aim" "enter bob/aim"; do
  # shellcheck disable=SC2086 # words
  refuses_with_hint 1 "a symbolic link of txfs-test0" txfs $command
done
txfs umount mnt

# Also not one that takes the place of a directory between two looks at it.
cat >swap.py <<'END'
import ctypes, os, random, sys
os.chdir(sys.argv[1])
os.symlink(sys.argv[2], "link")
libc = ctypes.CDLL(None)
renameat2, exchange = 316 if os.uname().machine == "x86_64" else 276, 2
while os.path.exists(sys.argv[3]):
    libc.syscall(renameat2, -100, b"at", -100, b"link", exchange)
    for _ in range(random.randrange(20000)):
        pass
END
as_bob mkdir bob/swap bob/swap/at
mkdir private
touch swapping
chmod 755 . && as_bob python3 swap.py "$PWD/bob/swap" "$PWD/private" "$PWD/swapping" &
swapper=$!
echo secret >private/secret
for _ in $(seq 40); do
  timeout 60 txfs mount ws bob/swap/at --name x >out 2>err || true
  mountpoint -q private && fail "mounted where bob's link led"
  sed -n "s,^[^ ]* \($PWD/bob/swap/[^ ]*\) fuse.txfs.*,\1,p" /proc/self/mounts |
    while read -r at; do txfs umount "$at" 2>/dev/null || umount -l "$at"; done
  timeout 60 txfs mount bob/swap/at mnt >out 2>err && fail "mounted what bob's link led to"
done
rm swapping
wait $swapper
