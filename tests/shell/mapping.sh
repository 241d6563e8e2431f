#!/bin/sh
# Stores through a shared mapping, which the kernel has not written back yet:
# they belong to the transaction as it is when a command comes.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs python3

mkdir ws mnt
printf 'the base' >ws/f
txfs mount ws mnt

# A process that keeps the mapping: "N" on its input stores the line.
mkfifo orders answers
python3 -c '
import mmap
with open("mnt/f", "r+b") as f, open("orders") as orders, open("answers", "w") as answers:
    with mmap.mmap(f.fileno(), 0) as m:
        for order in orders:
            text = order.strip().encode()
            if text: m[: len(text)] = text
            print(m[:].decode(), file=answers, flush=True)
' &
exec 3>orders 4<answers
# store TEXT: what the process sees afterwards; nothing is stored without TEXT.
store() {
  echo "$1" >&3
  read -r seen <&4
  echo "$seen"
}

equal "one base" "$(store 'one ')" "stored"
contains "$(txfs -C mnt diff)" "one base"
store 'two' >/dev/null
txfs -C mnt discard
equal "the base" "$(cat mnt/f)" "after a discard"
equal "the base" "$(store '')" "the mapping after a discard"
sync mnt/f
equal "" "$(txfs -C mnt diff)" "the next transaction"
store 'three' >/dev/null
txfs -C mnt discard f
equal "the base" "$(cat mnt/f)" "after a discard of the file"
sync mnt/f
equal "" "$(txfs -C mnt diff)" "what is left"
store 'four' >/dev/null
txfs -C mnt commit -m four
equal "fourbase" "$(cat ws/f)" "committed"
exec 3>&- 4<&-
wait
txfs umount mnt
