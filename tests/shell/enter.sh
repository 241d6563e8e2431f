#!/bin/sh
# Mounting over the workspace itself: who stands beneath is told, `enter` is
# inside.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
make_workspace
cp -a ws before

# A program that stands in the workspace when it is mounted over.
(cd ws/docs && exec sleep 1000) &
sleeper=$!
trap 'kill $sleeper 2>/dev/null || true' EXIT
until [ "$(readlink "/proc/$sleeper/cwd")" = "$PWD/ws/docs" ]; do :; done
txfs mount ws 2>said
contains "$(cat said)" "$sleeper"
contains "$(cat said)" 'cd "$PWD"'
mountpoint -q ws || fail "not mounted over the workspace"
same_tree before ws
echo changed >ws/docs/README

# Where it stood is the workspace itself, untouched.
equal "read me" "$(cat "/proc/$sleeper/cwd/README")" "the workspace beneath"

# `enter` is inside, in the same place, with the code of its command.
equal changed "$(txfs -C ws/docs enter -- cat README)" "enter in a directory"
equal changed "$(txfs enter ws -- cat docs/README)" "enter a workspace"
code=0
txfs enter ws -- sh -c 'exit 42' || code=$?
equal 42 "$code" "exit code of the command"
code=0
txfs enter ws -- no-such-program 2>/dev/null || code=$?
equal 127 "$code" "exit code of a command that is not there"
# Not the last command, so that the shell stays.
(cd ws && { txfs umount 2>"$TMPDIR/said" && fail "unmounted under its own shell"; :; })
contains "$(cat "$TMPDIR/said")" "this shell"
txfs umount ws
kill "$sleeper"

# `enter` mounts first if need be.
equal changed "$(txfs enter ws -- cat docs/README 2>/dev/null)" "enter mounts"
mountpoint -q ws || fail "enter left no mount"
txfs umount ws
equal "read me" "$(cat ws/docs/README)" "the workspace in the end"
