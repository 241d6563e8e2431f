#!/bin/sh
# txfs run where a disk is full, before the begin, while the command writes, and
# at the commit: the base is as before or as after, and what happened is said. As
# root and as an ordinary user.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs bwrap fusermount3 mkfs.ext4 python3 setpriv unshare
needs_fuse
needs_root
alone
mknod -m 666 "$TMPDIR/fuse" c 10 229 || skip "no device nodes here"
mount --bind "$TMPDIR/fuse" /dev/fuse
install -m 755 "$TXFS" txfs-program
TXFS=$PWD/txfs-program
mkdir disk
disk=$PWD/disk
tear_down() {
  cd "$TMPDIR/work"
  umount "$disk" 2>/dev/null || umount -l "$disk" 2>/dev/null || :
}
trap tear_down EXIT
trap 'exit 143' TERM INT

as() { setpriv --reuid="$uid" --regid="$uid" --clear-groups "$@"; }

# new_disk: an empty small filesystem.
new_disk() {
  rm -f image
  truncate -s 64M image
  mkfs.ext4 -q -F -m 0 image
  mount -o loop image disk 2>err || skip "no loop device: $(cat err)"
  rmdir disk/lost+found
  mkdir disk/store disk/state disk/scratch
  chown "$uid:$uid" disk disk/*
}

# fill.py FILE KIB: no block is left but KIB.
cat >fill.py <<'END'
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for size in (1 << 20, 4096, 512, 1):
    try:
        while True:
            os.write(fd, b"x" * size)
            os.fsync(fd)
    except OSError:
        pass
os.ftruncate(fd, os.fstat(fd).st_size - (int(sys.argv[2]) << 10))
os.fsync(fd)
END
fill() { as python3 fill.py disk/scratch/filler "$1"; }
available() { df --output=avail disk | tail -n 1; }

# nothing_is_left WHAT
nothing_is_left() {
  ! grep -F " fuse.txfs " /proc/mounts || fail "$1: a mount is left"
  equal "" "$(find /run/txfs "$HOME/.local/state/txfs/runs" disk/state/txfs/runs -name 'run-*' 2>/dev/null)" \
    "what is left: $1"
}

# run CODE OUTCOME OPTION...: in the workspace $ws.
run() {
  code=$1 outcome=$2
  shift 2
  rm -f "$HOME/report"
  status=0
  as "$TXFS" -C "$ws" run --json "$HOME/report" "$@" >out 2>err || status=$?
  equal "$code" "$status" "exit code of $* ($(cat out err))"
  equal "$outcome" "$(json 'd["outcome"]' <"$HOME/report")" "outcome of $* ($(cat out err))"
  equal "$code" "$(json 'd["exit_code"]' <"$HOME/report")" "the report of $*"
}

# does_not_begin REFUSES WHAT [--store DIR]
does_not_begin() {
  how=$1 what=$2
  shift 2
  : >ran
  chown "$uid:$uid" ran
  rm -f "$HOME/report"
  $how 125 "No space left on device" as "$TXFS" "$@" -C ws run --json "$HOME/report" --rw "$PWD/ran" \
    -- sh -c "echo ran >$PWD/ran; echo torn >file"
  equal "" "$(cat ran)" "what ran, $what"
  equal "not begun 125" "$(json 'd["outcome"] + " " + str(d["exit_code"])' <"$HOME/report")" "the report, $what"
  same_tree expected ws
}

before_the_begin() {
  new_disk
  ws=ws
  fill 0
  XDG_STATE_HOME=$disk/state does_not_begin refuses_with_hint "no room for a state directory"
  does_not_begin refuses_with_hint "no room for a store" --store "$disk/store"
  rm disk/scratch/filler
  # Where there were runs before, of others and in the workspace.
  as mkdir disk/scratch/other
  XDG_STATE_HOME=$disk/state as "$TXFS" -C disk/scratch/other run -- true 2>/dev/null
  fill 0
  XDG_STATE_HOME=$disk/state does_not_begin refuses_with_hint "no room for a record"
  ! grep -qF -e --store "$TMPDIR/err" || fail "a hint that does not help: $(cat "$TMPDIR/err")"
  nothing_is_left "a run that did not begin"
  rm disk/scratch/filler
  for store in "$HOME/store" "$disk/state/store"; do
    rm -rf disk/state/* "$HOME/store"
    XDG_STATE_HOME=$disk/state as "$TXFS" --store "$store" -C ws run -- true 2>/dev/null
    fill 0
    XDG_STATE_HOME=$disk/state does_not_begin refuses_with_hint "a full disk with the store at $store" --store "$store"
    nothing_is_left "a run that did not begin"
    rm disk/scratch/filler
  done
  rm -rf disk/state/* "$HOME/store"
  export XDG_STATE_HOME="$disk/state"
  run 0 committed -- sh -c 'echo new >file'
  equal new "$(cat ws/file)" "what was committed once there was room"
  export XDG_STATE_HOME="$HOME/.local/state"
  umount disk
}

# fills SCRIPT: a run whose command has no room.
fills() {
  run 28 "rolled back" -- sh -c "$1"
  contains "$(cat err)" "No space left on device"
  contains "$(cat err)" "rolled back: exit 28 after "
  settled_as_before "$1"
}
settled_as_before() {
  same_tree expected ws
  nothing_is_left "$1"
  [ "$(available)" -gt $((room - 4096)) ] || fail "no room came back after: $1"
}

while_it_writes() {
  new_disk
  export XDG_STATE_HOME="$disk/state"
  ws=ws
  run 0 unchanged -- true
  room=$(available)
  fills 'echo torn >file; dd if=/dev/zero of=large bs=1M count=100 || exit 28'
  fills 'rm file; dd if=/dev/urandom bs=64k count=1000 >>numbers || exit 28'
  fills 'dd if=/dev/zero of=$HOME/large bs=1M count=100 || { echo torn >file; exit 28; }'
  # Whoever does not look at the error has a validator that does.
  run 5 "rolled back" --validate 'test "$(stat -c %s large)" -eq 104857600' -- \
    sh -c 'dd if=/dev/zero of=large bs=1M count=100; echo torn >file; exit 0'
  contains "$(cat err)" "No space left on device"
  settled_as_before "an error that the command does not look at"
  # What is written through a mapping, when the kernel writes it back.
  status=0
  as "$TXFS" -C ws run --on-success=discard -- python3 -c '
import mmap, os
fd = os.open("large", os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, 100 << 20)
memory = mmap.mmap(fd, 100 << 20)
for at in range(0, 100 << 20, 1 << 20):
    memory[at:at + (1 << 20)] = b"x" * (1 << 20)
try:
    memory.flush()
except OSError as error:
    print(error, file=__import__("sys").stderr)
    os._exit(error.errno)' >out 2>err || status=$?
  equal 28 "$status" "exit code of a mapping ($(cat err))"
  contains "$(cat err)" "No space left on device"
  settled_as_before "a mapping"
  # Nothing tells the command that the kernel cannot write it back.
  cat >"$HOME/unsynced.py" <<'END'
import mmap, os
fd = os.open("large", os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, 100 << 20)
memory = mmap.mmap(fd, 100 << 20)
for at in range(0, 100 << 20, 1 << 20):
    memory[at:at + (1 << 20)] = b"x" * (1 << 20)
END
  for at in . "$HOME"; do
    run 125 "rolled back" -- sh -c "cd $at && exec python3 $HOME/unsynced.py"
    contains "$(cat err)" "could not be written: No space left on device"
    settled_as_before "a mapping in $at that is not flushed"
  done
  # By names.
  fill 3000
  run 28 "rolled back" -- python3 -c '
import os
try:
    for i in range(1000000):
        os.mkdir("%0200d" % i)
except OSError as error:
    print(error)
    os._exit(error.errno)'
  contains "$(cat out)" "No space left on device"
  rm disk/scratch/filler
  settled_as_before "names"

  # In a mount that stays, what was there before stays.
  as "$TXFS" mount ws >/dev/null
  as sh -c 'echo earlier >ws/earlier'
  run 28 "rolled back" -- sh -c 'echo torn >file; dd if=/dev/zero of=large bs=1M count=100 || exit 28'
  equal "earlier file numbers" "$(as ls ws | xargs)" "the mount after a run that had no room"
  equal "old earlier" "$(as cat ws/file ws/earlier | xargs)" "content after a run that had no room"
  run 125 "rolled back" -- python3 "$HOME/unsynced.py"
  contains "$(cat err)" "could not be written: No space left on device"
  equal "earlier file numbers" "$(as ls ws | xargs)" "the mount after a mapping that is not flushed"
  run 0 committed -- sh -c 'echo new >made'
  as "$TXFS" -C ws discard >/dev/null
  as "$TXFS" umount ws >/dev/null
  equal "new" "$(cat ws/made)" "what was committed"
  as "$TXFS" -C ws fsck >/dev/null 2>&1
  export XDG_STATE_HOME="$HOME/.local/state"
  umount disk
}

# What a run changes in a workspace that lies on the disk; the disk fills at its end.
cat >change.sh <<'END'
echo new >file
rm gone
mv dir moved
mkdir made
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  echo "$i" >"made/$i"
done
yes | head -c 4M >made/large
yes | dd of=sparse bs=1M seek=10 count=2 iflag=fullblock conv=notrunc 2>/dev/null
END
# make_base DIR
make_base() {
  mkdir "$1" "$1/dir"
  echo old >"$1/file"
  echo old >"$1/gone"
  echo old >"$1/dir/file"
  truncate -s 72M "$1/sparse"
  yes no | head -c 4M >>"$1/sparse"
  chown -R "$uid:$uid" "$1"
}

at_the_commit() {
  rm -rf base-before base-after
  make_base base-before
  make_base base-after
  (cd base-after && as sh "$disk/../change.sh")
  for left in $(some "0 5200" "400 6200" "4000 9000"); do
    new_disk
    make_base disk/ws
    ws=disk/ws
    status=0
    as "$TXFS" -C disk/ws run --json "$HOME/report" --rw "$disk/scratch" -- \
      sh -c "$(cat change.sh); python3 -c '$(cat fill.py)' $disk/scratch/filler $left" >out 2>err || status=$?
    outcome=$(json 'd["outcome"]' <"$HOME/report")
    equal $status "$(json 'd["exit_code"]' <"$HOME/report")" "exit code in the report, $left KiB left"
    nothing_is_left "$left KiB left"
    [ ! -e disk/scratch/filler ] || rm disk/scratch/filler
    case "$status $outcome" in
      "0 committed") ;;
      "125 kept")
        contains "$(cat err)" "nothing was committed"
        contains "$(cat err)" "No space left on device"
        contains "$(cat err)" "then commit again"
        same_tree base-before disk/ws
        name=$(json 'd["name"]' <"$HOME/report")
        contains "$(cat err)" "\`txfs -t $name commit\`"
        # There is room again.
        as "$TXFS" -C disk/ws -t "$name" commit >/dev/null 2>err || fail "the commit of what was kept: $(cat err)"
        ;;
      "125 not settled")
        contains "$(cat err)" "stopped half-way"
        contains "$(cat err)" "No space left on device"
        grep -q "^hint: " err || fail "no hint: $(cat err)"
        as "$TXFS" -C disk/ws list >/dev/null 2>err
        contains "$(cat err)" "finished the interrupted commit"
        ;;
      *) fail "$left KiB left: exit code $status, $outcome: $(cat err)" ;;
    esac
    echo "$left KiB left: $status $outcome"
    as "$TXFS" -C disk/ws fsck >/dev/null 2>&1
    as "$TXFS" -C disk/ws gc --keep-commits 0 >/dev/null
    same_tree base-after disk/ws
    umount disk
  done
}

for uid in $(some 0 65534); do
  HOME=$PWD/home-$uid XDG_STATE_HOME=$PWD/home-$uid/.local/state
  rm -rf ws expected
  mkdir -p "$XDG_STATE_HOME" ws
  echo old >ws/file
  seq 1000 >ws/numbers
  chown -R "$uid:$uid" ws "$HOME"
  cp -a ws expected
  for when in $(some before_the_begin while_it_writes at_the_commit); do
    rm -rf ws
    cp -a expected ws
    $when
  done
done
