#!/bin/sh
# In a directory that lies inside a workspace which is not mounted, `mount` and
# `enter` mount nothing that they were not asked for.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
make_workspace
txfs mount ws
echo old >ws/old
txfs umount ws

cd ws/src
refuses_with_hint 2 "lies inside the workspace $TMPDIR/work/ws" txfs mount
contains "$(cat "$TMPDIR/err")" "\`txfs mount .\`"
contains "$(cat "$TMPDIR/err")" "\`txfs mount $TMPDIR/work/ws\`"
refuses_with_hint 2 "lies inside the workspace $TMPDIR/work/ws" txfs mount --name a
refuses_with_hint 2 "lies inside the workspace $TMPDIR/work/ws" txfs enter -- true
cd ../..
refuses_with_hint 2 "lies inside the workspace $TMPDIR/work/ws" txfs -C ws/src mount
contains "$(cat "$TMPDIR/err")" "\`txfs mount $TMPDIR/work/ws/src\`"
refuses_with_hint 2 "lies inside the workspace $TMPDIR/work/ws" txfs enter ws/src -- true
mountpoint -q ws && fail "the workspace around was mounted"
mountpoint -q ws/src && fail "the directory was mounted"

# Both can be had by name.
cd ws/src
txfs mount .
mountpoint -q "$TMPDIR/work/ws/src" || fail "\`txfs mount .\` did not mount it"
cd "$TMPDIR/work"
txfs umount ws/src
equal "" "$(txfs -C ws/src diff)" "the transaction of the inner one"
txfs -C ws mount
equal old "$(cat ws/old)" "the transaction of the outer one"
# Inside the mount there is no question.
equal "$TMPDIR/work/ws/docs" "$(txfs -C ws/docs enter -- pwd)" "enter inside the mount"
txfs umount ws

# What a command did is on stdout, with nothing on stderr.
for command in "mount ws" "-C ws savepoint" "-C ws rollback" "-C ws discard" "umount ws"; do
  # shellcheck disable=SC2086
  txfs $command >out 2>err
  [ -s out ] || fail "$command: nothing on stdout"
  [ ! -s err ] || fail "$command: on stderr: $(cat err)"
done
# The mount that `enter` makes is not what its command says.
equal inside "$(txfs enter ws -- echo inside 2>err)" "stdout of enter"
contains "$(cat err)" "mounted $PWD/ws at $PWD/ws"
echo 1 >ws/new
for command in "commit -m new" "undo"; do
  # shellcheck disable=SC2086
  txfs -C ws $command >out 2>err
  [ -s out ] || fail "$command: nothing on stdout"
  [ ! -s err ] || fail "$command: on stderr: $(cat err)"
done
txfs umount ws
