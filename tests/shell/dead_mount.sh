#!/bin/sh
# A daemon that was killed leaves a dead mount: commands say so, mount clears it.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
make_workspace
mkdir mnt
for mountpoint in mnt ws; do
  txfs mount ws "$mountpoint"
  echo acknowledged >"$mountpoint/$mountpoint-file"
  kill -KILL "$(txfs -C "$mountpoint" status --json | json 'd["pid"]')"
  tries=0
  while stat "$mountpoint/docs" >/dev/null 2>&1 && [ $tries -lt 10000 ]; do
    tries=$((tries + 1))
  done
  txfs mount ws "$mountpoint" 2>said
  contains "$(cat said)" "dead mount"
  equal acknowledged "$(cat "$mountpoint/$mountpoint-file")" "what was acknowledged"
  txfs umount "$mountpoint"
done
txfs -C ws commit
equal acknowledged "$(cat ws/mnt-file)" "what was committed"
