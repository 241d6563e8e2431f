#!/bin/sh
# Commands from odd places, and stores and attributes that are not where, or as,
# one thinks.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs python3 truncate

# A commit that the base has no room for on a file is refused while nothing has
# happened, and works when the cause is gone.
mkdir a mnt
echo 1 >a/f
txfs mount a mnt
set_large() {
  python3 -c 'import os, sys; os.setxattr(sys.argv[1], "user.large", b"1" * 60000)' "$1"
}
mkdir probe
echo 1 >probe/f
if ! set_large probe/f 2>/dev/null; then
  for file in f new; do
    echo 2 >mnt/other
    [ -e mnt/$file ] || echo 3 >mnt/$file
    set_large mnt/$file
    refuses_with_hint 1 "$file" txfs -C mnt commit
    contains "$(cat "$TMPDIR/err")" "extended attributes"
    [ ! -e a/other ] || fail "half of a commit is in the base"
    python3 -c 'import os, sys; os.removexattr(sys.argv[1], "user.large")' mnt/$file
    txfs -C mnt commit -m "$file"
    equal 2 "$(cat a/other)" "the base after the commit"
    rm mnt/other
    txfs -C mnt commit -m gone
  done
fi
txfs umount mnt

# A removed working directory is where it was, whatever $PWD says.
mkdir b c
txfs mount b
txfs mount c
echo precious >b/precious
python3 - "$TXFS" "$PWD" <<'END'
import os, subprocess, sys
program, here = sys.argv[1:]
os.environ["PWD"] = here + "/b"
os.mkdir(here + "/c/gone")
os.chdir(here + "/c/gone")
os.rmdir(here + "/c/gone")
subprocess.run([program, "discard"], check=True)
END
equal precious "$(cat b/precious)" "a file of a workspace that was not meant"
txfs umount b
txfs umount c

# A relative workspace to enter, mounted or not.
mkdir d
equal "$PWD/d" "$(txfs enter d -- pwd)" "where a relative workspace is"
equal "$PWD/d" "$(txfs enter d -- pwd)" "where a mounted one is"
txfs umount d
refuses_with_hint 1 "$PWD/nowhere: " txfs enter nowhere -- pwd

# A store on a disk that is away is not replaced by a new one.
mkdir e disk
txfs mount e --store disk/store
echo work >e/work
txfs umount e
mv disk away
refuses_with_hint 1 "$PWD/disk/store" txfs mount e
refuses_with_hint 1 "$PWD/disk/store" txfs -C e status
mv away disk
txfs mount e
equal work "$(cat e/work)" "the work in a store that was away"
txfs umount e
mv disk away
mkdir other
txfs mount e --store other/store
[ ! -e e/work ] || fail "a new store has old work"
txfs umount e

# A workspace within another is one, and who mounts it is told.
mkdir -p outer/inner
echo base >outer/inner/f
txfs mount outer 2>err
txfs umount outer
case $(cat err) in *inside*) fail "it lies in no workspace" ;; esac
txfs mount outer/inner 2>err
contains "$(cat err)" "lies inside the workspace $PWD/outer"
echo inner >outer/inner/f
txfs -C outer/inner commit -m inner
txfs umount outer/inner
txfs mount outer
equal inner "$(cat outer/inner/f)" "the outer workspace after a commit of the inner"
txfs umount outer

# Holes are holes.
mkdir g
truncate -s 64M g/sparse
txfs mount g
equal 0 "$(stat -c %b g/sparse)" "blocks of a file without any"
txfs umount g

# What a detached mount still has, and how it ends.
mkdir h
txfs mount h
(
  cd h
  exec sleep 600
) &
sleeper=$!
until [ "$(readlink /proc/$sleeper/cwd)" = "$PWD/h" ] &&
  [ "$(cat /proc/$sleeper/comm)" = sleep ]; do :; done
txfs umount --lazy h
refuses_with_hint 6 "detached" txfs umount h
refuses_with_hint 6 "in use" txfs mount h
kill $sleeper
wait $sleeper || true
until txfs mount h 2>/dev/null; do :; done
txfs umount h

# Two who make a workspace of one directory at once: one does.
for round in 1 2 3; do
  mkdir "race$round"
  txfs mount "race$round" 2>"err.1" &
  first=$!
  status=0
  txfs mount "race$round" 2>"err.2" || status=$?
  first_status=0
  wait $first || first_status=$?
  equal 6 $((status + first_status)) "the codes of two mounts: $(cat err.1 err.2)"
  txfs umount "race$round"
done

# Closed output is no file of ours.
mkdir i
echo 1 >i/f
txfs mount i
echo 2 >i/f
for command in status diff log list; do
  status=0
  txfs -C i $command >&- 2>err || status=$?
  equal 1 $status "$command without stdout: $(cat err)"
done
txfs -C i status 2>&- >/dev/null
txfs -C i status <&- >/dev/null

# What is not there.
refuses_with_hint 1 "$PWD/i/nowhere" txfs -C i/nowhere status
refuses_with_hint 1 "$PWD/i/f" txfs -C i/f status
refuses_with_hint 1 "$PWD/nowhere" txfs umount nowhere
refuses_with_hint 2 "store" txfs --store "" -C i status
txfs umount i
mkdir ./-dash
txfs mount -- -dash
txfs umount ./-dash
refuses_with_hint 2 "three" txfs mount one two -- three
