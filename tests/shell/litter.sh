#!/bin/sh
# What txfs leaves behind on the disk: an empty transaction takes little, and
# sockets and logs of daemons that are gone do not stay.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
make_workspace
runtime() {
  for directory in /run/txfs "/run/user/$(id -u)/txfs" "/tmp/txfs-$(id -u)" "$XDG_STATE_HOME/txfs/run"; do
    [ ! -d "$directory" ] || echo "$directory"
  done
}
logs() { find "$XDG_STATE_HOME/txfs/log" -name '*.log' | sort; }

# An empty transaction, and the one that is prepared for the next.
most=5120
count=4
for i in $(seq $count); do
  mkdir "mnt$i"
  txfs mount ws "mnt$i" --name "n$i"
done
store=$(store_of ws)
for how in "" --apparent-size; do
  for directory in "$store"/txn/*; do
    # shellcheck disable=SC2086
    size=$(du -sk $how "$directory" | cut -f 1)
    [ "$size" -le $most ] || fail "an empty transaction takes $size KiB ($how)"
  done
  # shellcheck disable=SC2086
  size=$(du -sk $how "$XDG_STATE_HOME/txfs" | cut -f 1)
  [ "$size" -le $((most * count)) ] || fail "$count empty transactions take $size KiB ($how)"
done
# One in which much was done has what it needs, and its successor is small again.
i=0
while [ $i -lt 2000 ]; do
  echo "$i" >"mnt1/file$i"
  i=$((i + 1))
done
equal 2000 "$(find mnt1 -name 'file*' | wc -l)" "files"
txfs -C mnt1 discard
for directory in "$store"/txn/*; do
  size=$(du -sk "$directory" | cut -f 1)
  [ "$size" -le $most ] || fail "a transaction after a discard takes $size KiB"
done

# A daemon that ends leaves neither socket nor, if nothing happened, a log.
for i in $(seq $count); do txfs umount "mnt$i"; done
equal "" "$(logs)" "logs of daemons that had nothing to say"
equal "" "$(find "$XDG_STATE_HOME/txfs/run" -type s)" "sockets of daemons that ended"

# Daemons that die leave both; the next mount removes them.
for i in $(seq 12); do
  mkdir -p "mnt$i"
  txfs mount ws "mnt$i" --name "n$i"
  pid=$(txfs -C "mnt$i" status --json | json 'd["pid"]')
  kill -KILL "$pid"
  ended "$pid"
  umount -l "mnt$i" 2>/dev/null || fusermount3 -uz "mnt$i"
done
mkdir mnt
txfs mount ws mnt
for directory in $(runtime); do
  for socket in "$directory"/*.sock; do
    [ -S "$socket" ] || continue
    python3 - "$socket" <<'END' || fail "the socket $socket of a dead daemon is still there"
import socket, sys
try:
    socket.socket(socket.AF_UNIX).connect(sys.argv[1])
except ConnectionRefusedError:
    sys.exit(1)
except OSError:
    pass
END
  done
done
[ "$(logs | wc -l)" -le 9 ] || fail "logs of dead daemons stay: $(logs)"
txfs umount mnt
