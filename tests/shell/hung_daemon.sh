#!/bin/bash
# A daemon that is stopped: no command waits for it for ever, and each says what
# is wrong. It goes on where it was.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
mkdir ws mnt
echo base >ws/file
txfs mount ws mnt
echo kept >mnt/kept
pid=$(txfs -C mnt status --json | json 'd["pid"]')
kill -STOP "$pid"
n=0
jobs=""
for command in "-C mnt status" "-C mnt/deep/er diff" "umount mnt" "-C ws diff" "mount mnt" "mount ws mnt"; do
  n=$((n + 1))
  (
    status=0
    # shellcheck disable=SC2086 # words
    timeout 100 txfs $command >"out.$n" 2>"err.$n" || status=$?
    echo $status >"status.$n"
  ) &
  jobs="$jobs $!"
done
timeout 100 txfs -C ws list >listed 2>said
contains "$(cat listed)" "(daemon $pid)"
case $(cat listed) in *died*) fail "a daemon that is stopped is none that died" ;; esac
# shellcheck disable=SC2086 # process ids
wait $jobs
for i in $(seq "$n"); do
  equal 1 "$(cat "status.$i")" "exit code of command $i: $(cat "err.$i")"
  grep -qF "process $pid, does not answer" "err.$i" || fail "command $i: $(cat "err.$i")"
  grep -qF "kill -KILL $pid" "err.$i" || fail "command $i: no hint: $(cat "err.$i")"
done
kill -CONT "$pid"
equal kept "$(cat mnt/kept)" "when it goes on"
txfs -C mnt diff | grep -q +kept
txfs umount mnt
