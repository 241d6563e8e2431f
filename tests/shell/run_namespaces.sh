#!/bin/sh
# A mount namespace that was made during a run has the mounts of the run, too: the
# run does not wait for its end.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs bwrap unshare
needs_root
alone
mkdir ws sync
mkfifo sync/begun sync/end made
(
  status=0
  cd ws
  timeout -k 5 60 txfs run --keep --rw ../sync -- sh -c 'echo begun >../sync/begun; read -r go <../sync/end; echo new >new' \
    >../out 2>../err || status=$?
  echo "$status" >../status
) &
run=$!
read -r _ <sync/begun
unshare --mount sh -c 'echo made; exec sleep 300' >made &
other=$!
read -r _ <made
grep -q run- "/proc/$other/mountinfo" || fail "it has no mount of the run"
echo go >sync/end
wait "$run"
kill "$other" || fail "it ended before the run"
equal 0 "$(cat status)" "exit code: $(cat err)"
contains "$(cat err)" "kept 1 change"
name=$(txfs -C ws list | sed -n 's/.*\(run-[a-z0-9]*\).*/\1/p')
contains "$(txfs -C ws -t "$name" diff)" "+new"
