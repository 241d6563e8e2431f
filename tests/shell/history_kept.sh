#!/bin/sh
# The history of a repository, by the default policy: nobody but git changes what
# is in it, and what programs that know git do goes on.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs git python3

quietly() { "$@" >"$TMPDIR/said" 2>&1 || fail "$*: $(cat "$TMPDIR/said")"; }
mkdir ws mnt
cd ws
quietly git init -b main
git config gc.auto 0
echo one >file
git add file && git commit -qm one
git gc -q
echo two >file
git commit -qam two
git branch other
git pack-refs --all
git branch third
git branch replaced
cd ..
git -C ws for-each-ref >refs
txfs mount ws mnt
loose=$(cd ws && find .git/objects/?? -type f | head -1)
pack=$(cd ws && find .git/objects/pack -name '*.pack')

# refused CODE: python's CODE fails with EPERM.
refused() {
  got=$(cd mnt && python3 -c "
import ctypes, errno, mmap, os
def exchange(a, b):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(-100, a.encode(), -100, b.encode(), 2) != 0:
        raise OSError(ctypes.get_errno(), 'exchange')
def punch(path):
    libc = ctypes.CDLL(None, use_errno=True)
    with open(path, 'r+b') as f:
        if libc.fallocate(f.fileno(), 3, ctypes.c_long(0), ctypes.c_long(1)) != 0:
            raise OSError(ctypes.get_errno(), 'fallocate')
try:
    $1
    print('ok')
except OSError as e:
    print(errno.errorcode[e.errno])")
  equal EPERM "$got" "$1"
}
chmod -R u+w mnt/.git/objects
echo other >mnt/evil
for path in "$loose" "$pack" "${pack%pack}idx" .git/refs/heads/third .git/HEAD .git/packed-refs; do
  refused "open('$path', 'w')"
  refused "os.write(os.open('$path', os.O_WRONLY), b'x')"
  refused "os.write(os.open('$path', os.O_WRONLY | os.O_APPEND), b'x')"
  refused "os.truncate('$path', 1)"
  refused "os.truncate('$path', 100000)"
  refused "punch('$path')"
  refused "exchange('evil', '$path')"
  refused "os.unlink('$path')"
  refused "f = open('$path', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[0] = 65; m.flush()"
done
for path in "$loose" "$pack" "${pack%pack}idx"; do
  refused "os.rename('evil', '$path')"
  refused "os.rename('$path', 'away')"
done
for path in .git/HEAD .git/packed-refs .git/refs/heads/third .git/refs/heads \
  .git/logs .git/logs/HEAD .git/logs/refs/heads/main; do
  refused "os.rename('$path', 'away')"
done
# As libraries for git replace a ref.
cp mnt/.git/refs/heads/replaced mnt/.git/refs/heads/replaced.lock
mv mnt/.git/refs/heads/replaced.lock mnt/.git/refs/heads/replaced
for path in .git/logs/HEAD .git/logs/refs/heads/main; do
  refused "open('$path', 'w')"
  refused "os.truncate('$path', 1)"
  refused "punch('$path')"
  refused "exchange('evil', '$path')"
  refused "os.unlink('$path')"
done
for command in ': >'"$loose" ': >.git/HEAD' ': >.git/packed-refs' 'cp evil '"$pack" \
  'dd if=evil of=.git/refs/heads/third conv=notrunc' 'for f in $(find .git/objects -type f); do : >$f; done' \
  'ln -f evil '"$loose" 'sed -i s/./x/ '"$loose" 'tee .git/refs/heads/third <evil'; do
  (cd mnt && sh -ec "$command" >/dev/null 2>&1) && fail "not refused: $command"
done
rm mnt/evil
quietly git -C mnt fsck --full
git -C mnt for-each-ref >refs.mnt
equal "$(cat refs)" "$(cat refs.mnt)" "refs"
contains "$(txfs -C mnt log --denied)" "txfs-git-kept"

# git itself, and what libraries that know git do.
cd mnt
python3 - <<'CODE'
import os, subprocess
main = subprocess.check_output(["git", "rev-parse", "main"], text=True).strip()
# A ref is replaced from its lock file, and the log gets a line more.
for ref in ".git/refs/heads/third", ".git/HEAD":
    with open(ref + ".lock", "x") as lock:
        lock.write(open(ref).read())
    os.rename(ref + ".lock", ref)
with open(".git/logs/HEAD", "a") as log:
    log.write(f"{main} {main} A <a@example.org> 1 +0000\tby another\n")
CODE
quietly git log -g
echo three >file
quietly git commit -am three
quietly git checkout other
quietly git checkout -b fourth
quietly git branch -D third
quietly git branch -m other fifth
quietly git tag v1
quietly git stash list
quietly git reflog expire --expire=now --all
quietly git gc --prune=now
quietly git checkout main
quietly git fsck
cd ..
equal "" "$(git -C mnt status --short)" "what is left"
txfs umount mnt
