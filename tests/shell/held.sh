#!/bin/bash
# What a program holds stays the same file, by its inode number: `tail -F` goes
# on after a commit and an undo, and does not read the file again.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs tail
mkdir ws mnt
echo base >ws/log
txfs mount ws mnt >/dev/null
trap 'kill "$tail" 2>/dev/null || true' EXIT

number() { stat -L -c %i "$1"; }
listed() { ls -i mnt | awk -v name="$1" '$2 == name { print $1 }'; }
# await LINE: until tail has printed it.
await() {
  for _ in $(seq 2000); do
    ! grep -qx "$1" out || return 0
    await_tick
  done
  fail "tail did not print $1: $(cat out err)"
}

echo new >mnt/made
exec 3<mnt/log 4<mnt/made
log=$(number mnt/log) made=$(number mnt/made)
# Without inotify it compares the path with the descriptor each time.
tail -n +1 -s 0.01 --max-unchanged-stats=1 ---disable-inotify -F mnt/log \
  >out 2>err 3<&- 4<&- &
tail=$!
await base
same() {
  equal "$log $log $log" "$(number mnt/log) $(number /dev/fd/3) $(listed log)" "log after $1"
  equal "$made $made $made" "$(number mnt/made) $(number /dev/fd/4) $(listed made)" "made after $1"
}
echo one >>mnt/log
await one
same "a change"
txfs -C mnt commit -m one >/dev/null
same "a commit"
echo two >>mnt/log
await two
txfs -C mnt commit -m two >/dev/null
same "the second commit"
txfs -C mnt undo >/dev/null
same "an undo"
echo three >>mnt/log
echo four >>mnt/log
await four
txfs -C mnt discard >/dev/null
same "a discard"
kill "$tail"
! grep -q "replaced" err || fail "tail took the file for another: $(cat err)"

# Nobody holds them: they have the numbers of the base.
exec 3<&- 4<&-
wait "$tail" 2>/dev/null || true
txfs umount mnt >/dev/null
txfs mount ws mnt >/dev/null
equal "$(number ws/log)" "$(number mnt/log)" "a new mount"
equal "$(number ws/made)" "$(number mnt/made)" "a new mount"
txfs umount mnt >/dev/null
