#!/bin/sh
# Several runs on one workspace at a time, and many in a row.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs bwrap
needs_fuse
alone
mkdir ws codes
echo 0 >ws/shared
cd ws

# at_a_time N SCRIPT: runs the script N times at once, with $i; exit codes in codes/.
at_a_time() {
  for i in $(seq "$1"); do
    (
      status=0
      i=$i txfs run --env i -- sh -c "$2" >/dev/null 2>"../codes/err.$i" || status=$?
      echo $status >"../codes/$i"
    ) &
  done
  wait
}

# Disjoint changes are all committed.
at_a_time 8 'echo $i >file.$i; mkdir dir.$i; echo $i >dir.$i/file'
for i in 1 2 3 4 5 6 7 8; do
  equal 0 "$(cat "../codes/$i")" "exit code of run $i ($(cat "../codes/err.$i"))"
  equal "$i $i" "$(cat "file.$i" "dir.$i/file" | xargs)" "files of run $i"
done

# Of overlapping ones each is committed or kept with a conflict; none is lost
# or mixed.
at_a_time 8 'echo $i >>shared; sleep 0.1'
committed=0
for i in 1 2 3 4 5 6 7 8; do
  case $(cat "../codes/$i") in
    0) committed=$((committed + 1)) ;;
    3) contains "$(cat "../codes/err.$i")" "kept 1 change: 1 path of the workspace changed" ;;
    *) fail "run $i: $(cat "../codes/$i") $(cat "../codes/err.$i")" ;;
  esac
done
equal $((committed + 1)) "$(wc -w <shared | tr -d ' ')" "entries of committed runs in: $(cat shared)"
txfs list | sed -n 's/.* active .*\(run-[a-z0-9]*\).*/\1/p' >../kept
equal $((8 - committed)) "$(wc -l <../kept | tr -d ' ')" "transactions that are kept"
while read -r name; do
  txfs -t "$name" discard >/dev/null
done <../kept

# In a row, with every outcome.
last=
for i in $(seq 30); do
  status=0
  txfs run -- sh -c "echo $i >row; exit $((i % 3))" 2>../err || status=$?
  equal $((i % 3)) $status "exit code of run $i in a row ($(cat ../err))"
  [ $((i % 3)) -ne 0 ] || last=$i
  equal "$last" "$(cat row 2>/dev/null || true)" "content after run $i in a row"
done
equal "" "$(txfs list | grep " active " || true)" "open transactions"
! grep "^txfs-home:$HOME \|^$TMPDIR" /proc/mounts || fail "mounts are left"
[ -z "$(ls -A "$XDG_STATE_HOME/txfs/runs")" ] || fail "a store of a home is left"
txfs fsck >/dev/null
