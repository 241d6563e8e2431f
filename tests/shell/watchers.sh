#!/bin/sh
# What a process that watches a mount (inotify) hears of changes that no process
# makes there: by discard, rollback, undo and commits of other transactions. As
# root, and as an ordinary user.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs python3 setpriv unshare
if [ -z "${AS_USER-}" ]; then
  needs_fuse
else
  cd "$AS_USER"
fi

cat >watch.py <<'END'
# usage: watch.py READY FENCE PATH...
# Prints the events of PATHs until a file is made in the directory FENCE: what
# happened before is printed by then. Writes to READY when it has begun.
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
NAMES = [(0x2, "MODIFY"), (0x4, "ATTRIB"), (0x8, "CLOSE_WRITE"),
         (0x40, "MOVED_FROM"), (0x80, "MOVED_TO"), (0x100, "CREATE"),
         (0x200, "DELETE"), (0x400, "DELETE_SELF"), (0x800, "MOVE_SELF")]
fd = libc.inotify_init1(0)
watches = {}
for path in sys.argv[2:]:
    at = libc.inotify_add_watch(fd, os.fsencode(path), sum(bit for bit, _ in NAMES))
    if at < 0:
        sys.exit(path + ": " + os.strerror(ctypes.get_errno()))
    watches[at] = path
with open(sys.argv[1], "w") as ready:
    ready.write("ready\n")
ended = False
while not ended:
    events = os.read(fd, 1 << 16)
    at = 0
    while at < len(events):
        watch, mask, _, size = struct.unpack_from("iIII", events, at)
        name = os.fsdecode(events[at + 16:at + 16 + size].rstrip(b"\0"))
        at += 16 + size
        kinds = [kind for bit, kind in NAMES if mask & bit]
        if mask & 0x40000000: kinds.append("ISDIR")
        if mask & 0x4000: print("OVERFLOW")
        elif watches[watch] == sys.argv[2]: ended = True
        elif kinds and kinds != ["ISDIR"]:
            print(",".join(kinds), watches[watch] + ("/" + name if name else ""))
END

# watch PATH...: begins to watch.
watch() {
  rm -rf fence ready
  mkdir fence
  mkfifo ready
  python3 watch.py ready fence "$@" >events 2>&1 &
  watcher=$!
  read -r line <ready
  equal ready "$line" "the watcher"
}

# heard EVENTS WHAT: ends the watch, which has seen these, in any order.
heard() {
  : >fence/end
  wait $watcher || fail "$2: $(cat events)"
  equal "$1" "$(LC_ALL=C sort events)" "$2"
}

mkdir -p ws/dir ws/gone/below mnt other
for name in same changed attributes deleted replaced dir/inner dir/same gone/file; do
  echo base >"ws/$name"
done
ln -s same ws/link
manifest_with_times ws >before
txfs mount ws mnt

# work: one change of each kind.
work() {
  echo more >>mnt/changed
  chmod 600 mnt/attributes
  rm mnt/deleted
  rm -r mnt/gone
  echo new >mnt/replaced.tmp
  mv mnt/replaced.tmp mnt/replaced
  mv mnt/dir/inner mnt/dir/moved
  ln -sf changed mnt/link
  mkdir mnt/newdir
  echo new >mnt/newdir/file
  echo new >mnt/new
  cat mnt/dir/same mnt/same >/dev/null
}
# What takes all of that back.
back='CREATE mnt/deleted
CREATE mnt/dir/inner
CREATE,ISDIR mnt/gone
DELETE mnt/dir/moved
DELETE mnt/new
DELETE,ISDIR mnt/newdir
MODIFY mnt/attributes
MODIFY mnt/changed
MODIFY mnt/link
MODIFY mnt/replaced'

# --- discard ---------------------------------------------------------------------
work
watch mnt mnt/dir
txfs -C mnt discard >/dev/null
heard "$back" "a discard"
same_tree ws mnt manifest_with_times
manifest_with_times ws | diff - before >&2 || fail "the base has changed"
equal 0 "$(txfs -C mnt status --json | json 'd["changes"]')" "changes by what was announced"
equal "" "$(txfs -C mnt log --denied 2>/dev/null)" "denials of what was announced"

# What a process made of a name meanwhile stays.
work
watch mnt mnt/dir
txfs -C mnt discard new dir/moved dir/inner changed >/dev/null
heard 'CREATE mnt/dir/inner
DELETE mnt/dir/moved
DELETE mnt/new
MODIFY mnt/changed' "a discard of paths"
txfs -C mnt discard >/dev/null

# --- rollback --------------------------------------------------------------------
echo of-the-transaction >mnt/own
echo of-the-transaction >mnt/deleted
txfs -C mnt savepoint one >/dev/null
work
rm mnt/own
watch mnt mnt/dir
txfs -C mnt rollback one >/dev/null
heard "$(printf 'CREATE mnt/own\n%s' "$back" | LC_ALL=C sort)" "a rollback"
equal of-the-transaction "$(cat mnt/own mnt/deleted | uniq)" "content after a rollback"
txfs -C mnt discard >/dev/null

# --- commits of another transaction, and undo --------------------------------------
txfs mount ws other --name other
cat mnt/changed mnt/deleted mnt/replaced mnt/same mnt/dir/inner >/dev/null
ls -R mnt >/dev/null
echo more >>other/changed
rm other/deleted
rm -r other/gone
echo new >other/new
mkdir other/newdir
mv other/dir/inner other/dir/moved
await_tick
watch mnt mnt/dir
txfs -C other commit -m other >/dev/null
heard 'CREATE mnt/dir/moved
CREATE mnt/new
CREATE,ISDIR mnt/newdir
DELETE mnt/deleted
DELETE mnt/dir/inner
DELETE,ISDIR mnt/gone
MODIFY mnt/changed' "the commit of another transaction"
same_tree ws mnt
ls -R mnt >/dev/null
cat mnt/new mnt/changed mnt/dir/moved >/dev/null
await_tick
watch mnt mnt/dir
txfs -C mnt undo >/dev/null
heard 'CREATE mnt/deleted
CREATE mnt/dir/inner
CREATE,ISDIR mnt/gone
DELETE mnt/dir/moved
DELETE mnt/new
DELETE,ISDIR mnt/newdir
MODIFY mnt/changed' "an undo"
same_tree ws mnt
txfs umount other

# A commit shows nothing new in its own mount.
work
watch mnt mnt/dir
txfs -C mnt commit -m own >/dev/null
heard '' "the commit of the own transaction"

# --- many --------------------------------------------------------------------------
mkdir mnt/many
(cd mnt/many && seq 3000 | xargs touch)
txfs -C mnt commit -m many >/dev/null
(cd mnt/many && seq 3000 | xargs rm)
echo more >>mnt/same
watch mnt mnt/many
txfs -C mnt discard >/dev/null
heard 'ATTRIB,ISDIR mnt
ATTRIB,ISDIR mnt/many
ATTRIB,ISDIR mnt/many' "one event of each directory"
equal 3000 "$(find mnt/many -type f | wc -l)" "files after that discard"

# --- what policies and other mounts say ------------------------------------------------
txfs umount mnt
cat >deny.toml <<'END'
schema = 1

[[fs]]
id = "nothing"
path = "**"
reason = "a rule for everything"
suggest = "nothing"
END
txfs mount ws mnt --policy deny.toml --name denied
txfs mount ws other --name other
echo more >>other/changed
rm other/replaced
cat mnt/changed mnt/replaced >/dev/null
# A filesystem over a part of the mount is not touched.
if [ -z "${AS_USER-}" ]; then
  mount -t tmpfs tmpfs mnt/dir
  echo covered >mnt/dir/inner
  echo more >>other/dir/same
fi
watch mnt
txfs -C other commit -m again >/dev/null
heard 'DELETE mnt/replaced
MODIFY mnt/changed' "events in a mount whose policy denies everything"
equal 0 "$(txfs -C mnt status --json | json 'd["changes"]')" "changes in that mount"
equal "[]" "$(txfs -C mnt status --json | json 'd["denied"]')" "denials in that mount"
[ -n "${AS_USER-}" ] || umount mnt/dir
txfs umount mnt
txfs umount other

# --- the same as an ordinary user ---------------------------------------------------------
[ "$(id -u)" -eq 0 ] || exit 0
mkdir "$TMPDIR/user" "$TMPDIR/user/home" "$TMPDIR/user/work"
cp "$TXFS" "$TMPDIR/user/txfs"
chmod 755 "$TMPDIR/user/txfs"
chown -R 65534:65534 "$TMPDIR/user"
mknod -m 666 "$TMPDIR/fuse" c 10 229 2>/dev/null || skip "no device nodes here"
# shellcheck disable=SC2016 # for the other shell
exec unshare --mount sh -euc '
  mount --bind "$TMPDIR/fuse" /dev/fuse
  export AS_USER="$TMPDIR/user/work" TXFS="$TMPDIR/user/txfs" HOME="$TMPDIR/user/home"
  export XDG_STATE_HOME="$HOME/.local/state" PATH="$TMPDIR/user:$PATH" TMPDIR="$TMPDIR/user"
  exec setpriv --reuid=65534 --regid=65534 --clear-groups sh -eu "$0"' "$0"
